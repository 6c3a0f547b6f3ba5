package train

import (
	"math"
	"testing"
)

// TestMeansKeepLossesNear: with steps so large that late and old rows make losses go up and
// down, those of runs with means stay near halo's.
func TestMeansKeepLossesNear(t *testing.T) {
	parts := cut(t, communities(t, 400, false), "random", 4)
	for _, model := range []string{"gcn", "sage"} {
		o := options(model)
		o.Model.Layers, o.Model.Dropout, o.Optim.LR, o.Epochs, o.EvalEvery = 3, 0, 0.03, 40, 0
		halo := trainParts(t, parts, single, o)[0].Loss
		for _, name := range []string{"pipegcn", "sancus"} {
			o.Strategy = DefaultChoice(name)
			without := apart(trainParts(t, parts, single, o)[0].Loss, halo)
			o.Strategy.Means = true
			if with := apart(trainParts(t, parts, single, o)[0].Loss, halo); !(with < without/4) {
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
