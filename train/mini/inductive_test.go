package mini

import (
	"fmt"
	"slices"
	"starling/train/traintest"
	"testing"
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
