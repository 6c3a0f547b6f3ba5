package watch

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"starling/event"
	"starling/wire"
)

var noon = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

func span(kind, name string, from, to int) event.Span {
	return event.Span{Kind: kind, Name: name, Start: at(from), Dur: at(to).Sub(at(from))}
}

// TestMeter: overlapping transfers count once, waits outside transfers are not theirs,
// evaluations do not count, and a transfer may be reported an epoch later.
func TestMeter(t *testing.T) {
	m := NewMeter(wire.NewLedger())
	for _, e := range []event.Event{
		event.Started{},
		span("transfer", "rows", 0, 100), span("transfer", "rows", 50, 200), span("wait", "rows", 150, 210),
		span("step", "forward", 0, 220),
		span("wait", "gradients", 300, 340),
		span("step", "update", 300, 350),
		span("transfer", "rows", 400, 500), span("wait", "rows", 400, 500),
		span("step", "evaluate", 400, 500),
		event.Epoch{Seconds: 0.35},
		span("transfer", "stale rows", 330, 620),
		span("step", "forward", 600, 700), span("step", "update", 700, 850),
		event.Epoch{Seconds: 0.25},
	} {
		m.On(e)
	}
	got := m.Total()
	if got.Epochs != 2 || !near(got.Trained, 0.6) || !near(got.Waited, 0.1) || !near(got.Transfer, 0.24) ||
		!near(got.Exposed, 0.05) {
		t.Errorf("%+v", got)
	}
	wait, transfer, hidden := Means([]Metered{got, {Epochs: 2, Trained: 0.6}})
	if !near(wait, 0.1/0.6/2) || !near(transfer, 0.06) || !near(hidden, 1-0.05/0.24) {
		t.Error(wait, transfer, hidden)
	}
}

// TestMiniBatchesMeasureWaiting: what a step waits for before its forward pass counts, and so do sums at the end of an
// epoch; what is waited for before training and in evaluations does not.
func TestMiniBatchesMeasureWaiting(t *testing.T) {
	m := NewMeter(wire.NewLedger())
	for _, e := range []event.Event{
		span("wait", "sums over all workers", 0, 90),
		event.Started{},
		span("wait", "batch", 100, 140), span("step", "forward", 150, 200), span("wait", "gradients", 240, 250),
		span("step", "update", 230, 260),
		span("wait", "batch", 260, 280), span("wait", "partial sums", 290, 295), span("step", "forward", 285, 300),
		span("step", "update", 320, 330),
		span("wait", "sums over all workers", 340, 347),
		span("wait", "rows", 360, 380), span("step", "evaluate", 350, 390),
		event.Epoch{Seconds: 0.25},
		span("wait", "batch", 400, 401), span("step", "forward", 401, 410), span("step", "update", 420, 430),
		span("wait", "sums over all workers", 430, 433), span("step", "evaluate", 440, 450),
		event.Epoch{Seconds: 0.04},
	} {
		m.On(e)
	}
	if got, want := m.Total().Waited, 0.040+0.010+0.020+0.005+0.007+0.001+0.003; !near(got, want) {
		t.Errorf("waited %g s, want %g", got, want)
	}
}

// TestWaitingIsUnknownWhereNothingIsMeasured: without a wait in any epoch the share is not 0 but unknown; a wait that
// takes no time is measured.
func TestWaitingIsUnknownWhereNothingIsMeasured(t *testing.T) {
	for _, c := range []struct {
		wait  event.Span
		known bool
	}{{span("wait", "rows", 400, 500), false}, {span("wait", "rows", 100, 100), true}} {
		m := NewMeter(wire.NewLedger())
		for _, e := range []event.Event{span("step", "forward", 0, 200), span("step", "update", 200, 300), c.wait,
			event.Epoch{Seconds: 0.3}} {
			m.On(e)
		}
		if share, _, _ := Means([]Metered{m.Total()}); math.IsNaN(share) == c.known || c.known && share != 0 {
			t.Errorf("with %+v a share of %g", c.wait, share)
		}
	}
}

func near(x, want float64) bool { return x > want-1e-9 && x < want+1e-9 }

// TestStretches against counting milliseconds one by one.
func TestStretches(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		draw := func() (list []stretch, on [100]bool) {
			for range rnd.IntN(6) {
				from := rnd.IntN(90)
				to := from + rnd.IntN(10)
				list = append(list, stretch{at(from), at(to)})
				for i := from; i < to; i++ {
					on[i] = true
				}
			}
			return merge(list), on
		}
		a, onA := draw()
		b, onB := draw()
		var inA, both float64
		for i := range onA {
			if onA[i] {
				inA++
				if onB[i] {
					both++
				}
			}
		}
		if d := length(a) - inA/1000; d > 1e-9 || d < -1e-9 {
			t.Fatalf("seed %d: length %g, want %g", seed, length(a), inA/1000)
		}
		if d := overlap(a, b) - both/1000; d > 1e-9 || d < -1e-9 {
			t.Fatalf("seed %d: overlap %g, want %g", seed, overlap(a, b), both/1000)
		}
	}
}
