package train

import (
	"fmt"
	"testing"

	"starling/nn"
	"starling/tensor"
)

func g3Options(model, pipeline string) Options {
	o := options(model)
	o.Strategy = DefaultChoice("g3")
	o.Strategy.Pipeline = pipeline
	o.Strategy.Budget = 2 << 10 // bins of a few vertices
	return o
}

// TestG3IsExact: every model and pipeline, on several workers and partitions, follows
// one worker's loss: to 1e-9 in float64, to 1e-4 in float32. All pipelines have the
// same bits.
func TestG3IsExact(t *testing.T) {
	for _, model := range nn.Models {
		for _, sparse := range []bool{false, true} {
			d := communities(t, 120, sparse)
			o := g3Options(model, "both")
			o.Epochs, o.EvalEvery = 4, 2
			if o.Model.Layers > 2 {
				o.Model.Layers = 4
			}
			if model == "gcn" {
				o.Model.Norm = "batch"
			}
			want := mustTrain(t, tensor.NewRef(), d, o)
			for i, w := range []int{1, 2, 3, 5} {
				method := []string{"random", "hash", "chunk", "fennel"}[w%4]
				parts := cut(t, d, method, w)
				o.Strategy.Pipeline = []string{"none", "intra", "both", "inter"}[i]
				label := fmt.Sprintf("%s sparse=%v on %d workers cut by %s, pipeline %s", model, sparse, w, method, o.Strategy.Pipeline)
				for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewRef() }, o) {
					sameCurve(t, label, r.Loss, want.Loss, 1e-9)
					sameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
				for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(1) }, o) {
					sameCurve(t, label+", float32", r.Loss, want.Loss, 1e-4)
				}
			}
		}
	}
}
