package paths

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"starling/wire"
)

// TestLostPathIsNoted: a path that is lost while the other goes on is noted, and that it is back; a connection that
// ends, or whose peer dies, notes nothing.
func TestLostPathIsNoted(t *testing.T) {
	t.Parallel()
	a, b := connected(t)
	changes := make(chan Change, 16)
	h := &Host{names: []string{"one", "two"}}
	h.OnChange(func(c Change) { changes <- c })
	h.notifyOf(a, "peer:1")
	cut(b, 1)
	if c := <-changes; c.Peer != "peer:1" || c.Path != "two" || c.Cause == nil {
		t.Errorf("%+v", c)
	}
	if c := <-changes; c.Path != "two" || c.Cause != nil {
		t.Errorf("%+v", c)
	}
	a.Close()
	b.Close()
	select {
	case c := <-changes:
		t.Errorf("at the end: %+v", c)
	default:
	}
}

// TestLostPeerIsNoLostPath: of a peer that dies all paths go within a tick, and no path is noted; nor is one when the
// last has gone.
func TestLostPeerIsNoLostPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Segments(links(t, 2))
		k := newConn(wire.Real, newChooser(plan, &singlePath{plan: plan}, time.Now()), nil, nil)
		h := &Host{names: []string{"one", "two"}}
		h.OnChange(func(c Change) { t.Errorf("%+v", c) })
		h.notifyOf(k, "peer:1")
		var theirs []net.Conn
		for path := range 2 {
			here, there := net.Pipe()
			k.attach(path, here)
			theirs = append(theirs, there)
		}
		time.Sleep(tick / 2)
		theirs[0].Close()
		time.Sleep(tick * 3 / 4) // a look is in between
		theirs[1].Close()
		time.Sleep(2 * graceTime)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.mu.cause == nil || errors.Is(k.mu.cause, net.ErrClosed) {
			t.Error(k.mu.cause)
		}
	})
}
