package full

import (
	"fmt"
	"testing"

	"starling/train/traintest"
)

// TestFiftySixLayers: a very deep residual network trains on every exact strategy as on
// one worker.
func TestFiftySixLayers(t *testing.T) {
	d := traintest.Communities(t, 160, false)
	parts := traintest.CutForServers(t, d, "multilevel", 4, 2)
	for _, model := range []string{"ressage+", "resgcn+"} {
		o := traintest.Options(model)
		o.Model.Layers, o.Model.Hidden, o.Epochs, o.EvalEvery = 56, 8, 2, 0
		want := traintest.Full(t, traintest.CPU(t, 1), d, o)
		for _, c := range exactChoices {
			o.Strategy = traintest.Strategy(t, c)
			for _, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
				traintest.SameCurve(t, fmt.Sprintf("%s, %s", model, c), r.Loss, want.Loss, 1e-4)
			}
		}
	}
}
