package full

import (
	"fmt"
	"strings"
	"testing"

	"starling/nn"
	"starling/train"
	"starling/train/traintest"
)

// TestTypedIsExact: typed models on several workers follow one worker's loss, whatever the strategy, and send what was
// planned.
func TestTypedIsExact(t *testing.T) {
	d := traintest.Typed(t, 60)
	for _, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		for _, w := range []int{1, 2, 3, 5} {
			parts := traintest.Cut(t, d, []string{"random", "hash"}[w%2], w)
			for _, strategy := range []string{"halo", "g3", "cagnet"} {
				o.Strategy = traintest.Strategy(t, strategy)
				label := fmt.Sprintf("%s with %s on %d workers", model, strategy, w)
				for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-12)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-12)
				}
			}
		}
		o.Strategy = traintest.Strategy(t, "halo", "relay")
		parts := traintest.CutForServers(t, d, "hash", 4, 2)
		for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
			traintest.SameCurve(t, model+" with rows relayed inside servers", r.Loss, want.Loss, 1e-12)
		}
	}
}

// TestUntypedStrategiesSayWhy: who cannot train on a typed graph refuses it with a reason.
func TestUntypedStrategiesSayWhy(t *testing.T) {
	o := traintest.TypedOptions(traintest.Typed(t, 60), "rgcn")
	for _, strategy := range []string{"bns", "granndis", "neutronstar", "switchgnn"} {
		o.Strategy = traintest.Strategy(t, strategy)
		if err := train.Check(&o, train.Facts{Workers: 2}); err == nil ||
			!strings.Contains(err.Error(), "a typed graph") {
			t.Errorf("%s: %v", strategy, err)
		}
	}
}
