package wire

// NewGroup is n endpoints in this process, for workers that are goroutines. A
// message is copied once, from the sender's buffer to the receiver's.
func NewGroup(n int, opt Options) []Endpoint {
	nodes := make([]*node, n)
	for r := range nodes {
		nodes[r] = newNode(r, make([]Link, n), opt) // all SameProcess
	}
	out := make([]Endpoint, n)
	for r, from := range nodes {
		for to := range nodes {
			from.carriers[to] = &inProcess{from: from, to: nodes[to]}
		}
		out[r] = from
	}
	return out
}

// inProcess carries messages to another endpoint of this process.
type inProcess struct{ from, to *node }

// carry delivers at once when there is room, else on a goroutine of its own, so
// that a sender never waits for a receiver.
func (c *inProcess) carry(m *message) { go c.deliver(m) }

func (c *inProcess) deliver(m *message) {
	h := m.header
	for {
		h.chunk = int(min(chunkSize, h.length-h.offset))
		into, err := c.to.box.place(&h)
		if err != nil {
			m.pending.finish(&PeerLost{Rank: c.from.rank, Peer: c.to.rank, Cause: err})
			return
		}
		copy(into, m.payload[h.offset:])
		if c.to.box.arrived(&h) {
			c.to.received(&h)
		}
		h.offset += int64(h.chunk)
		if h.offset >= h.length {
			m.pending.finish(nil)
			return
		}
	}
}

// close of one side is seen by the others as a lost peer, unless they close too.
func (c *inProcess) close(graceful bool) {
	if !graceful && c.from != c.to {
		c.to.peerLost(c.from.rank, c.from.err)
	}
}

// peerLost ends the endpoint because another has gone.
func (n *node) peerLost(peer int, cause error) {
	select {
	case <-n.done:
	default:
		go n.Fail(&PeerLost{Rank: n.rank, Peer: peer, Cause: cause})
	}
}

var _ Endpoint = (*node)(nil)
