//go:build amd64 || arm64 || riscv64 || loong64

package xdp

import (
	"testing"

	"starling/innet"
	"starling/internal/testseed"
)

// forgeable are the packets that a forged one of a later round may look like: a row among them.
var forgeable = []uint8{innet.Done, innet.ACK, innet.Done | innet.Fetch, innet.Fetch, innet.Resend, innet.Overflow}

// forged is a packet of a round, as a process makes it that can forge the address of a host.
func (x *pair) forged(round uint32, flags uint8) []byte {
	return (&innet.Packet{Header: innet.Header{Flags: flags, Round: round, Job: x.table.Job}}).Append(nil)
}

// endRound has all hosts say that they are done with a round.
func (x *pair) endRound(t testing.TB, round uint32) {
	t.Helper()
	for k := range x.table.Route {
		x.feed(t, k, x.forged(round, innet.Done))
	}
	if now := x.pure.Round(); now != round+1 {
		t.Fatalf("round %d after the end of round %d", now, round)
	}
}

// TestForgedRoundsAreDropped: a switch in the kernel that has ended a round drops packets of later ones, counts them,
// and goes on with its round.
func TestForgedRoundsAreDropped(t *testing.T) {
	r := testseed.Rand(t)
	p := randomPlan(t, r)
	x := newPair(t, p.Table(r.Uint64(), 1), 1<<30)
	x.endRound(t, 6)
	for i, ahead := range []uint32{1, 2, 1 << 20, 1<<31 - 1} {
		before := x.plane.Stats()
		for _, flags := range forgeable {
			if out, passed := x.inKernel(t, i%p.Hosts, x.forged(x.pure.Round()+ahead, flags)); passed || len(out) > 0 {
				t.Errorf("flags %d, %d rounds ahead: passed %t, and the kernel sends %q", flags, ahead, passed, out)
			}
		}
		now, n := x.plane.Stats(), int64(len(forgeable))
		if now.Impossible-before.Impossible != n || now.Dropped-before.Dropped != n {
			t.Errorf("%d rounds ahead: %+v, before %+v", ahead, now, before)
		}
		for range 100 {
			host, payload := randomPacket(r, p, x.table, x.pure.Round())
			x.feed(t, host, payload)
		}
		x.endRound(t, x.pure.Round())
	}
}

// TestForgedFirstRoundIsForTheProcess: before a round has ended, a packet may be of any. One that was forged leaves
// rows of its round; the packet that shows it passes to the process, and so do all that follow.
func TestForgedFirstRoundIsForTheProcess(t *testing.T) {
	r := testseed.Rand(t)
	p := randomPlan(t, r)
	x := newPair(t, p.Table(r.Uint64(), 1), 1<<30)
	for _, c := range []struct {
		host   int
		round  uint32
		passed bool
	}{{1, 7, false}, {0, 8, false}, {1, 900, false}, {0, 8, false}, {1, 8, true}, {0, 8, true}} {
		if _, passed := x.inKernel(t, c.host, x.forged(c.round, innet.Done)); passed != c.passed {
			t.Errorf("round %d of host %d: passes to the process: %t", c.round, c.host, passed)
		}
	}
}
