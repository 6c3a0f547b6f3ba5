package run

import (
	"math/rand/v2"
	"slices"
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
// measurements count for nothing, and a transfer may be told of an epoch late.
func TestMeter(t *testing.T) {
	m := newMeter(wire.NewLedger())
	for _, e := range []event.Event{
		event.Started{},
		span("transfer", "rows", 0, 100), span("transfer", "rows", 50, 200), span("wait", "rows", 150, 210),
		span("step", "forward", 0, 220),
		span("wait", "gradients", 300, 340),
		span("step", "update", 300, 350),
		span("transfer", "rows", 400, 500), span("wait", "rows", 400, 500),
		span("step", "evaluate", 400, 500),
		event.Epoch{Seconds: 0.35},
		span("transfer", "late rows", 330, 620),
		span("step", "forward", 600, 700), span("step", "update", 700, 850),
		event.Epoch{Seconds: 0.25},
	} {
		m.On(e)
	}
	got := m.total()
	if got.Epochs != 2 || !near(got.Trained, 0.6) || !near(got.Waited, 0.1) || !near(got.Transfer, 0.24) || !near(got.Exposed, 0.05) {
		t.Errorf("%+v", got)
	}
	r := &Report{}
	r.addTimes([]*share{{Metered: got}, {Metered: metered{Epochs: 2, Trained: 0.6}}})
	if !near(float64(r.WaitShare), 0.1/0.6/2) || !near(float64(r.TransferSeconds), 0.06) || !near(float64(r.HiddenShare), 1-0.05/0.24) {
		t.Errorf("%+v", r)
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

// TestTraceAgrees: what the report says was hidden is what the spans of the timeline
// say, moment by moment.
func TestTraceAgrees(t *testing.T) {
	s := quick(block(t, nil))
	s.Workers, s.InProcess, s.Trace = 3, true, t.TempDir()+"/trace.json"
	spans := make([][]event.Span, 3)
	r := trained(t, s, event.Func(func(e event.Event) {
		if x, ok := e.(event.Span); ok {
			spans[x.Worker] = append(spans[x.Worker], x)
		}
	}))
	var transfer, held float64
	for _, list := range spans {
		a, b := hiddenSlowly(list)
		transfer, held = transfer+a, held+b
	}
	perEpoch := transfer / 3 / float64(s.Epochs)
	if hidden := 1 - held/transfer; !near(float64(r.TransferSeconds), perEpoch) || !near(float64(r.HiddenShare), hidden) {
		t.Errorf("%v s an epoch, %v hidden; the timeline has %v and %v", r.TransferSeconds, r.HiddenShare, perEpoch, hidden)
	}
}

// hiddenSlowly looks at every moment between two ends of spans: the seconds of epochs in
// which rows were on their way, and those of them in which they were waited for.
func hiddenSlowly(spans []event.Span) (transfer, held float64) {
	var cuts []time.Time
	for _, s := range spans {
		cuts = append(cuts, s.Start, s.Start.Add(s.Dur))
	}
	slices.SortFunc(cuts, time.Time.Compare)
	var begun time.Time
	var epochs []stretch
	for _, s := range spans {
		switch {
		case s.Kind == "step" && s.Name == "forward":
			begun = s.Start
		case s.Kind == "step" && s.Name == "update":
			epochs = append(epochs, stretch{begun, s.Start.Add(s.Dur)})
		}
	}
	during := func(at time.Time, s stretch) bool { return !at.Before(s.from) && at.Before(s.to) }
	any := func(at time.Time, kind string) bool {
		return slices.ContainsFunc(spans, func(s event.Span) bool {
			return s.Kind == kind && s.Name != "gradients" && s.Name != "sums over all workers" && during(at, stretch{s.Start, s.Start.Add(s.Dur)})
		})
	}
	for i := range len(cuts) - 1 {
		if at := cuts[i]; slices.ContainsFunc(epochs, func(e stretch) bool { return during(at, e) }) && any(at, "transfer") {
			length := cuts[i+1].Sub(at).Seconds()
			transfer += length
			if any(at, "wait") {
				held += length
			}
		}
	}
	return transfer, held
}
