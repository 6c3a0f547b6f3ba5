package hopgnn

import (
	"fmt"
	"slices"
	"testing"

	"starling/train"
	"starling/train/traintest"
)

// TestLookahead: with batches that are drawn ahead, and a cache of what the next need first, losses are the same to the
// bit whatever the window, the memory and the merged steps, and fewer rows are fetched.
func TestLookahead(t *testing.T) {
	fetched := func(r *traintest.Trained) (rows int64) {
		for _, w := range r.Results {
			rows += w.Rows.Remote - w.Rows.Cached
		}
		return rows
	}
	for j, budget := range []string{"1B", "1MB"} {
		for k, window := range []int{1, 100, 0} {
			shape := []string{"neighbour", "saint-node", "typed"}[k]
			t.Run(fmt.Sprint(budget, window, shape), func(t *testing.T) {
				t.Parallel()
				d := traintest.Communities(t, 120, false)
				o := traintest.Options("sage")
				m := train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 4}, Threads: 1 + j}
				switch shape {
				case "saint-node":
					m.Sampler, m.Size, m.Fanouts = shape, 60, nil
				case "typed":
					d = traintest.Typed(t, 60)
					o = traintest.TypedOptions(d, "rgcn")
				}
				o.Epochs, o.Model.Layers, o.EvalEvery, o.Model.Norm = 3, 2, 0, "none"
				parts := traintest.Cut(t, d, "random", 3)
				ran := func(options ...string) *traintest.Trained {
					options = append(options, fmt.Sprintf("merge=%d", j))
					return traintest.Batches(t, parts, o, m, true, "hopgnn", options...)
				}
				ahead := ran("cache_budget="+budget, fmt.Sprintf("cache_window=%d", window), "cache=belady")
				plain := ran()
				if a, b := ahead.Results[0].Loss, plain.Results[0].Loss; !slices.Equal(a, b) {
					t.Errorf("losses %v, without looking ahead %v", a, b)
				}
				if a, b := fetched(ahead), fetched(plain); a > b || j == 1 && a == b {
					t.Errorf("%d rows fetched, without looking ahead %d", a, b)
				}
			})
		}
	}
}

// TestLookaheadRefuses: what is not known when batches are drawn, and rows that are fetched step by step.
func TestLookaheadRefuses(t *testing.T) {
	for _, option := range []string{"merge=time", "pre_gather=false"} {
		if _, err := traintest.Choose("hopgnn", "cache=belady", option); err == nil {
			t.Errorf("--cache belady and %s", option)
		}
	}
}
