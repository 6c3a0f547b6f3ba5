package netsim

import "fmt"

// hop sends datagrams over one link: between a host and its switch, or between two switches.
// It is for switches that look into packets. Datagrams wait in the port's queue like all
// packets; a host's wait until its port takes them.
type hop struct {
	net     *Packets
	port    int32
	c       *conn
	waiting []datagram // of a host
}

type datagram struct {
	bytes   int64
	arrived func(marked bool)
}

// newHop is the link of a port.
func (n *Packets) newHop(port int32, dscp uint8) *hop {
	h := &hop{net: n, port: port, c: n.newConn()}
	*h.c = conn{net: n, id: h.c.id, port: port, to: n.ports[port].to, class: n.class(dscp), window: 1 << 62,
		supply: h.next}
	return h
}

// next gives the host's port a datagram.
func (h *hop) next() (int64, func(), bool) {
	if len(h.waiting) == 0 {
		return 0, nil, false
	}
	d := h.waiting[0]
	h.waiting = h.waiting[1:]
	return d.bytes, func() { d.arrived(h.net.marked) }, true
}

// send sends a datagram. arrived receives whether a queue marked it; it is not called for one
// that is dropped.
func (h *hop) send(bytes int64, arrived func(marked bool)) {
	n := h.net
	if bytes > n.top.Payload {
		panic(fmt.Sprintf("netsim: a datagram of %d bytes, and packets carry %d", bytes, n.top.Payload))
	}
	if n.ports[h.port].nic != nil {
		h.waiting = append(h.waiting, datagram{bytes, arrived})
		h.c.Wake()
		return
	}
	seg := n.newSegment()
	s := &n.segments[seg]
	*s = segment{bytes: bytes, version: s.version, packets: 1, unsent: 1, arrived: func() { arrived(n.marked) }}
	n.put(h.port, h.c.make(attempt{segment: seg, version: s.version, bytes: int32(bytes + n.top.Header)}))
}

// between is the port of the link from one node to another; -1: there is none.
func (f *fabric) between(from, to int32) int32 {
	for _, p := range f.nodes[from].ports {
		if f.ports[p].to == to {
			return p
		}
	}
	return -1
}
