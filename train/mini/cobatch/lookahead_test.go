package cobatch

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// fetched are the rows of features that all workers fetched.
func fetched(r *traintest.Trained) (rows int64) {
	for _, w := range r.Results {
		rows += w.Rows.Remote - w.Rows.Cached
	}
	return rows
}

// topology is what draws of all workers send, as planned and as counted.
func topology(r *traintest.Trained, epochs int) (planned, counted float64) {
	draws := func(c wire.Class) bool { return c.Kind == wire.Topology }
	for _, w := range r.Results {
		for c, bytes := range w.Plan.Total(0, epochs, len(w.Measured), epochs) {
			if draws(c) {
				planned += float64(bytes)
			}
		}
	}
	return planned, float64(r.Sum(draws))
}

// TestLookahead: with batches that are drawn ahead, and a cache of what the next need first, losses are the same to the
// bit whatever the window and the memory, and fewer rows are fetched; also where workers draw by themselves.
func TestLookahead(t *testing.T) {
	for i, mode := range []string{"all", "server"} {
		for j, budget := range []string{"1B", "1MB"} {
			for k, window := range []int{1, 100, 0} {
				sampler := []string{"neighbour", "neighbour", "saint-node"}[(i+j+k)%3]
				t.Run(fmt.Sprint(mode, budget, window, sampler), func(t *testing.T) {
					t.Parallel()
					parts := traintest.CutForServers(t, traintest.Communities(t, 120, false), "random", 4, 2)
					o := traintest.Options([]string{"sage", "gcn", "gat"}[(i+j+k)%3])
					o.Epochs, o.Model.Layers, o.EvalEvery = 3, 2, 0
					m := train.BatchSettings{Sampler: sampler, Size: 10, Fanouts: []int{3, 4}, Threads: 1 + k%2}
					if sampler != "neighbour" {
						m.Size, m.Fanouts = 60, nil
					}
					plain := together(t, parts, o, m, "together="+mode)
					ahead := together(t, parts, o, m, "together="+mode, "cache=belady", "cache_budget="+budget,
						fmt.Sprintf("cache_window=%d", window))
					if a, b := ahead.Results[0].Loss, plain.Results[0].Loss; !slices.Equal(a, b) {
						t.Errorf("losses %v, without looking ahead %v", a, b)
					}
					if a, b := topology(ahead, o.Epochs); math.Abs(a-b) > 0.1*b {
						t.Errorf("%.0f bytes of draws were planned, %.0f sent", a, b)
					}
					if a, b := fetched(ahead), fetched(plain); a > b || j == 1 && 4*a > 3*b {
						t.Errorf("%d rows fetched, without looking ahead %d", a, b)
					}
				})
			}
		}
	}
}

// TestLookaheadResumes: a run that goes on from inside an epoch ends as the one that saved its state, to the bit,
// though its cache begins empty and nothing is drawn of it yet.
func TestLookaheadResumes(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 120, false), "random", 4, 2)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.EvalEvery, o.SaveSteps = 2, 2, 0, 2
	m := train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Threads: 2}
	var mu sync.Mutex
	var inside *train.State
	o.Save = func(s *train.State) error {
		mu.Lock()
		defer mu.Unlock()
		if kept := *s; s.Batch > 0 && inside == nil {
			inside = &kept
		}
		return nil
	}
	options := []string{"together=all", "cache=belady", "cache_budget=4KB", "cache_window=4"}
	want := together(t, parts, o, m, options...).Results[0]
	o.Resume, o.Save = inside, func(*train.State) error { return nil }
	if got := together(t, parts, o, m, options...).Results[0]; inside == nil || !slices.Equal(got.Loss, want.Loss) {
		t.Errorf("losses %v, of the run that went on %v", want.Loss, got.Loss)
	}
}
