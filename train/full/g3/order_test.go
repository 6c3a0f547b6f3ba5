package g3

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"starling/event"
	"starling/exchange"
	"starling/train/traintest"
	"starling/wire"
)

// TestOrders: in both orders each row travels once, and what one worker sends in a
// chunk is what the other expects in it.
func TestOrders(t *testing.T) {
	d := traintest.Communities(t, 150, false)
	parts := traintest.Cut(t, d, "fennel", 4)
	bound := func(rows int) []int { return cutBins(rows, 5) }
	dev := traintest.Ref()
	for _, name := range []string{"owner", "need"} {
		sent, expected := map[string][]uint32{}, map[string][]uint32{}
		for k, p := range parts {
			cut := &cutting{w: &exchange.Worker{Dev: dev, Part: p}, plan: exchange.PartHalo(p),
				from: bound(p.Core()), to: bound(p.Core()), theirs: boundsOf(p.Book, bound)}
			send, halo := cut.byOwner()
			if name == "need" {
				send, halo, _ = cut.byNeed(nil)
			}
			o := cut.order(send, halo)
			at := o.haloAt
			for _, c := range o.sends {
				for _, v := range o.places[c.lo:c.hi] {
					key := fmt.Sprintf("%d to %d, %d", k, c.peer, c.number)
					sent[key] = append(sent[key], p.IDs[v])
				}
			}
			back := make([]int, len(at))
			for i, place := range at {
				back[place] = i
			}
			for _, c := range o.halos {
				for row := c.lo; row < c.hi; row++ {
					key := fmt.Sprintf("%d to %d, %d", c.peer, k, c.number)
					expected[key] = append(expected[key], p.IDs[p.Core()+back[row]])
				}
			}
		}
		if len(sent) != len(expected) || len(sent) < 20 {
			t.Fatalf("by %s: %d chunks leave, %d are expected", name, len(sent), len(expected))
		}
		for key, ids := range sent {
			if !slices.Equal(ids, expected[key]) {
				t.Fatalf("by %s, %s: %v leave, %v are expected", name, key, ids, expected[key])
			}
		}
	}
}

// TestBinsCoverAllRows: bins are ranges one after the other, within the budget.
func TestBinsCoverAllRows(t *testing.T) {
	for _, rows := range []int{0, 1, 5, 16, 17, 1000, 123456} {
		for _, budget := range []int64{0, 1, 1 << 10, 1 << 30} {
			each := binRows(rows, rowBytes{100, 50}, 1, budget)
			at := cutBins(rows, each)
			if budget >= 200 && int64(each)*100 > budget/2 || at[0] != 0 || at[len(at)-1] != rows || budget == 0 &&
				len(at)-1 > mostBins {
				t.Fatalf("%d rows, budget %d: %d rows per bin, bounds %v", rows, budget, each, at)
			}
			for b := range len(at) - 1 {
				if rows > 0 && (at[b] >= at[b+1] || at[b+1]-at[b] > each || binOf(at, at[b]) != b ||
					binOf(at, at[b+1]-1) != b) {
					t.Fatalf("%d rows, budget %d: bin %d of %v", rows, budget, b, at)
				}
			}
		}
	}
}

// TestBinsAmongManyWorkers: a bin has enough rows that the message for one of many peers is worth sending;
// among a few, the number of bins decides.
func TestBinsAmongManyWorkers(t *testing.T) {
	for _, c := range []struct {
		rows    int
		perPeer float64
		want    int
	}{{1562, 18.5, 296}, {781, 28, 448}, {25000, 3, 1563}, {1562, 3, leastRows}} {
		if n := binRows(c.rows, rowBytes{1024, 512}, c.perPeer, 0); n != c.want {
			t.Errorf("%d rows, one in %g for a peer: %d per bin, want %d", c.rows, c.perPeer, n, c.want)
		}
	}
}

// TestLooksBeforeItWaits: rows that came between a look and a wait are work, however
// long others take. Where all workers waited then, none ever went on.
func TestLooksBeforeItWaits(t *testing.T) {
	ends := traintest.Ends(2)
	defer ends[0].Close()
	defer ends[1].Close()
	key := func(step uint32) wire.Key { return wire.Key{Step: step} }
	came := ends[0].Recv(1, key(1), wire.Activation, make([]byte, 1))
	never := ends[0].Recv(1, key(2), wire.Activation, make([]byte, 1))
	ends[1].Send(0, key(1), wire.Activation, []byte{1})
	if err := came.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	w := &exchange.Worker{Ctx: ctx, End: ends[0], Events: event.All()}
	g := &g3{Aggregator: &exchange.Aggregator{W: w}, rows: exchange.NewRows(w)}
	f := &flow{}
	g.coming = []arriving{{flow: f, pending: []*wire.Pending{never}}, {flow: f, pending: []*wire.Pending{came}}}
	g.await()
	if err := g.rows.Err(); ctx.Err() != nil || err != nil {
		t.Fatalf("waited for rows that no peer sends: %v, %v", ctx.Err(), err)
	}
}
