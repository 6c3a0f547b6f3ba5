package netsim

import "math/bits"

// nic is the sending side of a host's port: connections that have something to send, in one
// ring per priority. A packet is made when the port is free, so none waits in the host.
type nic struct {
	ready   []ring
	waiting uint64 // the priorities that have some
}

// ring is connections that send one packet each, and again from the first.
type ring struct{ first, last *conn }

func (r *ring) push(c *conn) {
	c.next = nil
	if r.first == nil {
		r.first = c
	} else {
		r.last.next = c
	}
	r.last = c
}

func (r *ring) pop() *conn {
	c := r.first
	r.first, c.next = c.next, nil
	return c
}

func highest(set uint64) int { return 63 - bits.LeadingZeros64(set) }

// put adds a connection to its ring.
func (h *nic) put(c *conn) {
	h.ready[c.class].push(c)
	h.waiting |= 1 << c.class
}

// take takes out the connection that is next.
func (h *nic) take() *conn {
	class := highest(h.waiting)
	c := h.ready[class].pop()
	if h.ready[class].first == nil {
		h.waiting &^= 1 << class
	}
	return c
}

// pull transmits the next packet of a host's port, if there is one.
func (n *Packets) pull(out int32) {
	o := &n.ports[out]
	for o.nic.waiting != 0 {
		c := o.nic.take()
		c.ready = false
		i, ok := c.nextPacket()
		if !ok {
			continue
		}
		n.transmit(out, i)
		c.offer()
		break
	}
	if o.nic.waiting != 0 {
		n.callWhenFree(out)
	}
}
