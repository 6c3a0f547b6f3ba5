package batch

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"starling/sample"
	"starling/train"
	"starling/train/traintest"
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
			for _, m := range []train.BatchSettings{everything(o),
				{Sampler: "cluster", Size: 1 << 20, Clusters: 1, Threads: 1}} {
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
	for _, name := range sample.Names {
		for _, model := range []string{"gat", "gatv2", "gin"} {
			o := traintest.EdgeOptions(model)
			r, err := Run(context.Background(), traintest.CPU(t, 1), d, o, samplerOptions(name, 2), nil)
			weighs := name != "neighbour" && !strings.HasPrefix(name, "cluster")
			if refused := model == "gin" && weighs || name == "pinsage"; refused != (err != nil) ||
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
