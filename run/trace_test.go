package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"starling/event"
	"starling/setup/setuptest"
)

// TestTraceAgrees: the share of hidden transfers in the report equals the share that the spans of the
// timeline give, computed by looking at every moment.
func TestTraceAgrees(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.InProcess, s.Output.Trace = 3, true, t.TempDir()+"/trace.json"
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
	perEpoch := transfer / 3 / float64(s.Training.Epochs)
	if hidden := 1 - held/transfer; !near(float64(r.TransferSeconds), perEpoch) ||
		!near(float64(r.HiddenShare), hidden) {
		t.Errorf("%v s per epoch, %v hidden; the timeline has %v and %v", r.TransferSeconds, r.HiddenShare, perEpoch,
			hidden)
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
			return s.Kind == kind && s.Name != "gradients" && s.Name != "sums over all workers" &&
				!strings.HasSuffix(s.Name, " to leave") && during(at, stretch{s.Start, s.Start.Add(s.Dur)})
		})
	}
	for i := range len(cuts) - 1 {
		if at := cuts[i]; slices.ContainsFunc(epochs, func(e stretch) bool { return during(at, e) }) &&
			any(at, "transfer") {
			length := cuts[i+1].Sub(at).Seconds()
			transfer += length
			if any(at, "wait") {
				held += length
			}
		}
	}
	return transfer, held
}

// stretch is an interval of time.
type stretch struct{ from, to time.Time }

func near(x, want float64) bool { return x > want-1e-9 && x < want+1e-9 }
