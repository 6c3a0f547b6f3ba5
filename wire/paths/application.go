package paths

// File is a whole description: hardware, paths and requests.
type File struct {
	Hardware Hardware
	Paths    []Path
	Requests []RequestType
	// Policy chooses paths in runs; "": leo-queue.
	Policy string
	// Record is where runs write the segments that they sent, one file per process; "": nowhere.
	Record string
}

// Path is the stops that a request makes, from the requester and back.
type Path struct {
	Name  string
	Stops []string // "requester.cpu"
	// Addresses are where workers are reached on this path: a prefix of addresses (10.0.1.0/24), or the name of a
	// network interface. Empty: a path that carries no sockets.
	Address string
}

// Find is the path of a name; nil: there is none.
func (f *File) Find(name string) *Path {
	if at := f.path(name); at >= 0 {
		return &f.Paths[at]
	}
	return nil
}

// Dependency says which requests must stay in their order.
type Dependency uint8

// The dependencies of the paper (6.2.1).
const (
	None    Dependency = iota
	Address            // requests for the same address
	Message            // requests of the same message
)

var dependencyNames = []string{"none", "address", "message"}

func (d Dependency) String() string { return dependencyNames[d] }

// RequestType is one kind of request of an application.
type RequestType struct {
	Name       string
	Dependency Dependency
	// ReadOnly requests follow those that they depend on, and none follows them.
	ReadOnly bool
	Options  []Option
	// Share of the requests that are of this type, for simulations.
	Share float64
}

// Option is a path that a request type may take.
type Option struct {
	Path    int
	Sizes   []float64 // bytes on each hop between two stops
	Compute []float64 // seconds at each stop
}
