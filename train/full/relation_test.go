package full

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"starling/nn"
	"starling/train/traintest"
)

// TestRelationLinksAreExact: link prediction on relations follows one worker's loss on several, whatever model, decoder
// and strategy, measures the same, and sends what was planned.
func TestRelationLinksAreExact(t *testing.T) {
	d := traintest.Typed(t, 30)
	strategies := []string{"halo", "granndis:1", "g3", "neutronstar", "cagnet"}
	for i, w := range []int{1, 2, 3, 5} {
		parts := traintest.CutForServers(t, d, []string{"random", "hash"}[w%2], w, w)
		for k, model := range nn.TypedModels {
			relations := [][]string{{"likes"}, {"tag has item", "knows"}, {"of"}}[(i+k)%3]
			o := traintest.RelationOptions(d, model, nn.RelationDecoders[k%len(nn.RelationDecoders)], relations...)
			o.Epochs, o.EvalEvery = 4, 2
			want := traintest.LinkRelations(t, d, o)
			strategy := strategies[(i+2*k)%len(strategies)]
			o.Strategy = traintest.Strategy(t, strategy)
			label := fmt.Sprintf("%s of %v with %s on %d workers", model, relations, strategy, w)
			for _, r := range traintest.TrainServers(t, parts, traintest.Ref, o).Results {
				traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-12)
				traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-12)
				traintest.SameCurve(t, label+", test", r.Test, want.Test, 1e-12)
				for _, name := range slices.Sorted(maps.Keys(want.Measures)) {
					if math.Abs(r.Measures[name]-want.Measures[name]) > 1e-12 {
						t.Errorf("%s: %s is %g, want %g", label, name, r.Measures[name], want.Measures[name])
					}
				}
			}
		}
	}
}
