package embeddings

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/partition"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// distributedOver trains with distdgl on a worker for each part, each on a server of its own
// if remote is set.
func distributedOver(t *testing.T, parts []*partition.Part, o train.Options, m train.BatchSettings, remote bool,
	options ...string) *traintest.Trained {
	t.Helper()
	return traintest.Batches(t, parts, o, m, remote, "distdgl", options...)
}

// TestEmbeddingsAreOneWorkers: with the same global batch learnt rows equal one worker's, and
// so is the curve, with either optimiser, strategy and division of a batch; of pairs too.
func TestEmbeddingsAreOneWorkers(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "gat"} {
		d := traintest.Communities(t, 120, false)
		o := traintest.WithEmbeddings(model, d, 5)
		o.Embeddings.Adagrad = i == 1
		m := train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 2}
		one := distributedOver(t, traintest.Cut(t, d, "random", 1), o, m, false).Results[0]
		strategy := []string{"lookahead", "salient", "bytegnn"}[i]
		got := traintest.Batches(t, traintest.Cut(t, d, "random", 3), o, m, i == 0, strategy,
			"roots="+[]string{"owner", "random", "random"}[i]).Results
		traintest.SameRun(t, got[0], one)
		a, b := one.Best[len(one.Best)-1], traintest.Table(t, got)
		if a.Name != Table || b.Name != Table || !slices.Equal(a.Shape, []int{120, 5}) {
			t.Fatalf("%s: the weights end with %s %v and %s %v", model, a.Name, a.Shape, b.Name, b.Shape)
		}
		for k := range a.Data {
			if x := a.Data[k] - b.Data[k]; x > 1e-9 || x < -1e-9 {
				t.Fatalf("%s: number %d of the rows is %g, of one worker %g", model, k, b.Data[k], a.Data[k])
			}
		}
	}
}

// TestEmbeddingsLearnAGraph: a block model without features is learnt from its edges alone, also
// with updates in any order.
func TestEmbeddingsLearnAGraph(t *testing.T) {
	d := traintest.BlockGraph(t, 400, 0)
	d.Meta.Classes = d.Labels.Classes
	d.Features, d.Meta.Features = nil, nil
	for _, async := range []bool{false, true} {
		o := traintest.WithEmbeddings("sage", d, 16)
		o.Epochs, o.Model.Out, o.Model.Dropout, o.Embeddings.Async = 40, d.Labels.Classes, 0, async
		m := train.BatchSettings{Sampler: "neighbour", Size: 64, Fanouts: []int{8, 8}, Threads: 2}
		r := distributedOver(t, traintest.Cut(t, d, "fennel", 2), o, m, true)
		if got := r.Results[0].TestMetric; got < 0.4 { // of 8 classes
			t.Errorf("async %v: accuracy %g", async, got)
		}
		said := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "not repeatable") })
		if said != async {
			t.Errorf("async %v: notes %v", async, r.Notes)
		}
	}
}

// TestRowsAheadAreTheSame: rows that come before the step under way has ended have the bits of those that are pulled
// after it, also where some batches have no step.
func TestRowsAheadAreTheSame(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	for i, m := range []train.BatchSettings{{Sampler: "neighbour", Size: 8, Fanouts: []int{2, 2}, Threads: 2},
		{Sampler: "saint-node", Size: 3, Threads: 2}} {
		o := traintest.WithEmbeddings("sage", d, 4)
		o.Epochs = 3
		parts := traintest.Cut(t, d, "random", 3)
		want := traintest.Batches(t, parts, o, m, i == 0, "distdgl")
		got := traintest.Batches(t, parts, o, m, i == 0, "lookahead")
		if !slices.Equal(got.Results[0].Loss, want.Results[0].Loss) {
			t.Errorf("%s: losses %v, of rows that are pulled %v", m.Sampler, got.Results[0].Loss, want.Results[0].Loss)
		}
		a, b := traintest.Table(t, got.Results), traintest.Table(t, want.Results)
		if !slices.Equal(a.Data, b.Data) {
			t.Errorf("%s: learnt rows differ", m.Sampler)
		}
		if !slices.ContainsFunc(got.Notes, func(n string) bool { return strings.Contains(n, "came ahead") }) {
			t.Errorf("%s: notes %v", m.Sampler, got.Notes)
		}
	}
}

// TestEmbeddingsResume: a run that goes on from a checkpoint has the rows and the curve of one that
// never stopped, to the bit.
func TestEmbeddingsResume(t *testing.T) {
	for _, strategy := range []string{"distdgl", "lookahead"} {
		t.Run(strategy, func(t *testing.T) { resumes(t, strategy) })
	}
}

func resumes(t *testing.T, strategy string) {
	d := traintest.Communities(t, 120, false)
	parts := traintest.Cut(t, d, "random", 2)
	o := traintest.WithEmbeddings("sage", d, 4)
	m := train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 1}
	saved := make([]train.State, len(parts))
	var mu sync.Mutex
	run := func(from bool) *train.Result {
		return eachWorker(t, parts, func(rank int) train.Options {
			w := o
			w.Strategy, w.Batches = traintest.Strategy(t, strategy), &m
			if from {
				w.Resume = &saved[rank]
				return w
			}
			w.SaveEvery, w.MidwayOnly = 2, true
			w.Save = func(s *train.State) error {
				mu.Lock()
				defer mu.Unlock()
				saved[rank] = *s
				return nil
			}
			return w
		})
	}
	want := run(false)
	got := run(true)
	last := func(r *train.Result) []float64 { return r.LearntRows[0].Data }
	if !slices.Equal(got.Loss, want.Loss) || !slices.Equal(last(got), last(want)) {
		t.Errorf("losses %v, undisturbed %v", got.Loss, want.Loss)
	}
	saved[1].Caches = nil
	if _, err := workers(parts, func(rank int) train.Options {
		w := o
		w.Strategy, w.Batches, w.Resume = traintest.Strategy(t, strategy), &m, &saved[rank]
		return w
	}); err == nil || !strings.Contains(err.Error(), "no embeddings of this worker") {
		t.Error(err)
	}
}

// TestEmbeddingsResumeOnOtherWorkers: rows go where their vertices are.
func TestEmbeddingsResumeOnOtherWorkers(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	for i, workers := range [][2]int{{4, 2}, {2, 3}, {3, 1}} {
		o := traintest.WithEmbeddings("sage", d, 4)
		o.Embeddings.Adagrad = i == 1
		o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 1}
		o.Strategy = traintest.Strategy(t, []string{"distdgl", "lookahead", "salient"}[i])
		cut := func(k int) []*partition.Part { return traintest.Cut(t, d, []string{"random", "hash"}[k%2], k) }
		traintest.ResumesOnOthers(t, cut(workers[0]), cut(workers[1]), o, 2)
	}
}

// workers trains with options of each rank.
func workers(parts []*partition.Part, o func(rank int) train.Options) (*train.Result, error) {
	ends := traintest.Ends(len(parts))
	defer traintest.Close(ends)
	results, errs := make([]*train.Result, len(parts)), make([]error, len(parts))
	traintest.Each(len(parts), func(k int) {
		results[k], errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o(k), nil)
	})
	return results[0], errors.Join(errs...)
}

func eachWorker(t *testing.T, parts []*partition.Part, o func(rank int) train.Options) *train.Result {
	t.Helper()
	r, err := workers(parts, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEmbeddingsTravel as such: rows are pulled and pushed between servers.
func TestEmbeddingsTravel(t *testing.T) {
	d := traintest.Communities(t, 60, false)
	r := distributedOver(t, traintest.Cut(t, d, "random", 2), traintest.WithEmbeddings("gcn", d, 4),
		train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 1}, true)
	if r.Sum(func(c wire.Class) bool { return c.Kind == wire.Embedding }) == 0 {
		t.Error("no rows of embeddings were sent")
	}
}
