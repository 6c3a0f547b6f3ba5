package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"starling/innet"
	"starling/internal/testdeadline"
	"starling/internal/testseed"
)

// forge sends the switch packets of a round in the name of a host, as a host that can forge its address does.
func forge(t *testing.T, c *Client, round uint32) {
	t.Helper()
	for _, flags := range []uint8{innet.Done, innet.ACK, innet.Fetch, innet.Resend, 0} {
		p := innet.Packet{Header: innet.Header{Flags: flags, Round: round, Job: c.opt.Job}}
		if _, err := c.conn.WriteToUDPAddrPort(p.Append(nil), c.server); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForgedRoundsAreDropped: forged packets of later rounds, before the first exchange and between others, neither stop
// a job of an open switch nor change its sums, and are counted.
func TestForgedRoundsAreDropped(t *testing.T) {
	t.Parallel()
	testdeadline.Do(t, time.Minute, "exchanges", func() {
		s := listen(t, nil)
		j := newJob(t, testseed.Rand(t), 3, 100, 400, 40, 50)
		j.connect(t, s.Addr(), 1, nil)
		for i, round := range []uint32{1 << 20, 1 << 30, 1<<31 + 5, 1<<32 - 1} {
			forge(t, j.clients[i%3], round)
			j.exchange(t)
			j.check(t)
		}
		if n := s.Stats(); n.Impossible < 5 || n.Dropped < n.Impossible {
			t.Errorf("%+v", n)
		}
	})
}

// TestNextRoundIsImpossibleToo: of a switch that has ended rounds itself, no host can be one round further.
func TestNextRoundIsImpossibleToo(t *testing.T) {
	sw := innet.NewSwitch((&innet.Plan{Hosts: 2}).Table(1, 1))
	r := newRounds(sw)
	done := func(host int, round uint32) bool {
		p := innet.Packet{Header: innet.Header{Flags: innet.Done, Round: round, Job: 1}}
		if !r.possible(host, round) {
			return false
		}
		before := sw.Round()
		sw.Handle(host, &p, func(int, *innet.Packet) {})
		r.handled(&p, before)
		return true
	}
	for _, c := range []struct {
		host     int
		round    uint32
		possible bool
		after    uint32
	}{{0, 900, true, 900}, {0, 7, true, 7}, {1, 8, true, 8}, {0, 8, true, 9}, // registers were empty
		{0, 10, false, 9}, {1, 1<<31 + 100, true, 9}, {0, 9, true, 9}, {1, 9, true, 10}, {1, 12, false, 10}} {
		if ok := done(c.host, c.round); ok != c.possible || sw.Round() != c.after {
			t.Errorf("round %d of host %d: possible %v, and the switch is in round %d", c.round, c.host, ok, sw.Round())
		}
	}
}

// TestStallIsNamed: an exchange that does not move fails, though the switch answers: here the other host never begins.
func TestStallIsNamed(t *testing.T) {
	t.Parallel()
	testdeadline.Do(t, time.Minute, "a stalled exchange", func() {
		s := listen(t, nil)
		j := newJob(t, testseed.Rand(t), 2, 20, 60, 4, 20)
		j.connect(t, s.Addr(), 1, nil)
		c := j.clients[0]
		c.mu.Lock()
		c.opt.Progress = 200 * time.Millisecond
		c.mu.Unlock()
		err := c.Start(&innet.Exchange{Hi: len(j.plan.Blocks), Width: j.width,
			Row: func(v uint32, lo, hi int) []float64 { return j.rows[v][lo:hi] },
			Add: func(uint32, int, []float64) {}})(context.Background())
		want := fmt.Sprintf("the switch stalls: no answer for round 1 from %s in 200ms", s.Addr())
		if !errors.Is(err, ErrStall) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// TestOpenSwitchBeyondLoopback: a switch without a token listens on loopback alone, unless that is asked for.
func TestOpenSwitchBeyondLoopback(t *testing.T) {
	o := DefaultServer
	o.Listen = "0.0.0.0:0"
	if s, err := Listen(o); err == nil || !strings.Contains(err.Error(), "no token") {
		t.Errorf("%v", err)
		s.Close()
	}
	for _, change := range []func(){func() { o.Token = []byte("secret") }, func() { o.Token, o.Insecure = nil, true }} {
		change()
		s, err := Listen(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

// TestSilentConnectionsKeepNoHostOut: more connections that say nothing than the switch has places for hosts do not
// take those.
func TestSilentConnectionsKeepNoHostOut(t *testing.T) {
	t.Parallel()
	testdeadline.Do(t, time.Minute, "an exchange", func() {
		s := listen(t, func(o *ServerOptions) { o.Hosts = 3 })
		for range 10 {
			conn, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		j := newJob(t, testseed.Rand(t), 3, 30, 60, 4, 30)
		j.connect(t, s.Addr(), 1, nil)
		j.exchange(t)
		j.check(t)
	})
}
