package mini

import (
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
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// distributedOver trains with distdgl on a worker for each part, each on a server of its own
// if remote is set.
func distributedOver(t *testing.T, parts []*partition.Part, o train.Options, m Options, remote bool,
	options ...string) *traintest.Trained {
	t.Helper()
	return batchesOver(t, parts, o, m, remote, "distdgl", options...)
}

// batchesOver is the same with any strategy.
func batchesOver(t *testing.T, parts []*partition.Part, o train.Options, m Options, remote bool, strategy string,
	options ...string) *traintest.Trained {
	t.Helper()
	o.Strategy, o.Batches = traintest.Strategy(t, strategy, options...), m
	opt := wire.DefaultOptions()
	for k := range parts {
		server := 0
		if remote {
			server = k
		}
		opt.ServerOf = append(opt.ServerOf, server)
	}
	return traintest.Observe(t, wire.NewGroup(len(parts), opt), parts, traintest.Ref, o)
}

// sameCurve compares losses but for rounding.
func sameCurve(t *testing.T, got, want *train.Result) {
	t.Helper()
	for e, w := range want.Loss {
		if math.Abs(got.Loss[e]-w) > 1e-9*(1+w) {
			t.Errorf("epoch %d: loss %.12f, of one worker %.12f", e, got.Loss[e], w)
			return
		}
	}
	if math.Abs(got.TestMetric-want.TestMetric) > 1e-9 || got.BestEpoch != want.BestEpoch {
		t.Errorf("test %g in epoch %d, of one worker %g in %d", got.TestMetric, got.BestEpoch, want.TestMetric,
			want.BestEpoch)
	}
}

// cacheFor is a cache of a few rows as options, of all in turn; none of sparse features.
func cacheFor(d *graph.Dataset, i int) []string {
	if d.Features.Kind() == graph.Sparse {
		return []string{"cache=none"}
	}
	return cacheOf(store.Caches[i%len(store.Caches)], "1KB")
}

// cacheOf is a cache with a budget, which none has no use for.
func cacheOf(cache, budget string) []string {
	if cache == "none" {
		return []string{"cache=none"}
	}
	return []string{"cache=" + cache, "cache_budget=" + budget}
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
				m := Options{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 2, Replace: j == 1}
				one := mustMini(t, traintest.Ref(), d, o, m)
				parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], workers)
				options := append(cacheFor(d, i+j), "roots="+roots)
				sameCurve(t, distributedOver(t, parts, o, m, j%2 == 0, options...).Results[0], one)
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
		m := Options{Sampler: "neighbour", Size: 25, Fanouts: slices.Repeat([]int{3}, o.Model.Layers), Threads: 2}
		one := mustMini(t, traintest.Ref(), d, o, m)
		sameCurve(t, distributedOver(t, traintest.Cut(t, d, "random", 3), o, m, true, "roots=random").Results[0], one)
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
		r := newRoots("local", parts[0].Book, rank, training, 16, 1)
		for b := range r.batches() {
			seeds, _ := r.seeds(3, b)
			seen = append(seen, seeds...)
		}
	}
	if slices.Sort(seen); !slices.Equal(seen, slices.Sorted(slices.Values(training))) {
		t.Errorf("an epoch has %v, want %v", seen, training)
	}
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 15, 2, "none"
	r := distributedOver(t, parts, o, Options{Sampler: "neighbour", Size: 16, Fanouts: []int{sample.All, 5},
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
	m := Options{Sampler: "neighbour", Size: 20, Fanouts: []int{4, 4}, Threads: 2}
	var loss []float64
	for _, cache := range store.Caches {
		before := int64(1 << 62)
		for _, budget := range []string{"1KB", "4KB", "1MB"} {
			r := distributedOver(t, parts, o, m, true, cacheOf(cache, budget)...)
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

// TestBalanced: a server has at most slack times its share, its workers have even ones, each vertex
// is computed once, and on its owner's server unless that has too many.
func TestBalanced(t *testing.T) {
	all := []uint32{0, 1, 2, 3, 4, 5, 6, 7, 50, 100, 101, 150} // owners: 8, 1, 2 and 1
	for _, c := range []struct {
		servers int
		want    []int
		moved   int // to another server
	}{
		{4, []int{4, 3, 3, 2}, 4},
		{2, []int{4, 3, 3, 2}, 2}, // 9 on one server, which takes 7
		{1, []int{3, 3, 3, 3}, 0},
	} {
		book := &partition.Book{Parts: 4, Servers: c.servers, Offsets: []int64{0, 50, 100, 150, 200}}
		who, has, moved := balanced(all, book.Owner, 4, c.servers), make([]int, 4), 0
		for i, q := range who {
			has[q]++
			if book.Server(q) != book.Server(book.Owner(all[i])) {
				moved++
			}
		}
		slices.SortFunc(has, func(a, b int) int { return b - a })
		if !slices.Equal(has, c.want) || moved != c.moved {
			t.Errorf("%d servers: workers have %v, want %v; %d moved, want %d", c.servers, has, c.want, moved, c.moved)
		}
	}
}

// TestTrainersOfAServer: workers of a server share its seed vertices evenly and read each other's
// parts in place; the loss curve is one worker's.
func TestTrainersOfAServer(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
	m := Options{Sampler: "neighbour", Size: 30, Fanouts: []int{3, 4}, Threads: 1}
	one := mustMini(t, traintest.Ref(), d, o, m)
	remote := map[int]int64{}
	for _, servers := range []int{1, 2, 4} {
		opt := wire.DefaultOptions()
		for k := range 4 {
			opt.ServerOf = append(opt.ServerOf, k*servers/4)
		}
		o.Strategy, o.Batches = traintest.Strategy(t, "distdgl"), m
		parts := traintest.CutForServers(t, d, "fennel", 4, servers)
		r := traintest.Observe(t, wire.NewGroup(4, opt), parts, traintest.Ref, o)
		sameCurve(t, r.Results[0], one)
		for _, w := range r.Results {
			remote[servers] += w.Rows.Remote
		}
	}
	if remote[1] != 0 || remote[2] == 0 || remote[4] <= remote[2] {
		t.Errorf("rows of other servers with 1, 2 and 4 of them: %v", remote)
	}
}

// onWorkers is rank 0's result of a run that may begin anywhere.
func onWorkers(t *testing.T, parts []*partition.Part, o train.Options, m Options) *train.Result {
	t.Helper()
	o.Strategy, o.Batches = traintest.Strategy(t, "distdgl"), m
	ends := traintest.Ends(len(parts))
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
	m := Options{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Threads: 2}
	for _, workers := range []int{1, 3} {
		run := func(o train.Options) *train.Result {
			if workers == 1 {
				return mustMini(t, traintest.Ref(), d, o, m)
			}
			return onWorkers(t, parts, o, m)
		}
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
				t.Errorf("%d workers, from batch %d of epoch %d: losses %v, want %v", workers, states[i].Batch,
					states[i].Epoch, got.Loss, want.Loss)
			}
		}
	}
}

// TestDistributedInductive: batches are drawn from the edges between training vertices, with their
// degrees there, and accuracy is that of the whole graph, as with one worker.
func TestDistributedInductive(t *testing.T) {
	for i, c := range []struct{ strategy, model, shape, sampler string }{
		{"distdgl", "gcn", "dense", "neighbour"}, {"distdgl", "sage", "weighted", "fastgcn"},
		{"distdgl", "gat", "loops", "ladies"}, {"distdgl", "sage", "sparse", "saint-node"},
		{"salient", "gin", "loops", "saint-walk"}, {"bytegnn", "gcn", "weighted", "neighbour"},
		{"p3", "sage", "dense", "neighbour"}, {"hopgnn", "sage", "dense", "neighbour"},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			d := traintest.Communities(t, 150, c.shape == "sparse")
			if c.shape == "loops" || c.shape == "weighted" {
				d = traintest.WithLoops(t, d, c.shape == "weighted")
			}
			o := traintest.Options(c.model)
			o.Epochs, o.Model.Layers, o.Model.Norm, o.Inductive = 3, 2, "none", true
			m := samplerOptions(c.sampler, 2)
			one := mustMini(t, traintest.Ref(), d, o, m)
			whole := o
			whole.Inductive = false
			if all := mustMini(t, traintest.Ref(), d, whole, m); slices.Equal(all.Loss, one.Loss) {
				t.Fatalf("losses %v with and without edges of other vertices", one.Loss)
			}
			parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], 2+i%3)
			for _, remote := range []bool{true, false} {
				sameCurve(t, batchesOver(t, parts, o, m, remote, c.strategy).Results[0], one)
			}
		})
	}
}
