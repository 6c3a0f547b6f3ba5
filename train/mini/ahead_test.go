package mini

import (
	"fmt"
	"testing"

	"starling/train"
	"starling/train/traintest"
)

// TestLookaheadStopsTogether: where a worker's link breaks while batches are drawn ahead, all workers end with an
// error, also those that wait for draws, turns or rows of others.
func TestLookaheadStopsTogether(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 120, false), "random", 3, 3)
	for _, strategy := range []string{"lookahead", "bytegnn", "hopgnn", "cobatch"} {
		for _, at := range []int{60, 200, 400} {
			t.Run(fmt.Sprint(strategy, at), func(t *testing.T) {
				t.Parallel()
				o := traintest.Options("sage")
				o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 40, 2, "none", 0
				o.Strategy = traintest.Strategy(t, strategy, "cache=belady", "cache_window=4", "cache_budget=1KB")
				o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Threads: 2}
				ends := traintest.BatchEnds(len(parts), true)
				defer traintest.Close(ends)
				ends[1] = traintest.Failing(ends[1], at)
				errs := make([]error, len(parts))
				traintest.Each(len(parts), func(k int) {
					_, errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o, nil)
				})
				for k, err := range errs {
					if err == nil {
						t.Errorf("worker %d ended without an error", k)
					}
				}
			})
		}
	}
}
