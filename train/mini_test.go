package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
)

func mustMini(t testing.TB, dev tensor.Device, d *graph.Dataset, o Options, m MiniOptions) *Result {
	t.Helper()
	r, err := Mini(context.Background(), dev, d, o, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// everything is one batch of all training vertices with all their neighbours.
func everything(o Options) MiniOptions {
	m := MiniOptions{Sampler: "neighbour", Size: 1 << 30, Threads: 2}
	for range o.Model.Layers {
		m.Fanouts = append(m.Fanouts, sample.All)
	}
	if o.Model.Model == "mlp" {
		m.Fanouts = nil
	}
	return m
}

// withLoops adds weights, loops and a repeated edge.
func withLoops(t testing.TB, d *graph.Dataset, weighted bool) *graph.Dataset {
	t.Helper()
	var src, dst []uint32
	var weights []float32
	put := func(u, v uint32) {
		src, dst = append(src, u), append(dst, v)
		if weighted {
			weights = append(weights, 0.25+float32((u*7+v*3)%5))
		}
	}
	for v := range uint32(d.Graph.Nodes()) {
		for _, u := range d.Graph.Neighbors(v) {
			put(u, v)
		}
		if v%3 == 0 {
			put(v, v)
		}
		if v%7 == 0 {
			put((v+1)%uint32(d.Graph.Nodes()), v)
		}
	}
	g, err := graph.FromEdges(d.Graph.Nodes(), src, dst, weights, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Graph, d.Meta.Symmetric, d.Meta.Edges = g, false, g.Edges()
	return d
}

// TestOneBatchOfAllIsFullGraph: with all neighbours and one batch, mini-batch
// training is full-graph training, dropout included.
func TestOneBatchOfAllIsFullGraph(t *testing.T) {
	for _, model := range nn.Models {
		for _, shape := range []string{"dense", "sparse", "loops", "weighted"} {
			if model == "gat" && shape == "weighted" {
				continue // attention does not look at weights
			}
			d := communities(t, 120, shape == "sparse")
			if shape == "loops" || shape == "weighted" {
				d = withLoops(t, d, shape == "weighted")
			}
			o := options(model)
			o.Epochs = 4
			if o.Model.Layers > 2 {
				o.Model.Layers = 3
			}
			o.Model.InputDropout = shape == "loops"
			full := mustTrain(t, tensor.NewRef(), d, o)
			mini := mustMini(t, tensor.NewRef(), d, o, everything(o))
			for e, want := range full.Loss {
				if math.Abs(mini.Loss[e]-want) > 1e-9*want {
					t.Errorf("%s, %s: loss %.12f in epoch %d, full-graph training has %.12f", model, shape, mini.Loss[e], e, want)
					break
				}
			}
			if !slices.Equal(full.Val, mini.Val) {
				t.Errorf("%s, %s: validation %v, full-graph training has %v", model, shape, mini.Val, full.Val)
			}
		}
	}
}
