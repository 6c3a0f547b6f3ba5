package distdgl

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// lookahead are the options of a cache and a window.
func lookahead(budget string, window int, more ...string) []string {
	return append([]string{"cache_budget=" + budget, fmt.Sprintf("cache_window=%d", window)}, more...)
}

// rowsFetched are the rows of features that all workers fetched.
func rowsFetched(r *traintest.Trained) (rows int64) {
	for _, w := range r.Results {
		rows += w.Rows.Remote - w.Rows.Cached
	}
	return rows
}

// TestLookaheadIsOneWorker: whatever the cache holds and however far ahead is drawn, the loss curve is one
// worker's, and distdgl's to the bit.
func TestLookaheadIsOneWorker(t *testing.T) {
	models := []string{"gcn", "sage", "gat", "gin", "sagepool"}
	for i, workers := range []int{1, 2, 3, 5} {
		for j, budget := range []string{"1B", "1KB", "4KB", "1MB"} {
			for k, window := range []int{1, 3, 100, 0} {
				model, roots := models[(i+j+k)%len(models)], []string{"owner", "random"}[(i+k)%2]
				name := fmt.Sprintf("%s %d %s %d %s", model, workers, budget, window, roots)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					d := traintest.Communities(t, 120, false)
					if j == 2 {
						d = traintest.WithLoops(t, d, i == 1)
					}
					if model == "gat" {
						d = traintest.Communities(t, 120, false)
					}
					o := traintest.Options(model)
					o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
					m := train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 4}, Threads: 1 + k%2}
					parts := traintest.Cut(t, d, "random", workers)
					edges := []string{"auto", "none", "5%"}[(i+j)%3]
					got := traintest.Batches(t, parts, o, m, true, "lookahead",
						lookahead(budget, window, "roots="+roots, "cache_edges="+edges)...)
					traintest.SameRun(t, got.Results[0], mustMini(t, traintest.Ref(), d, o, m))
					same := traintest.Batches(t, parts, o, m, true, "distdgl", "roots="+roots)
					if !slices.Equal(got.Results[0].Loss, same.Results[0].Loss) {
						t.Errorf("losses %v, of distdgl %v", got.Results[0].Loss, same.Results[0].Loss)
					}
					a, b := rowsFetched(got), rowsFetched(same)
					if a > b || budget == "1MB" && a > int64((workers-1)*d.Graph.Nodes()) {
						t.Errorf("%d rows fetched, by distdgl %d", a, b)
					}
				})
			}
		}
	}
}

// TestLookaheadResumesInsideAnEpoch: a run that goes on from any of the states it saved ends as the one that
// saved them, to the bit, though its cache begins empty.
func TestLookaheadResumesInsideAnEpoch(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "random", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.SaveSteps = 3, 2, "none", 2
	m := train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Threads: 2}
	o.Strategy, o.Batches = traintest.Strategy(t, "lookahead", lookahead("8KB", 4, "cache_edges=100%")...), &m
	resumesInside(t, o, func(o train.Options) *train.Result { return onParts(t, parts, o) })
}

// TestLookaheadStopsTogether: when a worker breaks while others wait for batches of a window, all end.
func TestLookaheadStopsTogether(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "random", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
	o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Threads: 2}
	for _, window := range []int{1, 5, 100} {
		o.Strategy = traintest.Strategy(t, "lookahead", lookahead("1KB", window)...)
		for _, at := range []int{30, 40, 50} {
			ends, errs := traintest.BatchEnds(3, true), make([]error, 3)
			ends[1] = traintest.Failing(ends[1], at)
			traintest.Each(3, func(k int) { _, errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o, nil) })
			traintest.Close(ends)
			for k, err := range errs {
				if err == nil || !strings.Contains(err.Error(), traintest.ErrUnplugged.Error()) {
					t.Errorf("window %d, broken at message %d: worker %d ended with %v", window, at, k, err)
				}
			}
		}
	}
}

// TestLookaheadFetchesFewerRows: with a cache of a twentieth of the features it fetches fewer rows, as counted, than
// any other cache of that size.
func TestLookaheadFetchesFewerRows(t *testing.T) {
	d := traintest.Communities(t, 3000, false)
	parts := traintest.Cut(t, d, "fennel", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 4, 2, "none", 0
	m := train.BatchSettings{Sampler: "neighbour", Size: 24, Fanouts: []int{5, 5}, Threads: 1}
	rows := map[string]int64{}
	for name, options := range map[string][]string{"distdgl": nil, "salient": nil, "lookahead": {"cache_edges=none"},
		"s3fifo": {"cache=s3fifo"}} {
		strategy := name
		if name == "s3fifo" {
			strategy = "distdgl"
		}
		if name != "distdgl" {
			options = append(options, fmt.Sprintf("cache_budget=%dB", 4*d.Features.Cols*d.Graph.Nodes()/20))
		}
		rows[name] = rowsFetched(traintest.Batches(t, parts, o, m, true, strategy, options...))
	}
	if n := rows["lookahead"]; 10*n > 9*min(rows["salient"], rows["s3fifo"]) || 3*n > 2*rows["distdgl"] {
		t.Errorf("rows fetched: %v", rows)
	}
}

// widened has the features of a dataset several times side by side.
func widened(d *graph.Dataset, times int) *graph.Dataset {
	f := &graph.Features{Rows: d.Features.Rows, Cols: times * d.Features.Cols}
	for v := range f.Rows {
		row := d.Features.F32[v*d.Features.Cols : (v+1)*d.Features.Cols]
		for range times {
			f.F32 = append(f.F32, row...)
		}
	}
	w := *d
	w.Features, w.Meta.Features = f, &graph.FeatureMeta{Kind: graph.Dense, Dim: f.Cols}
	return &w
}

// TestLookaheadSharesRowsOfBatches: where a batch needs many times the rows that the cache has memory for, those of
// batches under way are fetched once: a fifth of distdgl's rows are fetched, and less than two thirds of salient's.
func TestLookaheadSharesRowsOfBatches(t *testing.T) {
	d := widened(traintest.Communities(t, 600, false), 40)
	parts := traintest.Cut(t, d, "random", 4)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 16, 2, "none", 0
	o.Model.In = d.Features.Cols
	m := train.BatchSettings{Sampler: "neighbour", Size: 75, Fanouts: []int{10, 10}, Threads: 1}
	rows, losses := map[string]int64{}, map[string][]float64{}
	for _, name := range []string{"distdgl", "salient", "lookahead"} {
		var options []string
		if name != "distdgl" {
			options = []string{fmt.Sprintf("cache_budget=%dB", 4*d.Features.Cols*d.Graph.Nodes()/20)}
		}
		r := traintest.Batches(t, parts, o, m, true, name, options...)
		rows[name], losses[name] = rowsFetched(r), r.Results[0].Loss
	}
	if n := rows["lookahead"]; 5*n > rows["distdgl"] || 3*n > 2*rows["salient"] {
		t.Errorf("rows fetched: %v", rows)
	}
	if !slices.Equal(losses["lookahead"], losses["distdgl"]) {
		t.Errorf("losses %v, of distdgl %v", losses["lookahead"], losses["distdgl"])
	}
}

// topologyBytes are what all workers sent to draw, and in requests for rows.
func topologyBytes(r *traintest.Trained) (n int64) {
	for _, counted := range r.Counted {
		for c, bytes := range counted {
			if c.Kind == wire.Topology {
				n += bytes
			}
		}
	}
	return n
}

// TestEdgesThatAreKept: with in-edges of other hosts' vertices kept, strategies send fewer bytes of draws, as many
// as planned, and losses are the same to the bit.
func TestEdgesThatAreKept(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 600, false), "random", 3)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 12, 2, "none", 0
	m := train.BatchSettings{Sampler: "neighbour", Size: 100, Fanouts: []int{5, 5}, Threads: 1}
	for _, strategy := range []string{"lookahead", "salient"} {
		bytes, losses := map[string]int64{}, map[string][]float64{}
		for _, edges := range []string{"none", "60%"} {
			r := traintest.Batches(t, parts, o, m, true, strategy, "cache_budget=100%", "cache_edges="+edges)
			bytes[edges], losses[edges] = topologyBytes(r), r.Results[0].Loss
			planned, off := int64(0), 0.0
			for _, w := range r.Results {
				for c, n := range w.Plan.Total(0, o.Epochs, len(w.Measured), o.Epochs) {
					if c.Kind == wire.Topology {
						planned += n
					}
				}
				off += 4 * w.Plan.Deviation * float64(w.Plan.Drawn.Sum()) * float64(o.Epochs)
			}
			if math.Abs(float64(planned-bytes[edges])) > off {
				t.Errorf("%s, %s: %d bytes of draws were planned and %d sent, which is off by more than %.0f", strategy,
					edges, planned, bytes[edges], off)
			}
		}
		if 5*bytes["60%"] > 3*bytes["none"] || !slices.Equal(losses["60%"], losses["none"]) {
			t.Errorf("%s: bytes %v, losses %v", strategy, bytes, losses)
		}
	}
}

// TestLookaheadDrawsOnce: the batches that are drawn before training to know what they need are trained on as they are,
// so that a run draws as many as its epochs have.
func TestLookaheadDrawsOnce(t *testing.T) {
	d := traintest.Communities(t, 240, false)
	parts := traintest.CutForServers(t, d, "random", 2, 2)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 2, 2, "none", 0
	m := train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{4, 4}, Threads: 2}
	got := topologyBytes(traintest.Batches(t, parts, o, m, true, "lookahead", lookahead("1MB", 0)...))
	same := topologyBytes(traintest.Batches(t, parts, o, m, true, "distdgl"))
	if n := int64(o.Epochs); got*(n+1) > same*n { // distdgl draws the batches of an epoch more, to plan
		t.Errorf("%d bytes of draws and requests for %d epochs, by distdgl %d", got, n, same)
	}
}
