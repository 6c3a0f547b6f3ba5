package simulate

import (
	"context"
	"fmt"
	"math"
	"testing"

	"starling/event"
	"starling/setup/setuptest"
	"starling/spec"
	"starling/wire"
	"starling/worker"
)

// TestWaitingOfBatchesIsTheSpans: the share of time that mini-batches wait is what the spans of the workers' timelines
// sum up to. On a slow link it is most of an epoch, and all of it where computing takes no time; one worker, which has
// all it needs, does not wait.
func TestWaitingOfBatchesIsTheSpans(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for _, c := range []struct {
		strategy string
		learnt   int
	}{{"distdgl", 0}, {"distdgl", 8}, {"salient", 0}, {"lookahead", 0}, {"bytegnn", 0}, {"hopgnn", 0}, {"naive-hop", 0}, {"p3", 0},
		{"cobatch", 0}} {
		t.Run(fmt.Sprint(c.strategy, c.learnt), func(t *testing.T) {
			o := simulated(dir, c.strategy)
			o.Mode, o.Rate, o.Cluster.Workers, o.Cluster.InProcess, o.Training.EvalEvery = "mini", "10Mbps", 3, true, 0
			o.Batches.Size = 40
			if o.Embeddings.Dim = c.learnt; c.learnt > 0 {
				o.Model.InputDropout = spec.Off
			}
			slow := waitShare(t, o)
			if slow <= 0.5 || slow >= 1 {
				t.Errorf("on a link of %s workers wait %.1f%% of the time", o.Rate, 100*slow)
			}
			o.Rate = "10Gbps"
			if fast := waitShare(t, o); fast >= slow {
				t.Errorf("on a link of %s workers wait %.1f%% of the time, on a slow one %.1f%%", o.Rate, 100*fast, 100*slow)
			}
			o.Rate, o.Computing = "10Mbps", "none"
			if all := waitShare(t, o); math.Abs(all-1) > 1e-9 {
				t.Errorf("with free computing workers wait %.3f%% of the time", 100*all)
			}
			o.Computing, o.Cluster.Workers = someRates, 1
			if alone := waitShare(t, o); alone != 0 {
				t.Errorf("one worker waits %.3f%% of the time", 100*alone)
			}
		})
	}
}

// waitShare simulates a case, and returns the share of the epochs' time that its report has as waiting, which is
// what the workers' waits sum up to.
func waitShare(t *testing.T, o Options) float64 {
	t.Helper()
	cases, err := o.Cases()
	if err != nil {
		t.Fatal(err)
	}
	s, err := o.prepare(t.Context(), cases[0].Spec, event.All())
	if err != nil {
		t.Fatal(err)
	}
	defer s.parts.Remove()
	reported := make([][]event.Event, o.Cluster.Workers)
	var shares []*worker.Share
	if _, err = s.scenario.Run(func(ends []wire.Endpoint) (err error) {
		shares, err = worker.Together(ends, func(end wire.Endpoint) (*worker.Share, error) {
			list := &reported[end.Rank()]
			return s.worker(context.WithoutCancel(t.Context()), end, event.Func(func(e event.Event) {
				*list = append(*list, e)
			}))
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r, err := worker.JoinShares(shares)
	if err != nil {
		t.Fatal(err)
	}
	share, spans := float64(s.run().Report(shares, r, 0).WaitShare), 0.0
	for _, list := range reported {
		spans += waited(list) / float64(len(reported))
	}
	if math.Abs(share-spans) > 1e-9 {
		t.Errorf("%d workers on %s: the report has %.4f%%, spans %.4f%%", o.Cluster.Workers, o.Rate, 100*share, 100*spans)
	}
	return share
}

// waited is the share of a worker's epochs in which it waited, outside evaluations. It waits for one thing at a time.
func waited(reported []event.Event) float64 {
	var trained, waited float64
	var waits []event.Span
	for _, e := range reported {
		switch e := e.(type) {
		case event.Started:
			waits = nil
		case event.Span:
			if e.Kind == "wait" {
				waits = append(waits, e)
			}
			if e.Name != "evaluate" {
				break
			}
			for len(waits) > 0 && !waits[len(waits)-1].Start.Before(e.Start) {
				waits = waits[:len(waits)-1]
			}
		case event.Epoch:
			trained += e.Seconds
			for _, w := range waits {
				waited += w.Dur.Seconds()
			}
			waits = nil
		}
	}
	return waited / trained
}
