package coflow

// Order decides which of two transfers that wait leaves first. It is a strict weak order:
// of two that are equal in it, the one that was sent first leaves first.
type Order interface {
	// Before reports whether a leaves before b, whichever was sent first.
	Before(a, b ID) bool
	// String is the name by which users choose the order.
	String() string
}

var (
	// FIFO is the order of sending.
	FIFO Order = fifo{}
	// ByType sends what is waited for most urgently first.
	ByType Order = byType{}
	// Hermod sends first what is needed first, see hermod.go.
	Hermod Order = hermod{}
)

// Orders are all there are, the default first.
func Orders() []Order { return []Order{ByType, FIFO, Hermod} }

// OrderNames are what users call them.
func OrderNames() (names []string) {
	for _, o := range Orders() {
		names = append(names, o.String())
	}
	return names
}

// OrderNamed is the order of a name, or nil.
func OrderNamed(name string) Order {
	for _, o := range Orders() {
		if o.String() == name {
			return o
		}
	}
	return nil
}

// fifo makes all transfers equal, so they leave as they were sent.
type fifo struct{}

func (fifo) Before(a, b ID) bool { return false }
func (fifo) String() string      { return "fifo" }

// byType has the more urgent type first; within a type the older epoch and batch, and
// within a batch the layer that is needed first, which is the lowest in the forward
// pass and the highest in the backward pass.
//
// Of inputs, what is drawn (of a layer) comes before rows (of none), also those of an older batch: a batch draws hop
// after hop and can ask for its rows only then. Behind the rows of the batch before, which take the link by
// themselves, it would draw when they have come, and the link would be idle meanwhile.
type byType struct{}

func (byType) String() string { return "type" }

func (byType) Before(a, b ID) bool {
	switch {
	case a.Type != b.Type:
		return a.Type < b.Type
	case a.Type == Inputs && (a.Layer < 0) != (b.Layer < 0):
		return b.Layer < 0
	case a.Epoch != b.Epoch:
		return a.Epoch < b.Epoch
	case a.Batch != b.Batch:
		return a.Batch < b.Batch
	case a.Backward != b.Backward:
		return b.Backward
	case a.Layer != b.Layer:
		return (a.Layer < b.Layer) != a.Backward
	}
	return false
}
