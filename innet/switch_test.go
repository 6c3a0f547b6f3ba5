package innet

import (
	"bytes"
	"math"
	"testing"
	"time"
)

// pair is two hosts; vertices 0 and 1 of host 0 are neighbours of 2 and 3 of host 1.
func pair(t testing.TB) *Plan {
	t.Helper()
	g := &Graph{Host: []uint16{0, 0, 1, 1}, Src: []uint32{0, 0, 1, 1, 2}, Dst: []uint32{2, 3, 2, 3, 0}}
	blocks, err := Blocks(g, Slots(8), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Plan{Blocks: blocks, Hosts: 2}
}

// rowOf is the packet of a vertex, all of whose lanes are x.
func rowOf(p *Plan, vertex uint32, x int32) *Packet {
	b, body := p.Blocks[0], make([]int32, UnitLanes)
	for i := range body {
		body[i] = x
	}
	for r, v := range b.Rows {
		if v == vertex {
			return &Packet{Header: Header{Source: uint32(r), Units: 1, From: b.RowHost[r], Round: 5, Job: 1}, Body: body}
		}
	}
	return nil
}

// TestSwitchAdds: a row for two aggregators recirculates once; a duplicate is dropped; a sum
// leaves with the last of its rows; a resent row releases its aggregator and goes on.
func TestSwitchAdds(t *testing.T) {
	p := pair(t)
	s := NewSwitch(p.Table(1, 1))
	var sums []int32
	emit := func(port int, out *Packet) {
		if port == 1 && out.Has(Sum) {
			sums = append(sums, out.Body[0])
		}
	}
	if took := s.Handle(0, rowOf(p, 0, 3), emit); took != (Took{Recirculated: 1}) || s.Occupied() != 2 {
		t.Errorf("%+v, %d occupied", took, s.Occupied())
	}
	if took := s.Handle(0, rowOf(p, 0, 3), emit); !took.Dropped || len(sums) > 0 {
		t.Errorf("a duplicate: %+v, sums %v", took, sums)
	}
	if took := s.Handle(1, rowOf(p, 1, 3), emit); !took.Dropped {
		t.Error("a row of another host was added")
	}
	resent := rowOf(p, 0, 3)
	resent.Flags, resent.To, resent.Destination = Resend, 1, p.Blocks[0].Into[0]+0
	forwarded := 0
	s.Handle(0, resent, func(port int, out *Packet) {
		if forwarded++; port != 1 || !out.Has(Resend) || out.Body[0] != 3 {
			t.Errorf("port %d: %+v", port, out)
		}
	})
	if forwarded != 1 || s.Occupied() != 1 {
		t.Errorf("%d forwarded, %d occupied", forwarded, s.Occupied())
	}
	s.Handle(0, rowOf(p, 1, 4), emit)
	if len(sums) != 1 || sums[0] != 7 {
		t.Errorf("sums %v", sums)
	}
	for port := range 2 {
		s.Handle(port, &Packet{Header: Header{Flags: Done, Round: 5, Job: 1}}, emit)
	}
	if s.Round() != 6 || s.Occupied() != 0 {
		t.Errorf("round %d, %d occupied", s.Round(), s.Occupied())
	}
}

// TestSwitchOverflow: a sum that does not fit says so, and has no lanes.
func TestSwitchOverflow(t *testing.T) {
	p := pair(t)
	s := NewSwitch(p.Table(1, 1))
	over := 0
	for _, v := range []uint32{0, 1} {
		s.Handle(0, rowOf(p, v, math.MaxInt32/2+1), func(_ int, out *Packet) {
			if over++; !out.Has(Overflow) || len(out.Body) > 0 {
				t.Errorf("%+v", out)
			}
		})
	}
	if over != 2 {
		t.Errorf("%d sums", over)
	}
}

// TestOverflowIsPulled: hosts add rows themselves whose sum does not fit, without waiting
// for a timeout.
func TestOverflowIsPulled(t *testing.T) {
	g := &Graph{Host: make([]uint16, 3001)}
	g.Host[0] = 1
	for v := uint32(1); v <= 3000; v++ {
		g.Src, g.Dst = append(g.Src, v), append(g.Dst, 0)
	}
	blocks, _ := Blocks(g, Slots(8), nil)
	s := &schedule{graph: g, plan: &Plan{Blocks: blocks, Hosts: 2}, width: 2,
		network: &network{rand: newRand(1), delay: time.Microsecond, due: make([]time.Duration, 2)}}
	s.tables = []*Table{s.plan.Table(1, 1)}
	s.restart0()
	for h := range 2 {
		s.hosts = append(s.hosts, NewHost(s.plan, h, 1, 1, DefaultHost))
	}
	for range g.Host {
		s.rows, s.sums = append(s.rows, []float64{1, 0.99}), append(s.sums, make([]float64, 2))
	}
	s.exchange(t)
	s.check(t)
	if c := s.hosts[1].Count; c.Sums != 0 || c.Raw != 1 || c.Pulls != 3000 {
		t.Errorf("%+v", c)
	}
}

func TestTableMemory(t *testing.T) {
	table := pair(t).Table(1, 2)
	if need := table.Registers(); table.Check(need) != nil || table.Check(need-1) == nil {
		t.Error("the budget is not kept")
	}
	if n := Registers(10<<20, 1, 1).Aggregators(); n != 10<<20/144 {
		t.Errorf("%d aggregators of 128 bytes in 10 MiB", n)
	}
}

func TestNotFinite(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1)} {
		s := newSchedule(t, 5)
		s.draw()
		s.rows[0][0] = x
		for k, h := range s.hosts {
			h.Begin(&Exchange{Hi: len(s.plan.Blocks), Width: s.width, Most: []float64{x, 1, 1, 1, 1}[k]})
			s.put(event{at: k})
		}
		for !s.finished() {
			s.step(t)
		}
		for _, h := range s.hosts {
			if h.Err() == nil {
				t.Error("a number that is not finite was sent")
			}
		}
	}
}

// TestRate: the rate begins at the most, falls in proportion to the share of marked packets, once per interval, and
// comes back: half of the way per interval without marks. Marks that do not end leave it at two steps by that share.
func TestRate(t *testing.T) {
	r := Rate{Min: 1, Max: 1600, Step: 10, Interval: time.Second, Burst: 1}
	interval := func(k, packets, marked int) {
		for i := range packets {
			r.Arrived(time.Duration(k)*time.Second+time.Duration(1+i)*time.Millisecond, i < marked)
		}
	}
	if interval(0, 32, 32); r.Current() != 1600 {
		t.Errorf("rate %g before the interval is over, want 1600", r.Current())
	}
	if interval(1, 1, 0); r.Current() != 1600*(1-1./32)+10 {
		t.Errorf("rate %g after one of marks, want %g", r.Current(), 1600*(1-1./32)+10)
	}
	if interval(2, 1, 0); r.Current() != 1590 {
		t.Errorf("rate %g after one without, want 1590: half of the way back and a step", r.Current())
	}
	for _, marked := range []int{8, 4, 2} { // of 8
		for k := range 300 {
			interval(3+300*(8-marked)+k, 8, marked)
		}
		want := min(2*10/(float64(marked)/8), 1600)
		if now := r.Current(); now < 0.9*want || now > 1.1*want {
			t.Errorf("rate %g where %d of 8 packets are marked for long, want about %g", now, marked, want)
		}
	}
	sent, start := 0, 3000*time.Second
	for now := start; now < start+5*time.Second; {
		ok, next := r.Allow(now, 1)
		if ok {
			sent++
			continue
		}
		now = next
	}
	if sent < 5*1500 || sent > 5*1601 {
		t.Errorf("%d bytes in 5 s at %g", sent, r.Current())
	}
}

// TestRateFollowsTheRoundTrip: a mark per interval of twice the length lowers the rate half as often.
func TestRateFollowsTheRoundTrip(t *testing.T) {
	lowered := func(roundTrip time.Duration) (n int) {
		r := Rate{Max: 1600, Interval: time.Hour, Burst: 1}
		r.Follow(roundTrip)
		for now, last := time.Duration(0), 1600.; now < 800*us; now += us {
			if r.Arrived(now, true); r.Current() < last {
				n, last = n+1, r.Current()
			}
		}
		return n
	}
	if short, long := lowered(10*us), lowered(20*us); short != 79 || long != 39 {
		t.Errorf("lowered %d and %d times, want 79 and 39", short, long)
	}
}

func FuzzPacket(f *testing.F) {
	f.Add((&Packet{Header: Header{Source: 1, Flags: Sum, Job: 7}, Body: []int32{1, -1}}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Packet
		if p.Parse(b) != nil {
			return
		}
		if !bytes.Equal(p.Append(nil), b) {
			t.Errorf("%+v is not what was read", p)
		}
		s := NewSwitch(pair(t).Table(p.Job, 1))
		s.Handle(int(p.From)%2, &p, func(int, *Packet) {})
	})
}

// BenchmarkSwitch is the switch alone: rows of 1 KiB for d aggregators.
func BenchmarkSwitch(b *testing.B) {
	for _, c := range []struct {
		name  string
		units int
		d     int
	}{{"units=1/d=1", 1, 1}, {"units=8/d=1", 8, 1}, {"units=8/d=4", 8, 4}} {
		b.Run(c.name, func(b *testing.B) {
			g := &Graph{}
			const rows = 4096
			for v := range 2 * rows {
				g.Host = append(g.Host, uint16(v/rows))
			}
			for u := range uint32(rows) {
				for k := range uint32(c.d) {
					g.Src, g.Dst = append(g.Src, u), append(g.Dst, rows+(u+k)%rows)
				}
			}
			blocks, _ := Blocks(g, Slots(rows), nil)
			p := &Plan{Blocks: blocks, Hosts: 2}
			s, body := NewSwitch(p.Table(1, c.units)), make([]int32, c.units*UnitLanes)
			b.SetBytes(int64(4 * len(body)))
			for i := range b.N {
				head := Header{Source: uint32(i % rows), Round: uint32(1 + i/rows), Job: 1}
				s.Handle(0, &Packet{Header: head, Body: body}, func(int, *Packet) {})
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
