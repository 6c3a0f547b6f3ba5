package distdgl

import (
	"context"
	"fmt"
	"math"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
)

// withTimes gives the edges and vertices of a dataset times.
func withTimes(d *graph.Dataset) *graph.Dataset {
	key := rng.New(8)
	for e := range d.Graph.Edges() {
		d.Graph.EdgeTimes = append(d.Graph.EdgeTimes, int64(key.IntN(uint64(e), 100)))
	}
	for v := range d.Graph.Nodes() {
		t := int64(key.IntN(1<<40+uint64(v), 140))
		if v%9 == 5 && !graphHas(d, uint32(v)) {
			t = graph.NoTime
		}
		d.Times = append(d.Times, t)
	}
	return d
}

func graphHas(d *graph.Dataset, v uint32) bool {
	for _, list := range [][]uint32{d.Splits.Train, d.Splits.Val, d.Splits.Test} {
		for _, u := range list {
			if u == v {
				return true
			}
		}
	}
	return false
}

// TestTemporalBatchesAreOneWorkers: what seeds see, the losses and what is measured equal one worker's, for every
// model, kind of graph, number of workers and way to divide a batch.
func TestTemporalBatchesAreOneWorkers(t *testing.T) {
	shapes := []string{"dense", "sparse", "loops", "weighted", "edges"}
	for i, model := range []string{"sage", "sage-pool", "gatv2", "gin", "gat", "ressage+"} {
		for j, shape := range shapes {
			if model == "gat" && shape == "weighted" || shape == "edges" && model != "gin" && model != "gat" {
				continue
			}
			workers := []int{1, 2, 3, 5}[(i+j)%4]
			temporal := []string{"uniform", "recent"}[(i+j)%2]
			t.Run(fmt.Sprintf("%s %s %d %s", model, shape, workers, temporal), func(t *testing.T) {
				d := traintest.Communities(t, 120, shape == "sparse")
				if shape == "loops" || shape == "weighted" {
					d = traintest.WithLoops(t, d, shape == "weighted")
				}
				o := traintest.Options(model)
				if shape == "edges" {
					d, o = traintest.WithEdgeFeatures(d), traintest.EdgeOptions(model)
				}
				d = withTimes(d)
				o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
				if model[:3] == "res" {
					o.Model.Norm = "layer"
				}
				m := train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 2,
					Temporal: temporal}
				one := mustMini(t, traintest.Ref(), d, o, m)
				parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], workers)
				options := append(traintest.CacheFor(d, i+j), "roots="+[]string{"owner", "random"}[j%2])
				traintest.SameRun(t, distributedOver(t, parts, o, m, j%2 == 0, options...).Results[0], one)
			})
		}
	}
}

// planted is a graph in which only edges that come after a vertex's time tell its class: by their source, whose
// feature
// is the class, and by their own features.
func planted(t *testing.T) *graph.Dataset {
	const n, known = 400, 20
	key := rng.New(4)
	d := &graph.Dataset{Labels: &graph.Labels{Classes: 2}, Features: &graph.Features{Rows: n, Cols: 4}}
	var src, dst []uint32
	var times []int64
	for v := range uint32(n) {
		class := int32(key.IntN(uint64(v), 2))
		d.Labels.Class = append(d.Labels.Class, class)
		for c := range uint64(4) {
			d.Features.F32 = append(d.Features.F32, float32(key.Fold(1).Normal(4*uint64(v)+c)))
		}
		if v < known { // vertices whose first two features are their class
			d.Labels.Class[v] = int32(v % 2)
			copy(d.Features.F32[4*v:], []float32{3 * float32(v%2), 3 * float32(1-v%2), 0, 0})
		}
		d.Times = append(d.Times, 100+int64(key.Fold(2).IntN(uint64(v), 50)))
		if v < known {
			d.Times[v] = graph.NoTime
			continue
		}
		for k := range uint64(6) { // edges from before are from anyone, later ones from vertices of the class
			u, at := uint32(key.Fold(3).IntN(6*uint64(v)+k, n)), d.Times[v]-1-int64(k)
			if k < 4 {
				u, at = uint32(2*key.Fold(3).IntN(6*uint64(v)+k, known/2))+uint32(d.Labels.Class[v]),
					d.Times[v]+int64(k)
			}
			src, dst, times = append(src, u), append(dst, v), append(times, at)
		}
		switch v % 3 {
		case 0:
			d.Splits.Train = append(d.Splits.Train, v)
		case 1:
			d.Splits.Val = append(d.Splits.Val, v)
		default:
			d.Splits.Test = append(d.Splits.Test, v)
		}
	}
	d.Graph = traintest.FromEdges(t, n, src, dst, nil, graph.BuildOptions{})
	at := map[[2]uint32]int64{} // the same edge again is as late as the later one
	for i := range src {
		at[[2]uint32{src[i], dst[i]}] = max(at[[2]uint32{src[i], dst[i]}], times[i])
	}
	for v := range uint32(n) {
		for _, u := range d.Graph.Neighbors(v) {
			d.Graph.EdgeTimes = append(d.Graph.EdgeTimes, at[[2]uint32{u, v}])
			late := float32(0)
			if at[[2]uint32{u, v}] >= d.Times[v] {
				late = 2*float32(d.Labels.Class[v]) - 1
			}
			d.Graph.EdgeFeatures = append(d.Graph.EdgeFeatures, late)
		}
	}
	d.Graph.EdgeDim = 1
	d.Meta.Name, d.Meta.Nodes, d.Meta.Edges = "planted", n, d.Graph.Edges()
	d.Meta.Features, d.Meta.Task, d.Meta.Classes = &graph.FeatureMeta{Kind: graph.Dense, Dim: 4}, graph.SingleLabel, 2
	return d
}

// TestTemporalBatchesDoNotSeeTheFuture: a planted one is found without --temporal, and not with it, on one worker and
// on two, by sources and by features of edges; and a prediction is by the rule that splits were measured by.
func TestTemporalBatchesDoNotSeeTheFuture(t *testing.T) {
	d := planted(t)
	for _, model := range []string{"sage", "gin"} {
		o := traintest.Options(model)
		o.Epochs, o.Model.Layers, o.Model.Norm, o.Model.In, o.Model.Out = 30, 2, "none", 4, 2
		if model == "gin" {
			o.Model.EdgeDim = 1
		}
		o.Model.Dropout, o.EvalEvery = 0, 10
		m := train.BatchSettings{Sampler: "neighbour", Size: 60, Fanouts: []int{8, 4}, Threads: 2}
		if r := mustMini(t, traintest.Ref(), d, o, m); r.TestMetric < 0.9 {
			t.Errorf("%s without times: %.2f of the test vertices; the planted future is not worth finding", model,
				r.TestMetric)
		}
		for _, temporal := range []string{"uniform", "recent"} {
			m.Temporal = temporal
			one := mustMini(t, traintest.Ref(), d, o, m)
			if one.TestMetric > 0.63 || one.TestMetric < 0.37 { // 127 fair coins: three deviations
				t.Errorf("%s %s: %.2f of the test vertices, of which nothing from before tells", model, temporal,
					one.TestMetric)
			}
			parts := traintest.Cut(t, d, "random", 2)
			two := distributedOver(t, parts, o, m, true).Results[0]
			traintest.SameRun(t, two, one)
			predictedAlike(t, d, parts, o, m, one)
		}
	}
}

// predictedAlike compares predictions of one process and of one worker per part with the metric of training.
func predictedAlike(t *testing.T, d *graph.Dataset, parts []*partition.Part, o train.Options, m train.BatchSettings,
	r *train.Result) {
	t.Helper()
	as := &sample.AsOf{Draws: m.Temporal, Fanouts: m.Fanouts, Seed: o.Seed}
	width, rows, err := batch.PredictAsOf(traintest.Ref(), d, d.Features, o, r.Best, 0, as)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for _, v := range d.Splits.Test {
		row := rows[int(v)*width : int(v)*width+2]
		if (row[1] > row[0]) == (d.Labels.Class[v] == 1) {
			right++
		}
	}
	if got := float64(right) / float64(len(d.Splits.Test)); math.Abs(got-r.TestMetric) > 1e-9 {
		t.Errorf("predictions are right for %.4f, measured were %.4f", got, r.TestMetric)
	}
	ends := traintest.BatchEnds(len(parts), true)
	defer traintest.Close(ends)
	errs := make([]error, len(parts))
	traintest.Each(len(parts), func(k int) {
		o := o
		o.Strategy = traintest.Strategy(t, "distdgl")
		own, err := batch.InferAsOf(context.Background(), traintest.Ref(), parts[k], ends[k], o, r.Best, 0, as)
		errs[k] = err
		for i, v := range parts[k].IDs[:parts[k].Core()] {
			for c := range width {
				if err == nil && math.Abs(float64(own[i*width+c]-rows[int(v)*width+c])) > 1e-6 {
					errs[k] = fmt.Errorf("vertex %d: %g on %d workers, %g on one", v, own[i*width+c], len(parts),
						rows[int(v)*width+c])
				}
			}
		}
	})
	for k, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", k, err)
		}
	}
}
