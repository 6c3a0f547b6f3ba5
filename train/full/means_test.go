package full

import (
	"math"
	"testing"

	"starling/train/traintest"
)

// TestMeansKeepLossesNear: with steps so large that stale rows make losses go up and
// down, those of runs with corrected means stay near halo's.
func TestMeansKeepLossesNear(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 400, false), "random", 4)
	for _, model := range []string{"gcn", "sage"} {
		o := traintest.Options(model)
		o.Model.Layers, o.Model.Dropout, o.Optim.LR, o.Epochs, o.EvalEvery = 3, 0, 0.03, 40, 0
		halo := traintest.TrainParts(t, parts, traintest.Single, o)[0].Loss
		for _, name := range []string{"pipegcn", "sancus+gradients"} {
			o.Strategy = traintest.Strategy(t, name)
			without := apart(traintest.TrainParts(t, parts, traintest.Single, o)[0].Loss, halo)
			o.Strategy = traintest.Strategy(t, name, "means")
			if with := apart(traintest.TrainParts(t, parts, traintest.Single, o)[0].Loss, halo); !(with < without/4) {
				t.Errorf("%s, %s: %.3g from halo's losses with means, %.3g without", model, name, with, without)
			}
		}
	}
}

// apart is how far losses are from each other in the second half of a run.
func apart(a, b []float64) (d float64) {
	for e := len(a) / 2; e < len(a); e++ {
		d += math.Abs(a[e] - b[e])
	}
	return d
}
