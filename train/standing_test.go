package train

import (
	"math"
	"strings"
	"testing"

	"starling/nn"
)

// TestOldIsRightOnceWeightsStandStill: where nothing changes any more, rows and
// gradients that are late or old are those of now, and the step they lead to is halo's.
// What such strategies lose, they lose because weights move.
func TestOldIsRightOnceWeightsStandStill(t *testing.T) {
	parts := cutForServers(t, communities(t, 60, false), "random", 4, 2)
	for _, model := range []string{"gcn", "sage", "gat"} {
		o := options(model)
		o.Model.Layers, o.Model.Dropout, o.Model.AttentionDropout = 3, 0, 0
		o.Optim = nn.OptimConfig{Name: "sgd", LR: 1e-6}
		want := lastStep(t, o, func(o Options) *Result { return trainParts(t, parts, ref, o)[0] })
		for _, name := range []string{"pipegcn", "pipegcn+relay", "pipegcn+means", "pipegcn+relay+means", "sancus", "sancus+means", "skipg", "bns+relay", "bns+means"} {
			base, _, _ := strings.Cut(name, "+")
			o.Strategy = DefaultChoice(base)
			o.Strategy.Relay, o.Strategy.Means = strings.Contains(name, "+relay"), strings.Contains(name, "+means")
			o.Strategy.Keep, o.Strategy.Cached = 0.6, base == "bns"
			got := lastStep(t, o, func(o Options) *Result { return trainParts(t, parts, ref, o)[0] })
			var apart, size float64
			for i := range want {
				apart, size = apart+math.Pow(got[i]-want[i], 2), size+math.Pow(want[i], 2)
			}
			if d := math.Sqrt(apart / size); !(d < 1e-4) {
				t.Errorf("%s, %s: the last step is %.2g of halo's away from it", model, name, d)
			}
		}
	}
}

// lastStep is what the last epoch of a run does to the weights.
func lastStep(t *testing.T, o Options, run func(Options) *Result) []float64 {
	t.Helper()
	const epochs = 20 // enough for what is oldest to have passed all layers, both ways
	o.EvalEvery = 0
	o.Epochs = epochs - 1
	before := run(o).Final
	o.Epochs = epochs
	var step []float64
	for i, p := range run(o).Final {
		for j, v := range p.Data {
			step = append(step, v-before[i].Data[j])
		}
	}
	return step
}
