package netsim

import (
	"slices"
	"time"

	"starling/wire"
)

// HostOptions say what the processors of a worker take for messages between hosts. Zero: nothing.
// What switches that add receive (SwitchOptions) is not charged.
type HostOptions struct {
	Send, Recv float64       // bytes per second
	Message    time.Duration // at either end, beside
	// Processors are charged with computing, by rank; Endpoints gives them their
	// clock. nil: messages take time, and none from computing.
	Processors []*Processor
}

// host is the part of a worker's processors that moves messages, one chunk after the other.
type host struct {
	net     Network
	opt     *HostOptions
	p       *Processor
	free    Time    // when what was begun ends
	waiting []*lane // that have something to send, by code point, the most urgent first
	woken   bool    // a call at free is due
}

func (c *cluster) newHost(rank int) *host {
	h := &host{net: c.net, opt: &c.opt.Host}
	if list := c.opt.Host.Processors; list != nil {
		h.p = list[rank]
		h.p.clock = c.clock
	}
	return h
}

// spend takes time for a chunk and returns when that has passed.
func (h *host) spend(bytes int, rate float64, begins bool) Time {
	var d time.Duration
	if rate > 0 {
		d = time.Duration(float64(bytes) / rate * 1e9)
	}
	if begins {
		d += h.opt.Message
	}
	h.free = max(h.free, h.net.Now()) + FromDuration(d)
	if h.p != nil && d > 0 {
		h.p.take(d, wire.VirtualStart.Add(h.free.Duration()))
	}
	return h.free
}

// busy reports whether the processors still move what was begun; if so the lane is woken when
// they are free.
func (h *host) busy(a *lane) bool {
	if h.free <= h.net.Now() {
		return false
	}
	if !a.waits {
		a.waits = true
		at := len(h.waiting)
		for at > 0 && h.waiting[at-1].dscp < a.dscp {
			at--
		}
		h.waiting = slices.Insert(h.waiting, at, a)
	}
	h.wakeLater()
	return true
}

// wakeLater lets lanes that wait ask again when the processors are free.
func (h *host) wakeLater() {
	if !h.woken {
		h.woken = true
		h.net.At(h.free, h.wake)
	}
}

// wake lets the lanes that wait ask again, until one of them has something to move: the others keep their places. All
// of them asking for each message of one would make an exchange among n workers cost n*n*n.
func (h *host) wake() {
	h.woken = false
	for len(h.waiting) > 0 {
		if h.free > h.net.Now() {
			h.wakeLater()
			return
		}
		a := h.waiting[0]
		h.waiting = slices.Delete(h.waiting, 0, 1)
		a.waits = false
		a.conn.Wake()
	}
}

// charges reports whether messages take any time.
func (h *host) charges() bool { return h.opt.Send > 0 || h.opt.Recv > 0 || h.opt.Message > 0 }

// sent charges a chunk that leaves.
func (h *host) sent(c *wire.Chunk) { h.spend(len(c.Bytes())+frameBytes, h.opt.Send, c.First()) }

// received calls f when a chunk that has arrived was taken off the network.
func (h *host) received(c *wire.Chunk, f func()) {
	h.net.At(h.spend(len(c.Bytes())+frameBytes, h.opt.Recv, c.First()), f)
}
