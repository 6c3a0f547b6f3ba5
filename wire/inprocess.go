package wire

// NewGroup is n endpoints in this process, for workers that are goroutines. A
// message that is asked for is copied once, from the sender's buffer to the
// receiver's, by whichever of the two comes last; so there are no goroutines and
// no queues, and nothing to be overtaken.
func NewGroup(n int, opt Options) []Endpoint {
	opt = opt.withDefaults()
	nodes := make([]*node, n)
	for r := range nodes {
		nodes[r] = newNode(r, linksWithin(r, n, opt.ServerOf), opt)
	}
	out := make([]Endpoint, n)
	for r, from := range nodes {
		for to := range nodes {
			from.carriers[to] = newInProcess(from, nodes[to])
		}
		out[r] = from
	}
	return out
}

// linksWithin a process are SameProcess, but between the servers that the user
// grouped the workers into.
func linksWithin(rank, n int, serverOf []int) []Link {
	far := make([]Link, n)
	for to := range far {
		if serverOf != nil && serverOf[to] != serverOf[rank] {
			far[to] = BetweenServers
		}
	}
	return far
}

// inProcess carries messages to another endpoint of this process, or to itself.
type inProcess struct {
	from, to *node
	ended    chan struct{}
}

func newInProcess(from, to *node) *inProcess {
	return &inProcess{from: from, to: to, ended: make(chan struct{})}
}

func (c *inProcess) carry(m *message) {
	h := m.header
	h.chunk = int(h.length)
	at, err := c.to.box.place(&h, false, m)
	switch {
	case err == nil:
		at.put(0, m.payload)
		c.to.box.release(at, &h, nil)
		m.pending.finish(nil)
	case err == errNoRoom: // the receiver copies, when it asks
	case c.to.Err() == nil: // the two do not agree what the message is
		m.pending.finish(err)
		c.to.Fail(err)
	case c.to.Err() == ErrClosed:
		m.pending.finish(c.from.lost(c.to.rank, errGone))
	default:
		m.pending.finish(c.from.lost(c.to.rank, err))
	}
}

// fail of one side ends the other with the same root.
func (c *inProcess) fail(cause error) {
	if c.from != c.to {
		c.to.box.withdraw(c.from.rank, cause)
		c.to.Fail(root(c.from.rank, cause))
	}
	close(c.ended)
}

// part waits for nobody: what the peer had no room for, it gets now.
func (c *inProcess) part() {
	if c.from != c.to {
		c.to.box.takeIn(c.from.rank)
		c.to.box.endPeer(c.from.rank, c.to.lost(c.from.rank, errGone))
	}
	close(c.ended)
}

func (c *inProcess) gone() <-chan struct{} { return c.ended }
