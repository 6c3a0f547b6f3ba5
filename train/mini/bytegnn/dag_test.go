package bytegnn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/event"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// heldPulls is an endpoint whose rows are not sent before another worker has asked it for a second hop once more than
// the plan's batch did.
type heldPulls struct {
	wire.Endpoint
	mu     sync.Mutex
	later  int // requests to draw that are not of seed vertices
	enough chan struct{}
	held   int // pulls that waited
}

func (h *heldPulls) Serve(s wire.Service, handle wire.Handler) (func() error, error) {
	const flagsAt, ofSeeds = 12, 1
	return h.Endpoint.Serve(s, func(ctx context.Context, r *wire.Request) (wire.Response, error) {
		switch s.Name {
		case "draw edges":
			h.mu.Lock()
			if r.Body[flagsAt]&ofSeeds == 0 {
				if h.later++; h.later == 2 {
					close(h.enough)
				}
			}
			h.mu.Unlock()
		case "pull rows":
			h.mu.Lock()
			if h.later < 2 {
				h.held++
			}
			h.mu.Unlock()
			select {
			case <-h.enough:
			case <-time.After(time.Minute):
				return wire.Response{}, fmt.Errorf("rows were waited for before the next hop was drawn")
			}
		}
		return handle(ctx, r)
	})
}

// TestFetchWhileTheNextHopDraws: the rows of seed vertices are on their way while their neighbours are drawn, and the
// trace shows both at once.
func TestFetchWhileTheNextHopDraws(t *testing.T) {
	d := traintest.Communities(t, 90, false)
	parts := traintest.Cut(t, d, "random", 2)
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery, o.Model.Layers, o.Model.Norm = 1, 0, 2, "none"
	o.Strategy = traintest.Strategy(t, "bytegnn", "roots=random")
	o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 1000, Fanouts: []int{3, 4}, Threads: 1}
	ends := traintest.BatchEnds(2, true)
	held := make([]*heldPulls, len(ends))
	for k := range ends {
		held[k] = &heldPulls{Endpoint: ends[k], enough: make(chan struct{})}
		ends[k] = held[k]
	}
	r := traintest.Observe(t, ends, parts, traintest.Ref, o)
	for k, h := range held {
		if h.held == 0 {
			t.Errorf("worker %d was asked for no row before a second hop", k)
		}
	}
	if !together(r.Spans, "wait for rows", "draw hop 2") {
		t.Errorf("the trace has no rows on their way while a second hop is drawn: %v", r.Spans)
	}
}

// together reports whether two spans of one batch, of these tasks, have a moment in common.
func together(spans []event.Span, a, b string) bool {
	for _, x := range spans {
		batch, ok := strings.CutSuffix(x.Name, a)
		for _, y := range spans {
			if ok && y.Name == batch+b && x.Start.Before(y.Start.Add(y.Dur)) && y.Start.Before(x.Start.Add(x.Dur)) {
				return true
			}
		}
	}
	return false
}

// TestSubgraphsAreOneWorkers: GraphSAINT's batches go through the same tasks.
func TestSubgraphsAreOneWorkers(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	for i, sampler := range []string{"saint-node", "saint-edge", "saint-walk"} {
		o := traintest.Options([]string{"gcn", "sage", "gat"}[i])
		o.Epochs, o.Model.Layers, o.Model.Norm = 2, 2, "none"
		m := train.BatchSettings{Sampler: sampler, Size: 30, Threads: 2}
		one := mustMini(t, traintest.Ref(), d, o, m)
		parts := traintest.Cut(t, d, "random", 2+i%2)
		traintest.SameRun(t, traintest.Batches(t, parts, o, m, true, "bytegnn").Results[0], one)
	}
}

// TestWalksAreOneWorkers: PinSAGE's neighbours by visits go through the same tasks, a step of walks each.
func TestWalksAreOneWorkers(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	for i, model := range []string{"gcn", "sage", "gat"} {
		o := traintest.Options(model)
		o.Epochs, o.Model.Layers, o.Model.Norm = 2, 2, "none"
		m := train.BatchSettings{Sampler: "pinsage", Size: 30, Fanouts: []int{3, 4}, VertexWalks: 8, WalkLength: 4,
			Restart: 0.3, Threads: 2}
		one := mustMini(t, traintest.Ref(), d, o, m)
		parts := traintest.Cut(t, d, "random", 2+i%2)
		traintest.SameRun(t, traintest.Batches(t, parts, o, m, true, "bytegnn").Results[0], one)
		traintest.SameRun(t, traintest.Batches(t, parts, o, m, true, "bytegnn", "roots=random").Results[0], one)
	}
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery, o.Model.Layers, o.Model.Norm = 1, 0, 2, "none"
	o.Strategy = traintest.Strategy(t, "bytegnn", "roots=random")
	o.Batches = &train.BatchSettings{Sampler: "pinsage", Size: 1000, Fanouts: []int{3, 4}, Threads: 1}
	r := traintest.Observe(t, traintest.BatchEnds(2, true), traintest.Cut(t, d, "random", 2), traintest.Ref, o)
	for _, task := range []string{"draw hop 1", "walk hop 1", "wait for hop 1", "walk hop 2"} {
		if !slices.ContainsFunc(r.Spans, func(x event.Span) bool { return strings.HasSuffix(x.Name, task) }) {
			t.Errorf("the trace has no task %q", task)
		}
	}
}

// TestBatchMemory: with place for no batch there is one that is trained on and one under way, and the result is that
// of a run with place for all. Launches are counted.
func TestBatchMemory(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
	m := train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 4}, Threads: 4}
	parts := traintest.Cut(t, d, "random", 2)
	want := traintest.Batches(t, parts, o, m, true, "bytegnn").Results[0]
	got := traintest.Batches(t, parts, o, m, true, "bytegnn", "batch_memory=1B").Results[0]
	traintest.SameRun(t, got, want)
	for _, r := range []*train.Result{want, got} {
		l := r.Launches
		if n := l.NoneUnderWay + l.NoneWaits + l.Score; n != int64(3*((len(d.Splits.Train)+9)/10)) {
			t.Errorf("%+v: %d launches of %d training vertices in batches of 10 in 3 epochs", l, n, len(d.Splits.Train))
		}
	}
	if l := got.Launches; l.Allowed != 2 || l.Most > 5 { // before a batch is known to be too large, one per thread
		t.Errorf("with memory for no batch: %+v", l)
	}
}
