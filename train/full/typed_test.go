package full

import (
	"fmt"
	"testing"

	"starling/nn"
	"starling/partition"
	"starling/train/traintest"
)

// TestTypedIsExact: typed models on several workers follow one worker's loss, and send what was planned.
func TestTypedIsExact(t *testing.T) {
	d := traintest.Typed(t, 60)
	cuts := map[int][]*partition.Part{}
	for _, w := range []int{1, 2, 3, 5} {
		cuts[w] = traintest.Cut(t, d, []string{"random", "hash"}[w%2], w)
	}
	for _, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		for w, parts := range cuts {
			for _, strategy := range []string{"halo"} {
				o.Strategy = traintest.Strategy(t, strategy)
				label := fmt.Sprintf("%s with %s on %d workers", model, strategy, w)
				for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-12)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-12)
				}
			}
		}
	}
}
