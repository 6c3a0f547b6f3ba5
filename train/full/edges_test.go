package full

import (
	"fmt"
	"strings"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/train"
	"starling/train/traintest"
)

// TestEdgeFeaturesOnWorkers: workers follow one worker's loss to 1e-9 under every
// strategy that is exact, on graphs with loops and repeated, one-way edges too.
func TestEdgeFeaturesOnWorkers(t *testing.T) {
	for i, d := range []*graph.Dataset{traintest.Communities(t, 90, true), traintest.Oddities(t, 70, false)} {
		traintest.WithEdgeFeatures(d)
		halves, thirds := traintest.Cut(t, d, "hash", 2), traintest.Cut(t, d, "random", 3)
		servers := traintest.CutForServers(t, d, "fennel", 4, 2)
		for _, model := range []string{"gat", "gatv2", "gin"} {
			o := traintest.EdgeOptions(model)
			want := traintest.Full(t, traintest.Ref(), d, o)
			plain := o
			plain.Model.EdgeDim = 0
			if without := traintest.Full(t, traintest.Ref(), d, plain); without.Loss[0] == want.Loss[0] {
				t.Fatalf("%s does not look at features of edges", model)
			}
			follow := func(parts []*partition.Part, label string) {
				t.Helper()
				label = fmt.Sprintf("graph %d, %s, %s on %d workers", i, model, label, len(parts))
				for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-9)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
			}
			follow(halves, "halo")
			follow(thirds, "halo")
			if i == 0 {
				continue // the odd graph is the harder one
			}
			for _, name := range exactChoices {
				o.Strategy = traintest.Strategy(t, name)
				follow(servers, name)
			}
			if model != "gin" {
				o.Strategy = traintest.Strategy(t, "granndis:eas9,999")
				follow(servers, "granndis, sampling everything")
			}
		}
	}
}

// TestEdgeFeaturesOfNoEdges: a worker whose vertices have no in-edge.
func TestEdgeFeaturesOfNoEdges(t *testing.T) {
	d := traintest.Communities(t, 40, false)
	var src, dst []uint32
	for v := range uint32(20) {
		src, dst = append(src, 39-v), append(dst, v)
	}
	d.Graph = traintest.FromEdges(t, 40, src, dst, nil, graph.BuildOptions{})
	d.Meta.Edges, d.Meta.Symmetric = d.Graph.Edges(), false
	traintest.WithEdgeFeatures(d)
	parts := traintest.Cut(t, d, "chunk", 2)
	for _, model := range []string{"gat", "gatv2", "gin"} {
		o := traintest.EdgeOptions(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
			traintest.SameCurve(t, model, r.Loss, want.Loss, 1e-9)
		}
	}
}

// TestEdgeFeaturesAreRefused where a run would be wrong without a word.
func TestEdgeFeaturesAreRefused(t *testing.T) {
	d := traintest.Communities(t, 40, false)
	without := traintest.Cut(t, d, "hash", 2)
	with := traintest.Cut(t, traintest.WithEdgeFeatures(d), "hash", 2)
	thinned, sampled := traintest.EdgeOptions("gin"), traintest.EdgeOptions("gin")
	thinned.Strategy = traintest.Strategy(t, "bns")
	sampled.Strategy = traintest.Strategy(t, "granndis:eas2,2")
	for i, o := range []train.Options{traintest.EdgeOptions("gat"), thinned, sampled} {
		parts := with
		if i == 0 {
			parts = without
		}
		ends := traintest.Ends(2)
		_, err := traintest.Work(parts[0], ends[0], traintest.Ref, o, nil)
		if err == nil || !strings.Contains(err.Error(), "--edge-features") {
			t.Errorf("%s: %v", o.Model.Model, err)
		}
		traintest.Close(ends)
	}
}
