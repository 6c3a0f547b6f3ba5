package innet

import (
	"testing"
	"time"
)

const us = time.Microsecond

// TestEstimate: the first measurement makes a timeout of three of it, steady ones one of it, and a change of the time
// raises it at once.
func TestEstimate(t *testing.T) {
	var e estimate
	if e.measure(100 * us); e.timeout() != 300*us {
		t.Errorf("%v after the first", e.timeout())
	}
	for range 100 {
		e.measure(100 * us)
	}
	if steady := e.timeout(); steady < 100*us || steady > 101*us {
		t.Errorf("%v after many", steady)
	}
	if e.measure(300 * us); e.timeout() < 300*us {
		t.Errorf("%v after a longer one", e.timeout())
	}
	o := HostOptions{MinTimeout: 20 * us, MaxTimeout: time.Millisecond}
	for attempts, want := range []time.Duration{20 * us, 40 * us, 80 * us, 160 * us, 320 * us, 640 * us, time.Millisecond} {
		if got := o.within(5*us, attempts); got != want {
			t.Errorf("%v after %d attempts, want %v", got, attempts, want)
		}
	}
}

// quick is a schedule on links that take at most a time, whose hosts may have timers of microseconds.
func quick(t *testing.T, delay time.Duration, lose float64) *schedule {
	g := &Graph{}
	r := newRand(3)
	for v := range 240 {
		g.Host = append(g.Host, uint16(v%4))
	}
	for range 2000 {
		if u, v := uint32(r.IntN(240)), uint32(r.IntN(240)); g.Host[u] != g.Host[v] {
			g.Src, g.Dst = append(g.Src, u), append(g.Dst, v)
		}
	}
	blocks, err := Blocks(g, Slots(80), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &schedule{graph: g, plan: &Plan{Blocks: blocks, Hosts: 4}, width: 40, lasting: true,
		network: &network{rand: r, delay: delay, lose: lose, due: make([]time.Duration, 4)}}
	s.tables = []*Table{s.plan.Table(1, 1)}
	s.restart0()
	opt := DefaultHost
	opt.MinTimeout = 20 * us
	opt.Rate.Min = opt.Rate.Max // this network marks packets at random
	for h := range 4 {
		s.hosts = append(s.hosts, NewHost(s.plan, h, 1, 1, opt))
	}
	return s
}

// TestTimersFollowTheNetwork: on links without loss, whatever they take, hosts wait about as long as rows and sums do,
// and pull nothing once they have measured that.
func TestTimersFollowTheNetwork(t *testing.T) {
	for _, delay := range []time.Duration{5 * us, 100 * us, 4000 * us} {
		s := quick(t, delay, 0)
		for range 6 {
			s.draw()
			s.exchange(t)
			s.check(t)
		}
		for k, h := range s.hosts {
			if least := max(delay, h.opt.MinTimeout); h.silence() < least || h.silence() > 5*least {
				t.Errorf("delay %v: host %d waits %v", delay, k, h.silence())
			}
			if again := h.again(0); again < delay || again > max(5*delay, h.opt.MinTimeout) {
				t.Errorf("delay %v: host %d repeats after %v", delay, k, again)
			}
			c, rounds := h.Count, int64(6*(1+len(s.plan.Blocks)*2))
			if c.Rounds != rounds || c.Moving <= 0 || c.Barriers <= 0 || c.Moving+c.Barriers > s.now {
				t.Errorf("delay %v: host %d: %d rounds, want %d, %v for sums and %v at barriers of %v", delay, k, c.Rounds,
					rounds, c.Moving, c.Barriers, s.now)
			}
			if h.Count.Pulls > 0 || h.Count.Resends > 0 {
				t.Errorf("delay %v: host %d: %+v", delay, k, h.Count)
			}
		}
	}
}

// TestLossTakesRoundTrips: where rows are lost the sums are the same, and an exchange over links of microseconds takes
// less than the one timeout of milliseconds that hosts begin with.
func TestLossTakesRoundTrips(t *testing.T) {
	s := quick(t, 5*us, 0.02)
	s.draw()
	s.exchange(t)
	s.check(t)
	pulls := int64(0)
	for range 5 {
		for _, h := range s.hosts {
			pulls -= h.Count.Pulls
		}
		before := s.now
		s.draw()
		s.exchange(t) // begins within 20 ms on all hosts
		s.check(t)
		if took := s.now - before - 20*time.Millisecond; took > DefaultHost.Timeout/2 {
			t.Errorf("an exchange takes %v", took)
		}
		for _, h := range s.hosts {
			pulls += h.Count.Pulls
		}
	}
	if pulls == 0 {
		t.Error("nothing was lost")
	}
	for k, h := range s.hosts {
		if !h.fetch.known || h.refetch(0) > 10*h.opt.MinTimeout {
			t.Errorf("host %d fetches again after %v", k, h.refetch(0))
		}
	}
}

// TestRowsOnTheirWayAreNotFetched: a fetch of a row that has not left is answered by the row, not by another packet; one
// of a row that has is answered; and only rows that were asked for once are measured.
func TestRowsOnTheirWayAreNotFetched(t *testing.T) {
	p := pair(t)
	opt := DefaultHost
	open := false
	opt.Gate = func() bool { return open }
	h := NewHost(p, 0, 1, 1, opt)
	h.Begin(&Exchange{Hi: 1, Width: 1, Row: func(uint32, int, int) []float64 { return []float64{1} }})
	drop := func(*Packet) {}
	h.Poll(0, drop)
	h.Receive(1, &Packet{Header: Header{Flags: Done, Round: 1, Job: 1}})
	row := rowOf(p, 0, 1).Source
	fetch := &Packet{Header: Header{Flags: Fetch, Round: 2, From: 1, Job: 1}, Body: []int32{int32(row), 0}}
	resent := 0
	count := func(p *Packet) {
		if p.Has(Resend) {
			resent++
		}
	}
	h.Receive(2, fetch)
	open = true
	if h.Poll(time.Millisecond, count); resent != 0 {
		t.Errorf("a row that had not left was sent %d times", resent)
	}
	h.Receive(time.Millisecond+1, fetch)
	if h.Poll(2*time.Millisecond, count); resent != 1 {
		t.Errorf("a row that had left was sent %d times", resent)
	}
	h.r.pulled, h.r.asks, h.r.askedAt = map[uint32]bool{7: true, 8: true}, map[uint32]int{7: 2, 8: 1}, 1000
	if h.answered(1900, 7); h.fetch.known {
		t.Error("a row that was asked for twice is measured")
	}
	if h.answered(1900, 8); !h.fetch.known || h.fetch.mean != 900 {
		t.Errorf("%+v", h.fetch)
	}
}
