package full

import (
	"math"
	"sync"
	"testing"

	"starling/nn"
	"starling/train"
	"starling/train/traintest"
)

// TestStaleIsRightOnceWeightsConverge: where nothing changes any more, stale rows and
// gradients are as good as fresh ones, and the step they lead to is halo's.
// What such strategies lose, they lose because weights move.
func TestStaleIsRightOnceWeightsConverge(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 60, false), "random", 4, 2)
	for _, model := range []string{"gcn", "sage", "gat"} {
		o := traintest.Options(model)
		o.Model.Layers, o.Model.Dropout, o.Model.AttentionDropout = 3, 0, 0
		o.Optim = nn.OptimConfig{Name: "sgd", LR: 1e-6}
		want := lastStep(t, o, func(o train.Options) *train.Result {
			return traintest.TrainParts(t, parts,
				traintest.Ref, o)[0]
		})
		for _, name := range []string{"pipegcn", "pipegcn+relay", "pipegcn+means", "pipegcn+relay+means", "sancus",
			"sancus+means", "skipg", "bns:0.6:cached+relay", "bns:0.6:cached+means"} {
			o.Strategy = traintest.Strategy(t, name)
			got := lastStep(t, o, func(o train.Options) *train.Result {
				return traintest.TrainParts(t, parts,
					traintest.Ref, o)[0]
			})
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
func lastStep(t *testing.T, o train.Options, run func(train.Options) *train.Result) []float64 {
	t.Helper()
	const epochs = 20 // enough for what is most stale to have passed all layers, both ways
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

// TestStaleBlocksOfFrozenWeights: while weights stay, and nothing is drawn, stale rows and
// gradients are as good as fresh ones. Adam's moments, which sum gradients
// of all epochs, then equal one worker's.
func TestStaleBlocksOfFrozenWeights(t *testing.T) {
	d := traintest.Communities(t, 120, true)
	parts := traintest.Cut(t, d, "hash", 3)
	for _, model := range []string{"gcn", "gat"} {
		o := traintest.Options(model)
		o.Epochs, o.Optim.LR, o.Model.Dropout, o.Model.AttentionDropout = 8, 0, 0, 0
		var mu sync.Mutex
		var state *train.State
		o.Save = func(s *train.State) error {
			mu.Lock()
			defer mu.Unlock()
			state = s
			return nil
		}
		traintest.Full(t, traintest.Ref(), d, o)
		want := state.Optim
		for _, choice := range []string{"sancus:epoch:3", "sancus:adaptive:2+gradients", "sancus:variation:0.5",
			"skipg:2", "bns:0.3:cached"} {
			o.Strategy = traintest.Strategy(t, choice)
			traintest.TrainParts(t, parts, traintest.Ref, o)
			for i, w := range want {
				for j, v := range state.Optim[i].Data {
					if math.Abs(v-w.Data[j]) > 1e-9*math.Abs(w.Data[j])+1e-15 {
						t.Fatalf("%s, %s: %s is %g at %d, want %g", model, choice, w.Name, v, j, w.Data[j])
					}
				}
			}
		}
	}
}
