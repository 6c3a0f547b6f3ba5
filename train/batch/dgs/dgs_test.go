package dgs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
	"starling/wire"
)

func mustMini(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, m train.BatchSettings) *train.Result {
	t.Helper()
	return traintest.Ran(t)(batch.Run(context.Background(), dev, d, o, m, nil))
}

// dgsOptions are the options of a small run with dgs on.
func dgsOptions(more ...string) []string {
	return append([]string{"dgs", "dgs_every=3", "dgs_epochs=5", "dgs_share=0"}, more...)
}

var dgsBatches = train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{3, 3}, Threads: 2}

// TestMasksOfOneAreNoMasks: with all masks at one, and all columns, a run is that without DGS.
func TestMasksOfOneAreNoMasks(t *testing.T) {
	for i, strategy := range []string{"distdgl", "bytegnn", "hopgnn", "salient"} {
		model := []string{"gcn", "sage", "gat", "gin"}[i]
		d := traintest.Communities(t, 120, i%2 == 1)
		o := traintest.Options(model)
		o.Epochs, o.Model.Layers, o.Model.Norm = 4, 2, "none"
		parts := traintest.Cut(t, d, "random", 3)
		plain := traintest.Batches(t, parts, o, dgsBatches, true, strategy).Results[0]
		one := mustMini(t, traintest.Ref(), d, o, dgsBatches)
		for _, masks := range []string{"both", "nodes", "features"} {
			for _, epsilon := range []string{"0", "0.1"} {
				got := traintest.Batches(t, parts, o, dgsBatches, true, strategy, "dgs", "dgs_every=2", "dgs_epochs=0",
					"dgs_features=1", "dgs_epsilon="+epsilon, "dgs_masks="+masks).Results[0]
				traintest.SameRun(t, got, plain)
				traintest.SameRun(t, got, one)
			}
		}
	}
}

// TestGuidedRunsAreRepeatable: whatever is scheduled when, and whether rows travel or are read in
// place, a run with DGS has one result, and another one than a run without.
func TestGuidedRunsAreRepeatable(t *testing.T) {
	for i, strategy := range []string{"distdgl", "bytegnn", "hopgnn", "salient", "cobatch"} {
		d := traintest.Communities(t, 120, i%2 == 1)
		o := traintest.Options([]string{"sage", "gcn", "gat", "sage", "gcn"}[i])
		o.Epochs, o.Model.Layers, o.Model.Norm = 4, 2, "none"
		parts := traintest.Cut(t, d, "random", 3)
		if strategy == "cobatch" { // a server's workers fetch rows of other servers only
			parts = traintest.CutForServers(t, d, "random", 4, 2)
		}
		plain := traintest.Batches(t, parts, o, dgsBatches, true, strategy).Results[0]
		for _, masks := range []string{"both", "nodes", "features"} {
			more := []string{"dgs_masks=" + masks, "dgs_features=0.5"}
			if strategy == "cobatch" && masks != "features" {
				continue
			}
			if strategy == "hopgnn" {
				more = append(more, "merge=1") // by links it would differ
			}
			first := traintest.Batches(t, parts, o, dgsBatches, true, strategy, dgsOptions(more...)...).Results[0]
			threads := dgsBatches
			threads.Threads = 1
			again := traintest.Batches(t, parts, o, threads, false, strategy, dgsOptions(more...)...).Results[0]
			if !slices.Equal(first.Loss, again.Loss) || !slices.Equal(first.Val, again.Val) {
				t.Errorf("%s, %s: losses %v, then %v", strategy, masks, first.Loss, again.Loss)
			}
			if slices.Equal(first.Loss, plain.Loss) {
				t.Errorf("%s, %s: losses are those without masks", strategy, masks)
			}
			if first.Loss[0] != plain.Loss[0] && strategy == "distdgl" {
				t.Errorf("%s, %s: the first epoch is drawn by masks: loss %g, without %g", strategy, masks,
					first.Loss[0], plain.Loss[0])
			}
			if u := first.Explainer; u.Explanations == 0 || u.Bytes == 0 || u.Vertices == 0 {
				t.Errorf("%s, %s: the explainer took %+v", strategy, masks, u)
			}
		}
	}
}

// TestLocality: remote vertices that count less are drawn less, from the first batch on, without an explainer and the
// same in every run; and those that count as much as others are drawn as without.
func TestLocality(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 4, 2, "none"
	parts := traintest.Cut(t, d, "random", 3)
	for _, strategy := range []string{"distdgl", "bytegnn"} {
		plain := traintest.Batches(t, parts, o, dgsBatches, true, strategy)
		same := traintest.Batches(t, parts, o, dgsBatches, true, strategy, "dgs", "dgs_by=locality", "dgs_local=1")
		traintest.SameRun(t, same.Results[0], plain.Results[0])
		near := traintest.Batches(t, parts, o, dgsBatches, true, strategy, "dgs", "dgs_by=locality", "dgs_epsilon=0")
		again := traintest.Batches(t, parts, o, dgsBatches, false, strategy, "dgs", "dgs_by=locality", "dgs_epsilon=0")
		traintest.SameRun(t, again.Results[0], near.Results[0])
		rows := func(c wire.Class) bool { return c.Kind == wire.Feature }
		if near.Sum(rows) >= plain.Sum(rows)*9/10 || near.Results[0].Explainer.Explanations > 0 {
			t.Errorf("%s: %d bytes of rows, %d without locality", strategy, near.Sum(rows), plain.Sum(rows))
		}
	}
}

// TestControls: shuffled masks are the same masks elsewhere, and their mean has as much weight.
func TestControls(t *testing.T) {
	masks := []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}
	for _, by := range []string{"learned", "shuffled", "mean"} {
		o := Options{DGSBy: by}
		out := &explained{nodes: masks, columns: masks}
		o.control(out, rng.New(3))
		sum := 0.0
		for _, m := range out.nodes {
			sum += m
		}
		if same := slices.Equal(out.nodes, masks); same != (by == "learned") || math.Abs(sum-3.6) > 1e-12 {
			t.Errorf("%s: %v", by, out.nodes)
		}
		if sorted := slices.Sorted(slices.Values(out.columns)); !slices.Equal(sorted, masks) {
			t.Errorf("%s: columns %v", by, out.columns)
		}
	}
}

// TestPacedRunsGoOn: with fewer vertices explained, and masks used again, a run that is resumed ends as one that was
// not.
func TestPacedRunsGoOn(t *testing.T) {
	r := newResumable(t, 10, "distdgl", "dgs_share=0.05", "dgs_every=2")
	states, short := make([]train.State, len(r.parts)), r.o
	short.Epochs = r.stop
	guidedWorkers(t, r.parts, short, nil, func(rank int, s *train.State) { states[rank] = *s })
	r.goesOn(t, "paced", states)
}

// TestGuidedRunsSendLess: masks of features save their share of the columns of every row, and all
// masks together send fewer rows too.
func TestGuidedRunsSendLess(t *testing.T) {
	d := traintest.Communities(t, 300, false)
	parts := traintest.Cut(t, d, "fennel", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 10, 2, "none", 0
	rows := func(options ...string) int64 {
		r := traintest.Batches(t, parts, o, dgsBatches, true, "distdgl", options...)
		return r.Sum(func(c wire.Class) bool { return c.Kind == wire.Feature })
	}
	plain, features := rows(), rows(dgsOptions("dgs_masks=features", "dgs_features=0.5")...)
	both := rows(dgsOptions("dgs_epsilon=0", "dgs_features=0.5")...)
	if !(features < plain*8/10 && both < features) {
		t.Errorf("%d bytes of rows without masks, %d with masks of features, %d with both", plain, features, both)
	}
	dropped := rows("drop_features=0.5")
	if !(dropped < plain*6/10) {
		t.Errorf("%d bytes of rows, %d without half of the columns", plain, dropped)
	}
}

// TestGuidedResumedInsideAnEpoch: a run with DGS that goes on from any of the states it saved ends as
// the one that saved them, to the bit.
func TestGuidedResumedInsideAnEpoch(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	parts := traintest.Cut(t, d, "random", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.SaveSteps = 3, 2, "none", 2
	m := train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Threads: 2}
	for _, strategy := range []string{"distdgl", "bytegnn", "hopgnn"} {
		options := dgsOptions("dgs_features=0.6")
		if strategy == "hopgnn" {
			options = append(options, "merge=1")
		}
		o.Strategy, o.Batches = traintest.Strategy(t, strategy, options...), &m
		var mu sync.Mutex
		saved := map[[2]int][]train.State{} // by epoch and batch, of all workers
		want := guidedWorkers(t, parts, o, nil, func(rank int, s *train.State) {
			mu.Lock()
			defer mu.Unlock()
			at := [2]int{s.Epoch, s.Batch}
			if saved[at] == nil {
				saved[at] = make([]train.State, len(parts))
			}
			saved[at][rank] = *s
		})
		with := 0
		for at, states := range saved {
			if at[1] == 0 {
				continue
			}
			got := guidedWorkers(t, parts, o, states, func(int, *train.State) {})
			if !slices.Equal(got.Loss, want.Loss) || got.TestMetric != want.TestMetric {
				t.Errorf("%s, from batch %d of epoch %d: losses %v, want %v", strategy, at[1], at[0], got.Loss,
					want.Loss)
			}
			with++
		}
		if with < 4 {
			t.Fatalf("%d states inside epochs", with)
		}
	}
}

// TestKilledExplainer: an explainer whose goroutine ends or panics begins anew, and the run ends as
// one whose explainers live; one that cannot be brought to its end fails the run, which does not
// hang.
func TestKilledExplainer(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	parts := traintest.Cut(t, d, "random", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 4, 2, "none"
	o.Batches = &dgsBatches
	defer func() { explainerFault = nil }()
	for _, strategy := range []string{"distdgl", "bytegnn"} {
		o.Strategy = traintest.Strategy(t, strategy, dgsOptions()...)
		explainerFault = nil
		want := guidedWorkers(t, parts, o, nil, nil)
		var killed atomic.Int64
		explainerFault = func(rank, number, attempt int) {
			if attempt == 0 && (rank+number)%2 == 0 {
				killed.Add(1)
				runtime.Goexit()
			}
			if attempt == 1 && rank == 1 {
				panic("a fault that was injected")
			}
		}
		got := guidedWorkers(t, parts, o, nil, nil)
		if killed.Load() == 0 || !slices.Equal(got.Loss, want.Loss) {
			t.Errorf("%s: after %d explainers that were killed losses %v, want %v", strategy, killed.Load(), got.Loss,
				want.Loss)
		}
		explainerFault = func(rank, _, _ int) {
			if rank == 1 {
				runtime.Goexit()
			}
		}
		ends := traintest.Ends(len(parts))
		errs := make([]error, len(parts))
		traintest.Each(len(parts), func(k int) {
			_, errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o, nil)
		})
		traintest.Close(ends)
		if slices.Contains(errs, nil) {
			t.Errorf("%s: with an explainer that never ends well workers ended with %v", strategy, errs)
		}
	}
}

// TestAsyncMasks: as published, masks take effect when they are there.
func TestAsyncMasks(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	parts := traintest.Cut(t, d, "random", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 10, 2, "none"
	for _, strategy := range []string{"distdgl", "bytegnn", "hopgnn"} {
		r := traintest.Batches(t, parts, o, dgsBatches, true, strategy, dgsOptions("dgs_async")...).Results[0]
		if l := r.Loss; r.Explainer.Explanations == 0 || l[len(l)-1] > l[0] {
			t.Errorf("%s: %+v, losses %v", strategy, r.Explainer, l)
		}
	}
}

// TestDroppedColumns: columns that are left out of all rows are the same for any number of workers;
// of remote rows they save their share.
func TestDroppedColumns(t *testing.T) {
	for i, c := range []struct {
		strategy string
		m        train.BatchSettings
	}{
		{"distdgl", dgsBatches},
		{"distdgl", train.BatchSettings{Sampler: "fastgcn", Size: 20, Fanouts: []int{40, 40}, Threads: 2}},
		{"distdgl", train.BatchSettings{Sampler: "ladies", Size: 20, Fanouts: []int{40, 40}, Threads: 2}},
		{"bytegnn", dgsBatches},
		{"hopgnn", dgsBatches},
		{"salient", dgsBatches},
		{"cobatch", dgsBatches},
	} {
		t.Run(fmt.Sprint(c.strategy, c.m.Sampler), func(t *testing.T) {
			d := traintest.Communities(t, 120, i%2 == 1)
			o := traintest.Options("sage")
			o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
			options := []string{"drop_features=0.4", "drop_features_of=all"}
			alone := traintest.Cut(t, d, "random", 1)
			one := traintest.Batches(t, alone, o, c.m, false, c.strategy, options...).Results[0]
			for _, workers := range []int{2, 4} {
				parts := traintest.Cut(t, d, "random", workers)
				got := traintest.Batches(t, parts, o, c.m, workers == 2, c.strategy, options...)
				traintest.SameRun(t, got.Results[0], one)
			}
			whole := traintest.Batches(t, traintest.Cut(t, d, "random", 1), o, c.m, false, c.strategy).Results[0]
			if slices.Equal(whole.Loss, one.Loss) {
				t.Error("no column was left out")
			}
		})
	}
	m := train.BatchSettings{Sampler: "cluster-local", Size: 60, Threads: 2}
	d := traintest.Communities(t, 120, false)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
	parts := traintest.Cut(t, d, "random", 2)
	all := traintest.Batches(t, parts, o, m, true, "distdgl", "drop_features=0.4", "drop_features_of=all").Results[0]
	remote := traintest.Batches(t, parts, o, m, true, "distdgl", "drop_features=0.4").Results[0]
	plain := traintest.Batches(t, parts, o, m, true, "distdgl").Results[0]
	if slices.Equal(all.Loss, plain.Loss) || !slices.Equal(remote.Loss, plain.Loss) {
		t.Errorf("clusters of own parts fetch no rows: losses %v, without columns of remote rows %v, of all %v",
			plain.Loss, remote.Loss, all.Loss)
	}
}

// TestDGSRefuses: what does not go together says why.
func TestDGSRefuses(t *testing.T) {
	d := traintest.Communities(t, 60, false)
	parts := traintest.Cut(t, d, "random", 2)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 1, 2, "none"
	for _, c := range []struct {
		m       train.BatchSettings
		options []string
		want    string
	}{
		{train.BatchSettings{Sampler: "fastgcn", Size: 20, Fanouts: []int{9, 9}}, []string{"dgs"},
			"probabilities of its own"},
		{train.BatchSettings{Sampler: "cluster-local", Size: 20}, []string{"dgs"}, "probabilities of its own"},
		{train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{2, 2}, Replace: true}, []string{"dgs"},
			"--dgs-masks"},
		{train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{sample.All, 2}},
			[]string{"dgs", "cache=s3fifo"}, "s3fifo"},
		{dgsBatches, []string{"drop_features=0.1", "cache=s3fifo"}, "s3fifo"},
	} {
		o.Strategy, o.Batches = traintest.Strategy(t, "distdgl", c.options...), &c.m
		ends := traintest.Ends(2)
		errs := make([]error, 2)
		traintest.Each(2, func(k int) { _, errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o, nil) })
		traintest.Close(ends)
		mentions(t, errs[0], c.want)
	}
	for options, want := range map[string]string{"dgs_every=0": "at least 1", "dgs_epsilon=2": "from 0 to 1",
		"dgs_features=0": "above 0", "drop_features=1": "below 1", "dgs_epochs=-1": "negative",
		"dgs_local=0": "above 0", "dgs_share=-1": "negative"} {
		_, err := traintest.Choose("distdgl", "dgs", options)
		mentions(t, err, want)
	}
	_, err := traintest.Choose("hopgnn", "dgs", "drop_features=0.1")
	mentions(t, err, "leave out one")
	_, err = traintest.Choose("cobatch", "dgs")
	mentions(t, err, "--dgs-masks features")
	if _, err := traintest.Choose("p3", "dgs"); err == nil {
		t.Error("p3 takes --dgs")
	}
}

// guidedWorkers is rank 0's result of a run, of which each worker may go on from a state of its own.
func guidedWorkers(t *testing.T, parts []*partition.Part, o train.Options, from []train.State,
	save func(rank int, s *train.State)) *train.Result {
	t.Helper()
	ends := traintest.Ends(len(parts))
	defer traintest.Close(ends)
	results, errs := make([]*train.Result, len(parts)), make([]error, len(parts))
	traintest.Each(len(parts), func(k int) {
		own := o
		if from != nil {
			own.Resume = &from[k]
		}
		if save != nil {
			own.Save = func(s *train.State) error {
				save(k, s)
				return nil
			}
		}
		results[k], errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, own, nil)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return results[0]
}

// mentions checks that an error says something.
func mentions(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
