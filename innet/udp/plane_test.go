package udp

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/innet"
	"starling/internal/testdeadline"
	"starling/internal/testseed"
)

// aside is a plane that sees no packets: all come to the socket.
type aside struct {
	refuse error
	mu     struct {
		sync.Mutex
		jobs    map[uint64]bool
		members map[netip.AddrPort]bool
		closed  bool
	}
}

func (p *aside) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.jobs == nil {
		p.mu.jobs, p.mu.members = map[uint64]bool{}, map[netip.AddrPort]bool{}
	}
	f()
}

func (p *aside) Install(t *innet.Table, _ int) error {
	p.change(func() { p.mu.jobs[t.Job] = p.refuse == nil })
	return p.refuse
}

func (p *aside) Join(_ uint64, _ int, addr netip.AddrPort) error {
	p.change(func() { p.mu.members[addr] = true })
	return nil
}

func (p *aside) Leave(addr netip.AddrPort) { p.change(func() { delete(p.mu.members, addr) }) }

func (p *aside) Remove(job uint64) []uint32 {
	p.change(func() { delete(p.mu.jobs, job) })
	return make([]uint32, 3)
}

func (p *aside) Stats() Stats { return Stats{Packets: 7, Passed: 3} }

func (p *aside) Close() error {
	p.change(func() { p.mu.closed = true })
	return nil
}

// TestPlane: a job that a plane refuses, or whose packets it does not see, is switched by the
// process, which says why; nothing of it is left in the plane.
func TestPlane(t *testing.T) {
	t.Parallel()
	testdeadline.Do(t, time.Minute, "exchanges", func() {
		t.Run("refused", func(t *testing.T) { testPlane(t, errors.New("much too large"), "much too large") })
		t.Run("unseen", func(t *testing.T) { testPlane(t, nil, "not on a device with the program") })
	})
}

func testPlane(t *testing.T, refuse error, why string) {
	p, lines, mu := &aside{refuse: refuse}, []string{}, sync.Mutex{}
	s := listen(t, func(o *ServerOptions) {
		o.Plane = func(uint16, Send) (Plane, error) { return p, nil }
		o.Log = func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line)
		}
	})
	j := newJob(t, testseed.Rand(t), 3, 100, 400, 40, 100)
	j.connect(t, s.Addr(), 1, nil)
	for range 2 {
		j.exchange(t)
		j.check(t)
	}
	if n := s.Stats(); n.Below != 4 {
		t.Errorf("%+v", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(lines) != 1 || !strings.Contains(lines[0], why) {
		t.Errorf("%q, want why: %s", slices.Clone(lines), why)
	}
	if s.Close(); len(p.mu.jobs)+len(p.mu.members) != 0 || !p.mu.closed {
		t.Errorf("left in the plane: %+v", &p.mu)
	}
}

// TestNoPlane: where there is none, a line says so; with a token none is requested.
func TestNoPlane(t *testing.T) {
	o := DefaultServer
	o.Plane = func(uint16, Send) (Plane, error) { return nil, errors.New("no such thing") }
	if _, err := Listen(o); !errors.Is(err, ErrPlane) || !strings.Contains(err.Error(), "no such thing") {
		t.Error(err)
	}
	o.Token = []byte("secret")
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
