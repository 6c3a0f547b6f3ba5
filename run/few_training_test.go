package run

import (
	"math"
	"testing"

	"starling/dataset/generate"
	"starling/setup/setuptest"
)

// TestSubgraphsWithoutTrainingVertices: where few batches of GraphSAINT have a training vertex, those of a dry run may
// have none. Several workers train nevertheless, and what one does.
func TestSubgraphsWithoutTrainingVertices(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Train = 1000, 0.01 }))
	s.Mode, s.Batches.Sampler, s.Batches.Size, s.Training.Epochs, s.Seed = "mini", "saint-node", 20, 2, 3
	s.Machine.DType = "f64"
	one := trained(t, s, nil)
	s.Cluster.Workers, s.Cluster.InProcess = 2, true
	two := trained(t, s, nil)
	for e, loss := range one.Loss {
		if math.Abs(float64(two.Loss[e]-loss)) > 1e-9*float64(1+loss) {
			t.Errorf("epoch %d: loss %.12f, of one worker %.12f", e, two.Loss[e], loss)
		}
	}
}
