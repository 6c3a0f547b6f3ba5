package mini

import (
	"fmt"
	"slices"
	"testing"

	"starling/graph"
	"starling/train/traintest"
)

// TestDistributedInductive: batches are drawn from the edges between training vertices, with their
// degrees there, and accuracy is measured on the whole graph, as with one worker.
func TestDistributedInductive(t *testing.T) {
	for i, c := range []struct{ strategy, model, shape, sampler string }{
		{"distdgl", "gcn", "dense", "neighbour"}, {"distdgl", "sage", "weighted", "fastgcn"},
		{"distdgl", "gat", "loops", "ladies"}, {"distdgl", "sage", "sparse", "saint-node"},
		{"salient", "gin", "loops", "saint-walk"}, {"bytegnn", "gcn", "weighted", "neighbour"},
		{"p3", "sage", "dense", "neighbour"}, {"hopgnn", "sage", "dense", "neighbour"},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			d := traintest.Communities(t, 150, c.shape == "sparse")
			if c.shape == "loops" || c.shape == "weighted" {
				d = traintest.WithLoops(t, d, c.shape == "weighted")
			}
			o := traintest.Options(c.model)
			o.Epochs, o.Model.Layers, o.Model.Norm, o.Inductive = 3, 2, "none", true
			m := samplerOptions(c.sampler, 2)
			one := mustMini(t, traintest.Ref(), d, o, m)
			whole := o
			whole.Inductive = false
			if all := mustMini(t, traintest.Ref(), d, whole, m); slices.Equal(all.Loss, one.Loss) {
				t.Fatalf("losses %v with and without edges of other vertices", one.Loss)
			}
			parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], 2+i%3)
			for _, remote := range []bool{true, false} {
				traintest.SameRun(t, traintest.Batches(t, parts, o, m, remote, c.strategy).Results[0], one)
			}
		})
	}
}

// TestWeightedInductiveWithoutEdges: a part whose training vertices have no edges between them draws by weight as
// others do.
func TestWeightedInductiveWithoutEdges(t *testing.T) {
	d := traintest.WithLoops(t, traintest.Communities(t, 60, false), true)
	var src, dst []uint32
	var weights []float32
	of := make([]uint32, 60)
	for v := range uint32(60) {
		of[v] = v / 30
		for i, u := range d.Graph.Neighbors(v) {
			if of[v] == 0 && u/30 == 0 || v%2 != u%2 { // the second part trains on its even vertices
				src, dst = append(src, u), append(dst, v)
				weights = append(weights, d.Graph.Weights[d.Graph.Indptr[v]+int64(i)])
			}
		}
	}
	d.Graph = traintest.FromEdges(t, 60, src, dst, weights, graph.BuildOptions{})
	d.Splits.Train = slices.DeleteFunc(
		slices.Clone(d.Splits.Train),
		func(v uint32) bool { return of[v] == 1 && v%2 == 1 },
	)
	o, m := traintest.Options("sage"), samplerOptions("neighbour", 2)
	o.Epochs, o.Model.Layers, o.Model.Norm, o.Inductive, m.Weighted = 3, 2, "none", true, true
	one := mustMini(t, traintest.Ref(), d, o, m)
	parts := traintest.WriteParts(t, d, of, 2, 1)
	traintest.SameRun(t, traintest.Batches(t, parts, o, m, true, "distdgl").Results[0], one)
}
