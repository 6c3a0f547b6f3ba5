package event

import "encoding/json"

// Schema is the version of the events as JSON lines have them. It grows when a field goes away or changes its meaning;
// new events and new fields do not change it, so that readers leave out what they do not know.
const Schema = 1

// Opened is the first event of a file or a page: what the run is.
type Opened struct {
	Schema   int
	Program  string // the version of the program
	Command  string // that repeats the run
	Settings string // all of them, as in starling.yaml
	Virtual  bool   // times are virtual: the run is simulated
}

// Planned is what a run of several workers is expected to take.
type Planned struct {
	Memory       int64   // bytes of all workers
	Workers      []int64 // of each
	Parts        string  // what the memory is for
	EpochSeconds float64 // NaN: not predicted
	Why          string  // what an epoch is expected to be spent on
	EpochBytes   int64   // that all workers send; 0: not planned
	AtMost       bool    // the bytes are an upper bound
}

// Traffic is the bytes that workers sent of one kind, layer and link: as planned, and as counted.
type Traffic struct {
	Kind    string `json:"kind"`
	Layer   int    `json:"layer"` // -1: of no layer
	Link    string `json:"link"`
	Planned int64  `json:"planned"`
	Counted int64  `json:"counted"`
}

// Worker is what a worker reports about once per second. Bytes and waits count from when it joined.
type Worker struct {
	Worker     int
	Host       string
	PID        int
	Epoch      int   // trained
	Memory     int64 // of its process
	Device     string
	DeviceUsed int64 // of the GPU's memory, by all processes
	DeviceSize int64 // 0: there is no GPU
	Traffic    []Traffic
	To         []int64   // bytes sent to each worker
	WaitedFor  []float64 // seconds, for each worker
	Slices     []Slice   // what it did since it reported last
}

// Slice is what a worker did in a stretch of time, in seconds; what is not named is computing. Transfers go on beside
// the
// others.
type Slice struct {
	Ago      float64 `json:"ago"` // it began this long before the event
	Seconds  float64 `json:"seconds"`
	Wait     float64 `json:"wait,omitempty"` // for other workers
	For      int     `json:"for"`            // the one waited for longest; -1: none
	Draw     float64 `json:"draw,omitempty"` // for the next batch
	Evaluate float64 `json:"evaluate,omitempty"`
	Save     float64 `json:"save,omitempty"`
	Transfer float64 `json:"transfer,omitempty"` // rows were on their way to it
}

// Result is what a run ends with, as --json writes it.
type Result struct{ Report json.RawMessage }
