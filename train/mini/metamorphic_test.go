package mini

import (
	"fmt"
	"testing"

	"starling/internal/testseed"
	"starling/rng"
	"starling/store"
	"starling/train"
	"starling/train/traintest"
)

// TestMetamorphicBatches: whatever the partitioner, the number of workers, the strategy, the cache,
// the way to divide a batch, the sampler and the transport, the loss curve is one worker's.
func TestMetamorphicBatches(t *testing.T) {
	seed := testseed.New(t)
	runs := 24
	if testing.Short() {
		runs = 6
	}
	for i := range runs {
		key := rng.New(seed).Fold(uint64(i))
		n := uint64(0)
		pick := func(from ...string) string { n++; return from[key.IntN(n, len(from))] }
		sampler := pick("neighbour", "neighbour", "fastgcn", "ladies", "saint-node", "saint-edge", "saint-walk")
		model, strategy := pick("gcn", "sage", "gat", "gin"), pick("distdgl", "salient", "bytegnn", "hopgnn", "p3",
			"cobatch")
		hopByHop := strategy == "bytegnn" || strategy == "hopgnn"
		if model == "gat" && strategy == "p3" || sampler != "neighbour" && hopByHop {
			strategy = "distdgl"
		}
		partitioner, transport := pick("random", "chunk", "fennel", "multilevel"), pick("inprocess", "tcp", "shm")
		workers, shape := 1+key.IntN(100, 6), pick("dense", "sparse", "loops", "multilabel")
		var options []string
		if strategy == "distdgl" || strategy == "salient" || strategy == "cobatch" {
			options = append(options, "cache="+pick(store.Caches...), "cache_budget="+pick("1KB", "1MB"))
		}
		if strategy != "hopgnn" {
			options = append(options, "roots="+pick("owner", "random"))
		}
		name := fmt.Sprintf("%d: %s %s, %s %v, %d workers of %s over %s, %s", i, model, sampler, strategy, options,
			workers, partitioner, transport, shape)
		t.Run(name, func(t *testing.T) {
			d := traintest.Communities(t, 120, shape == "sparse")
			o := traintest.Options(model)
			switch shape {
			case "loops":
				d = traintest.WithLoops(t, d, false)
			case "multilabel":
				d = traintest.WithTask(t, traintest.Tasks[0])
				o = traintest.TaskOptions(d)
				o.Model.Model = model
			}
			o.Epochs, o.Model.Layers, o.Model.Norm, o.Seed = 2, 2, "none", uint64(key.Uint32(101))
			m := Options{Sampler: sampler, Size: 20 + key.IntN(102, 30), Threads: 1 + key.IntN(103, 3),
				Replace: sampler == "neighbour" && key.IntN(104, 2) == 0}
			if m.layered() {
				m.Fanouts = []int{2 + key.IntN(105, 20), 2 + key.IntN(106, 20)}
			}
			one := mustMini(t, traintest.Ref(), d, o, m)
			o.Strategy, o.Batches = traintest.Strategy(t, strategy, options...), m
			parts := traintest.Cut(t, d, partitioner, workers)
			ends := traintest.Over(t, transport, workers)
			results := make([]*train.Result, workers)
			errs := make([]error, workers)
			traintest.Each(workers, func(k int) {
				results[k], errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o, nil)
			})
			traintest.Close(ends)
			for k, err := range errs {
				if err != nil {
					t.Fatalf("worker %d: %v", k, err)
				}
			}
			sameCurve(t, results[0], one)
		})
	}
}
