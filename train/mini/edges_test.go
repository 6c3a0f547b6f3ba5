package mini

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"starling/train/traintest"
	"starling/wire"
)

// TestEdgeFeaturesInBatches: one batch with all neighbours, and one cluster that is the
// whole graph, are full-graph training.
func TestEdgeFeaturesInBatches(t *testing.T) {
	for _, shape := range []string{"dense", "loops", "odd"} {
		d := traintest.Communities(t, 120, false)
		switch shape {
		case "loops":
			d = traintest.WithLoops(t, d, false)
		case "odd":
			d = traintest.Oddities(t, 80, false)
		}
		traintest.WithEdgeFeatures(d)
		for _, model := range []string{"gat", "gatv2", "gin"} {
			o := traintest.EdgeOptions(model)
			full := traintest.Full(t, traintest.Ref(), d, o)
			for _, m := range []Options{everything(o), {Sampler: "cluster", Size: 1 << 20, Clusters: 1, Threads: 1}} {
				mini := mustMini(t, traintest.Ref(), d, o, m)
				label := fmt.Sprintf("%s, %s, %s", model, shape, m.Sampler)
				traintest.SameCurve(t, label, mini.Loss, full.Loss, 1e-9)
				traintest.SameCurve(t, label+", validation", mini.Val, full.Val, 1e-9)
			}
		}
	}
}

// TestDrawnEdgesStandForOthers: where all edges are alike, a few of them, each counted
// for several, make GIN's sums over all, and the gradients too.
func TestDrawnEdgesStandForOthers(t *testing.T) {
	d := traintest.WithEdgeFeatures(traintest.Communities(t, 60, false))
	for i := range d.Features.F32 {
		d.Features.F32[i] = float32(i%d.Features.Cols) / 4
	}
	for i := range d.Graph.EdgeFeatures {
		d.Graph.EdgeFeatures[i] = float32(i%traintest.EdgeDim) - 0.5
	}
	o := traintest.EdgeOptions("gin")
	o.Model.Layers, o.Model.Dropout = 1, 0
	full := traintest.Full(t, traintest.Ref(), d, o)
	for _, replace := range []bool{false, true} {
		m := everything(o)
		m.Fanouts, m.Replace = []int{2}, replace
		traintest.SameCurve(t, fmt.Sprintf("two neighbours, replace=%v", replace),
			mustMini(t, traintest.Ref(), d, o, m).Loss, full.Loss, 1e-6)
	}
}

// TestSamplersOfEdgeFeatures: every sampler gives attention its edges' features, on the
// CPU; GIN refuses those that weigh edges.
func TestSamplersOfEdgeFeatures(t *testing.T) {
	d := traintest.WithEdgeFeatures(traintest.Communities(t, 200, false))
	for _, name := range Samplers {
		for _, model := range []string{"gat", "gatv2", "gin"} {
			o := traintest.EdgeOptions(model)
			r, err := Run(context.Background(), traintest.CPU(t, 1), d, o, samplerOptions(name, 2), nil)
			weighs := name != "neighbour" && !strings.HasPrefix(name, "cluster")
			if refused := model == "gin" && weighs; refused != (err != nil) ||
				refused && !strings.Contains(err.Error(), "--edge-features") {
				t.Errorf("%s, %s: %v", name, model, err)
			} else if err == nil {
				o.Model.EdgeDim = 0
				if without := mustMini(t, traintest.CPU(t, 1), d, o,
					samplerOptions(name, 2)); !(r.Loss[0] != without.Loss[0]) {
					t.Errorf("%s, %s: losses %v with features of edges and without", name, model, r.Loss)
				}
			}
		}
	}
}

// TestDistributedEdgeFeatures: features of edges come with the draws of their destinations' owners,
// and the loss curve is one worker's; a model that does not look at them has none sent.
func TestDistributedEdgeFeatures(t *testing.T) {
	for i, c := range []struct{ strategy, model, sampler string }{
		{"distdgl", "gat", "neighbour"}, {"distdgl", "gatv2", "ladies"}, {"distdgl", "gin", "neighbour"},
		{"distdgl", "gat", "saint-edge"}, {"bytegnn", "gatv2", "neighbour"}, {"hopgnn", "gin", "neighbour"},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			d := traintest.WithEdgeFeatures(traintest.Communities(t, 120, false))
			o := traintest.EdgeOptions(c.model)
			o.Epochs, o.Model.Norm, o.Inductive = 3, "none", i%3 == 2
			m := samplerOptions(c.sampler, o.Model.Layers)
			one := mustMini(t, traintest.Ref(), d, o, m)
			parts := traintest.Cut(t, d, "random", 2+i%3)
			with := batchesOver(t, parts, o, m, true, c.strategy)
			sameCurve(t, with.Results[0], one)
			sameCurve(t, batchesOver(t, parts, o, m, false, c.strategy).Results[0], one)
			o.Model.EdgeDim = 0
			without := batchesOver(t, parts, o, m, true, c.strategy)
			sameCurve(t, without.Results[0], mustMini(t, traintest.Ref(), d, o, m))
			edges := func(r *traintest.Trained) int64 {
				return r.Sum(func(c wire.Class) bool { return c.Kind == wire.Topology })
			}
			if edges(without) >= edges(with) {
				t.Errorf("%d bytes of edges with features, %d without", edges(with), edges(without))
			}
		})
	}
}
