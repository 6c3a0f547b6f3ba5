package netsim

// Network is a simulation at packet level (Packets) or at flow level (Flows). One goroutine
// uses it at a time; simulations share nothing.
type Network interface {
	// Hosts is how many there are, numbered from 0.
	Hosts() int
	Topology() Topology
	// Connect opens a connection between two different hosts.
	Connect(from, to int, dscp uint8, supply Supply) Connection
	// Alone is how long a transfer takes on an empty network.
	Alone(from, to int, bytes int64) Time
	// MaxChunk is the most bytes that a Supply may give at once.
	MaxChunk() int64
	// Now is the time of the simulation, Next the time of the next event or Never.
	Now() Time
	Next() Time
	// At calls f at a time.
	At(at Time, f func())
	// Step handles all events of the next time that has some, and reports whether there was one.
	Step() bool
	// Record keeps Series over time; it is called before anything is sent.
	Record()
	Stats() *Stats
	Series(port int) []Sample
}

// New is a simulation at a level: packet or flow.
func New(t Topology, level string) (Network, error) {
	if level == "flow" {
		return NewFlows(t)
	}
	return NewPackets(t)
}

// Levels are what New takes.
var Levels = []string{"packet", "flow"}

// Run handles all events until the given time, or until there are no more.
func Run(n Network, until Time) {
	for n.Next() <= until && n.Step() {
	}
}

// Transfer is bytes that go from one host to another.
type Transfer struct {
	From, To int
	Bytes    int64 // at least one is sent
	DSCP     uint8
	Start    Time
	// End is when the last byte has arrived; 0: it has not.
	End Time
	// Done, if set, is called then.
	Done func()
	// Group is a number of transfers that belong together, for QueuedGroups.
	Group uint32
	// Traced makes Through known when it has begun.
	Traced bool
	// Through are the switches that it passes, each once, by number from 0: all that its packets
	// are sprayed over. Known at flow level only.
	Through []int32
}

// Seconds is how long the transfer took.
func (t *Transfer) Seconds() float64 { return (t.End - t.Start).Seconds() }

// Send starts a transfer at its time. When it ends is in it once the simulation got there.
func Send(n Network, t *Transfer) { n.At(t.Start, func() { Begin(n, t) }) }

// Begin starts a transfer now.
func Begin(n Network, t *Transfer) {
	unsent, missing := max(t.Bytes, 1), max(t.Bytes, 1)
	var c Connection
	c = n.Connect(t.From, t.To, t.DSCP, func() (int64, func(), bool) {
		chunk := min(unsent, n.MaxChunk())
		if chunk == 0 {
			return 0, nil, false
		}
		unsent -= chunk
		return chunk, func() {
			if missing -= chunk; missing == 0 {
				t.end(n.Now())
				c.Close()
			}
		}, true
	})
	switch c := c.(type) {
	case *fluid:
		if t.Traced {
			t.Through = c.through()
		}
	case *conn:
		c.group = t.Group
	}
	c.Wake()
}

func (t *Transfer) end(now Time) {
	t.End = now
	if t.Done != nil {
		t.Done()
	}
}
