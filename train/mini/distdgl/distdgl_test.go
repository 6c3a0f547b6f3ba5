package distdgl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/sample"
	"starling/store"
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

// distributedOver trains with distdgl on a worker for each part, each on a server of its own
// if remote is set.
func distributedOver(t *testing.T, parts []*partition.Part, o train.Options, m train.BatchSettings, remote bool,
	options ...string) *traintest.Trained {
	t.Helper()
	return traintest.Batches(t, parts, o, m, remote, "distdgl", options...)
}

// TestDistributedBatchesAreOneWorkers: with the same global batch the loss curve is one
// worker's, dropout included, for every model, kind of graph, number of workers, partition
// and way to divide a batch.
func TestDistributedBatchesAreOneWorkers(t *testing.T) {
	shapes := []string{"dense", "sparse", "loops", "weighted"}
	for i, model := range []string{"gcn", "sage", "sagepool", "gat", "gatv2", "gin", "resgcn+", "ressage+"} {
		for j, shape := range shapes {
			if model == "gat" && shape == "weighted" {
				continue // attention does not look at weights
			}
			workers := []int{1, 2, 3, 5}[(i+j)%4]
			roots := []string{"owner", "random"}[(i+j/2)%2]
			t.Run(fmt.Sprintf("%s %s %d %s", model, shape, workers, roots), func(t *testing.T) {
				d := traintest.Communities(t, 120, shape == "sparse")
				if shape == "loops" || shape == "weighted" {
					d = traintest.WithLoops(t, d, shape == "weighted")
				}
				o := traintest.Options(model)
				o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
				if model[:3] == "res" {
					o.Model.Norm = "layer"
				}
				m := train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 2,
					Replace: j == 1}
				one := mustMini(t, traintest.Ref(), d, o, m)
				parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], workers)
				cache := traintest.CacheFor(d, i+j)
				if d.Features.Kind() == graph.Dense && (i+j)%2 == 0 {
					cache = traintest.CacheOf(batch.Probability, "10%")
				}
				options := append(cache, "roots="+roots)
				traintest.SameRun(t, distributedOver(t, parts, o, m, j%2 == 0, options...).Results[0], one)
			})
		}
	}
}

// TestDistributedTasks: multi-label and regression likewise.
func TestDistributedTasks(t *testing.T) {
	for _, kind := range traintest.Tasks {
		d := traintest.WithTask(t, kind)
		o := traintest.TaskOptions(d)
		o.Epochs, o.Model.Norm = 3, "none"
		m := train.BatchSettings{Sampler: "neighbour", Size: 25,
			Fanouts: slices.Repeat([]int{3}, o.Model.Layers), Threads: 2}
		one := mustMini(t, traintest.Ref(), d, o, m)
		got := distributedOver(t, traintest.Cut(t, d, "random", 3), o, m, true, "roots=random")
		traintest.SameRun(t, got.Results[0], one)
	}
}

// TestLocalRootsAreEachWorkersOwn: batches differ from one worker's, but every training vertex
// is in one batch per epoch, and with one worker the run learns.
func TestLocalRootsAreEachWorkersOwn(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	parts := traintest.Cut(t, d, "random", 4)
	var training []uint32
	for _, p := range parts {
		for _, v := range p.Splits.Train {
			training = append(training, uint32(p.Book.Offsets[p.Meta.Part])+v)
		}
	}
	var seen []uint32
	for rank := range parts {
		r := batch.NewSeeds("local", parts[0].Book, rank, training, 16, 1)
		for b := range r.Batches() {
			seen = append(seen, r.Seeds(3, b)...)
		}
	}
	if slices.Sort(seen); !slices.Equal(seen, slices.Sorted(slices.Values(training))) {
		t.Errorf("an epoch has %v, want %v", seen, training)
	}
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 15, 2, "none"
	r := distributedOver(t, parts, o, train.BatchSettings{Sampler: "neighbour", Size: 16, Fanouts: []int{sample.All, 5},
		Threads: 1}, true, "roots=local")
	if l := r.Results[0].Loss; l[len(l)-1] > 0.7*l[0] {
		t.Errorf("losses %v", l)
	}
}

// TestCachesSaveBytes: the same curve, fewer bytes of features the larger the cache, and about
// as many as were planned.
func TestCachesSaveBytes(t *testing.T) {
	d := traintest.Communities(t, 300, false)
	parts := traintest.Cut(t, d, "random", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 12, 2, "none", 0
	m := train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{4, 4}, Threads: 2}
	var loss []float64
	for _, cache := range store.Caches {
		before := int64(1 << 62)
		for _, budget := range []string{"1KB", "4KB", "1MB"} {
			r := distributedOver(t, parts, o, m, true, traintest.CacheOf(cache, budget)...)
			if loss == nil {
				loss = r.Results[0].Loss
			}
			if !slices.Equal(r.Results[0].Loss, loss) {
				t.Errorf("cache %s of %s: losses %v, without %v", cache, budget, r.Results[0].Loss, loss)
			}
			rows := r.Sum(func(c wire.Class) bool { return c.Kind == wire.Feature })
			if cache != "none" && rows >= before {
				t.Errorf("cache %s of %s: %d bytes of rows, with less memory %d", cache, budget, rows, before)
			}
			before = rows
			planned, deviation := int64(0), 0.0
			for _, w := range r.Results {
				for c, bytes := range w.Plan.Drawn {
					if c.Kind == wire.Feature {
						planned += bytes * int64(o.Epochs)
					}
				}
				deviation = max(deviation, w.Plan.Deviation)
			}
			if off := math.Abs(float64(rows-planned)) / float64(planned); cache == "none" && off > 4*deviation {
				t.Errorf("cache %s of %s: %d bytes of rows, planned %d with a deviation of %.3f", cache, budget, rows,
					planned, deviation)
			}
		}
	}
}

// TestTrainersOfAServer: workers of a server share its seed vertices evenly and read each other's
// parts in place; the loss curve is one worker's.
func TestTrainersOfAServer(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
	m := train.BatchSettings{Sampler: "neighbour", Size: 30, Fanouts: []int{3, 4}, Threads: 1}
	one := mustMini(t, traintest.Ref(), d, o, m)
	remote := map[int]int64{}
	for _, servers := range []int{1, 2, 4} {
		opt := wire.DefaultOptions()
		for k := range 4 {
			opt.ServerOf = append(opt.ServerOf, k*servers/4)
		}
		o.Strategy, o.Batches = traintest.Strategy(t, "distdgl"), &m
		parts := traintest.CutForServers(t, d, "fennel", 4, servers)
		r := traintest.Observe(t, wire.NewGroup(4, opt), parts, traintest.Ref, o)
		traintest.SameRun(t, r.Results[0], one)
		for _, w := range r.Results {
			remote[servers] += w.Rows.Remote
		}
	}
	if remote[1] != 0 || remote[2] == 0 || remote[4] <= remote[2] {
		t.Errorf("rows of other servers with 1, 2 and 4 of them: %v", remote)
	}
}

// onParts is rank 0's result of a run that may begin anywhere.
func onParts(t *testing.T, parts []*partition.Part, o train.Options) *train.Result {
	t.Helper()
	ends := traintest.BatchEnds(len(parts), true)
	defer traintest.Close(ends)
	results, errs := make([]*train.Result, len(parts)), make([]error, len(parts))
	traintest.Each(len(parts), func(k int) {
		results[k], errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o,
			nil)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return results[0]
}

// TestResumedInsideAnEpoch: a run that goes on from any of the states it saved, on one worker
// or several, ends as the one that saved them, to the bit.
func TestResumedInsideAnEpoch(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	parts := traintest.Cut(t, d, "random", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.SaveSteps = 3, 2, "none", 2
	m := train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Threads: 2}
	resumesInside(t, o, func(o train.Options) *train.Result { return mustMini(t, traintest.Ref(), d, o, m) })
	o.Strategy, o.Batches = traintest.Strategy(t, "distdgl"), &m
	resumesInside(t, o, func(o train.Options) *train.Result { return onParts(t, parts, o) })
}

// resumesInside runs, and again from every state that was saved inside an epoch.
func resumesInside(t *testing.T, o train.Options, run func(o train.Options) *train.Result) {
	t.Helper()
	var mu sync.Mutex
	var states []train.State
	o.Save = func(s *train.State) error {
		mu.Lock()
		defer mu.Unlock()
		kept := *s
		if s.Batch > 0 && !slices.ContainsFunc(states, func(o train.State) bool {
			return o.Epoch == s.Epoch &&
				o.Batch == s.Batch
		}) {
			states = append(states, kept)
		}
		return nil
	}
	want := run(o)
	if len(states) < 4 {
		t.Fatalf("%d states inside epochs", len(states))
	}
	for i := range states {
		again := o
		again.Save = func(*train.State) error { return nil }
		again.Resume = &states[i]
		got := run(again)
		if !slices.Equal(got.Loss, want.Loss) || got.TestMetric != want.TestMetric {
			t.Errorf("from batch %d of epoch %d: losses %v, want %v", states[i].Batch, states[i].Epoch, got.Loss,
				want.Loss)
		}
	}
}
