package mini

import (
	"fmt"
	"starling/train/traintest"
	"starling/wire"
	"testing"
)

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
			with := traintest.Batches(t, parts, o, m, true, c.strategy)
			traintest.SameRun(t, with.Results[0], one)
			traintest.SameRun(t, traintest.Batches(t, parts, o, m, false, c.strategy).Results[0], one)
			o.Model.EdgeDim = 0
			without := traintest.Batches(t, parts, o, m, true, c.strategy)
			traintest.SameRun(t, without.Results[0], mustMini(t, traintest.Ref(), d, o, m))
			edges := func(r *traintest.Trained) int64 {
				return r.Sum(func(c wire.Class) bool { return c.Kind == wire.Topology })
			}
			if edges(without) >= edges(with) {
				t.Errorf("%d bytes of edges with features, %d without", edges(with), edges(without))
			}
		})
	}
}
