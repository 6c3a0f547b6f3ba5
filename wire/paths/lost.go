package paths

import (
	"time"

	"starling/wire"
)

// Change is a path to a peer that was lost, or is back.
type Change struct {
	Peer  string // the address that was dialed
	Path  string
	Cause error // why it was lost; nil: it is back
}

// loss is what became of a path of a connection.
type loss struct {
	cause error // why it was lost; nil: it was not
	at    time.Time
	noted bool
}

// OnChange has a function called for the paths of every connection that this host dials from now on: of two hosts one
// is notified. The function must not block, for the connection waits for it.
func (h *Host) OnChange(f func(Change)) { h.changed = f }

// notifyOf has the host notified of a connection's paths.
func (h *Host) notifyOf(k *Conn, peer string) {
	if h.changed == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.changed = func(path int, cause error) { h.changed(Change{peer, h.names[path], cause}) }
}

// notify notes paths that were lost while others go on, and those that are back. A connection that ends, or whose peer
// dies, loses one path after the other: hence a loss is noted a tick later, if a path is left then.
// REQUIRES: mu held.
func (k *Conn) notify() {
	if k.mu.changed == nil || !k.anyLink() || k.mu.ended || k.mu.in.ended {
		return
	}
	for path, l := range k.mu.links {
		lost := &k.mu.lost[path]
		if lost.cause == nil || wire.Since(k.clock, lost.at) < tick {
			continue
		}
		if !lost.noted {
			lost.noted = true
			k.mu.changed(path, lost.cause)
		}
		if l != nil {
			*lost = loss{}
			k.mu.changed(path, nil)
		}
	}
}
