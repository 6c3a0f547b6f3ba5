package train

import (
	"fmt"
	"testing"

	"starling/tensor"
)

// TestFiftySixLayers: a very deep residual network trains on every exact strategy as on
// one worker.
func TestFiftySixLayers(t *testing.T) {
	d := communities(t, 160, false)
	parts := cutForServers(t, d, "multilevel", 4, 2)
	for _, model := range []string{"ressage+", "resgcn+"} {
		o := options(model)
		o.Model.Layers, o.Model.Hidden, o.Epochs, o.EvalEvery = 56, 8, 2, 0
		want := mustTrain(t, cpu(t, 1), d, o)
		for _, c := range exactChoices {
			var err error
			if o.Strategy, err = DefaultChoice("").Parse(c); err != nil {
				t.Fatal(err)
			}
			for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(1) }, o) {
				sameCurve(t, fmt.Sprintf("%s, %s", model, c), r.Loss, want.Loss, 1e-4)
			}
		}
	}
}
