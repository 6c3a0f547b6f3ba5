package train

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/wire"
)

// edgeDim is the numbers an edge has in tests.
const edgeDim = 3

// withEdgeFeatures gives the edges of d features.
func withEdgeFeatures(d *graph.Dataset) *graph.Dataset {
	key, g := rng.New(5), d.Graph
	g.EdgeDim, g.EdgeFeatures = edgeDim, nil
	for i := range uint64(g.Edges()) * edgeDim {
		g.EdgeFeatures = append(g.EdgeFeatures, float32(key.Normal(i)))
	}
	d.Meta.EdgeDim = edgeDim
	return d
}

// edgeOptions are options of a model that looks at features of edges.
func edgeOptions(model string) Options {
	o := options(model)
	o.Epochs, o.EvalEvery, o.Model.EdgeDim = 5, 2, edgeDim
	return o
}

// TestEdgeFeaturesOnWorkers: workers follow one worker's loss to 1e-9 under every
// strategy that is exact, on graphs with loops and repeated, one-way edges too.
func TestEdgeFeaturesOnWorkers(t *testing.T) {
	withCosts(t, "all recomputed", 1e-9, 1e-9, 1)
	for i, d := range []*graph.Dataset{communities(t, 90, true), oddities(t, 70, false)} {
		withEdgeFeatures(d)
		halves, thirds := cut(t, d, "hash", 2), cut(t, d, "random", 3)
		servers := cutForServers(t, d, "fennel", 4, 2)
		for _, model := range []string{"gat", "gatv2", "gin"} {
			o := edgeOptions(model)
			want := mustTrain(t, tensor.NewRef(), d, o)
			plain := o
			plain.Model.EdgeDim = 0
			if without := mustTrain(t, tensor.NewRef(), d, plain); without.Loss[0] == want.Loss[0] {
				t.Fatalf("%s does not look at features of edges", model)
			}
			follow := func(parts []*partition.Part, label string) {
				t.Helper()
				label = fmt.Sprintf("graph %d, %s, %s on %d workers", i, model, label, len(parts))
				for _, r := range trainParts(t, parts, onRef, o) {
					sameCurve(t, label, r.Loss, want.Loss, 1e-9)
					sameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
			}
			follow(halves, "halo")
			follow(thirds, "halo")
			if i == 0 {
				continue // the odd graph is the harder one
			}
			for _, name := range exactChoices {
				var err error
				if o.Strategy, err = DefaultChoice("").Parse(name); err != nil {
					t.Fatal(err)
				}
				follow(servers, name)
			}
			o.Strategy.Name, o.Strategy.Budget = "all recomputed", 1<<40
			follow(thirds, "neutronstar, all recomputed")
			o.Strategy = DefaultChoice("granndis")
			if o.Strategy.Sample = "9,999"; model != "gin" {
				follow(servers, "granndis, sampling everything")
			}
		}
	}
}

// TestEdgeFeaturesOfNoEdges: a worker whose vertices have no in-edge.
func TestEdgeFeaturesOfNoEdges(t *testing.T) {
	d := communities(t, 40, false)
	var src, dst []uint32
	for v := range uint32(20) {
		src, dst = append(src, 39-v), append(dst, v)
	}
	g, err := graph.FromEdges(40, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Graph, d.Meta.Edges, d.Meta.Symmetric = g, g.Edges(), false
	withEdgeFeatures(d)
	parts := cut(t, d, "chunk", 2)
	for _, model := range []string{"gat", "gatv2", "gin"} {
		o := edgeOptions(model)
		want := mustTrain(t, tensor.NewRef(), d, o)
		for _, r := range trainParts(t, parts, onRef, o) {
			sameCurve(t, model, r.Loss, want.Loss, 1e-9)
		}
	}
}

// TestEdgeFeaturesAreRefused where a run would be wrong without a word.
func TestEdgeFeaturesAreRefused(t *testing.T) {
	d := communities(t, 40, false)
	without := cut(t, d, "hash", 2)
	with := cut(t, withEdgeFeatures(d), "hash", 2)
	thinned, sampled := edgeOptions("gin"), edgeOptions("gin")
	thinned.Strategy = DefaultChoice("bns")
	sampled.Strategy = DefaultChoice("granndis")
	sampled.Strategy.Sample = "2,2"
	for i, o := range []Options{edgeOptions("gat"), thinned, sampled} {
		parts := with
		if i == 0 {
			parts = without
		}
		ends := wire.NewGroup(2, wire.DefaultOptions())
		dev := tensor.NewRef()
		_, err := Worker(context.Background(), dev, parts[0], ends[0], NewGroup(context.Background(), ends[0], dev, 1), o, nil)
		if err == nil || !strings.Contains(err.Error(), "--edge-features") {
			t.Errorf("%s: %v", o.Model.Model, err)
		}
		for _, e := range ends {
			e.Close()
		}
	}
}

// TestEdgeFeaturesInBatches: one batch with all neighbours, and one cluster that is the
// whole graph, are full-graph training.
func TestEdgeFeaturesInBatches(t *testing.T) {
	for _, shape := range []string{"dense", "loops", "odd"} {
		d := communities(t, 120, false)
		switch shape {
		case "loops":
			d = withLoops(t, d, false)
		case "odd":
			d = oddities(t, 80, false)
		}
		withEdgeFeatures(d)
		for _, model := range []string{"gat", "gatv2", "gin"} {
			o := edgeOptions(model)
			full := mustTrain(t, tensor.NewRef(), d, o)
			for _, m := range []MiniOptions{everything(o), {Sampler: "cluster", Size: 1 << 20, Clusters: 1, Threads: 1}} {
				mini := mustMini(t, tensor.NewRef(), d, o, m)
				label := fmt.Sprintf("%s, %s, %s", model, shape, m.Sampler)
				sameCurve(t, label, mini.Loss, full.Loss, 1e-9)
				sameCurve(t, label+", validation", mini.Val, full.Val, 1e-9)
			}
		}
	}
}

// TestDrawnEdgesStandForOthers: where all edges are alike, a few of them, each counted
// for several, make GIN's sums over all, and the gradients too.
func TestDrawnEdgesStandForOthers(t *testing.T) {
	d := withEdgeFeatures(communities(t, 60, false))
	for i := range d.Features.F32 {
		d.Features.F32[i] = float32(i%d.Features.Cols) / 4
	}
	for i := range d.Graph.EdgeFeatures {
		d.Graph.EdgeFeatures[i] = float32(i%edgeDim) - 0.5
	}
	o := edgeOptions("gin")
	o.Model.Layers, o.Model.Dropout = 1, 0
	full := mustTrain(t, tensor.NewRef(), d, o)
	for _, replace := range []bool{false, true} {
		m := everything(o)
		m.Fanouts, m.Replace = []int{2}, replace
		sameCurve(t, fmt.Sprintf("two neighbours, replace=%v", replace), mustMini(t, tensor.NewRef(), d, o, m).Loss, full.Loss, 1e-6)
	}
}

// TestSamplersOfEdgeFeatures: every sampler gives attention its edges' features, on the
// CPU; GIN refuses those that weigh edges.
func TestSamplersOfEdgeFeatures(t *testing.T) {
	d := withEdgeFeatures(communities(t, 200, false))
	for _, name := range Samplers {
		for _, model := range []string{"gat", "gatv2", "gin"} {
			o := edgeOptions(model)
			r, err := Mini(context.Background(), cpu(t, 1), d, o, samplerOptions(name, 2), nil)
			if refused := model == "gin" && name != "neighbour" && name != "cluster"; refused != (err != nil) || refused && !strings.Contains(err.Error(), "--edge-features") {
				t.Errorf("%s, %s: %v", name, model, err)
			} else if err == nil {
				o.Model.EdgeDim = 0
				if without := mustMini(t, cpu(t, 1), d, o, samplerOptions(name, 2)); !(r.Loss[0] != without.Loss[0]) {
					t.Errorf("%s, %s: losses %v with features of edges and without", name, model, r.Loss)
				}
			}
		}
	}
}
