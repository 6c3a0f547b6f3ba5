package full

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"starling/nn"
	"starling/train"
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

// TestRelationNegativesAreExact: likewise with negatives by degree and with those of the highest scores.
func TestRelationNegativesAreExact(t *testing.T) {
	d := traintest.Typed(t, 30)
	for name, change := range map[string]func(o *train.PairOptions){
		"degree": func(o *train.PairOptions) { o.Power = 0.75 },
		"hard":   func(o *train.PairOptions) { o.Hard = 3 },
	} {
		o := traintest.RelationOptions(d, "rgcn", "distmult", "tag has item", "knows")
		o.Epochs, o.EvalEvery = 3, 2
		uniform := traintest.LinkRelations(t, d, o)
		change(o.Pairs)
		want := traintest.LinkRelations(t, d, o)
		if slices.Equal(want.Loss, uniform.Loss) {
			t.Errorf("%s: the losses of uniform negatives", name)
		}
		for w := 1; w <= 3; w++ {
			o.Strategy = traintest.Strategy(t, []string{"halo", "g3"}[w%2])
			parts := traintest.CutForServers(t, d, "random", w, w)
			label := fmt.Sprintf("%s on %d workers", name, w)
			got := traintest.TrainServers(t, parts, traintest.Ref, o).Results[0]
			traintest.SameCurve(t, label, got.Loss, want.Loss, 1e-12)
			traintest.SameCurve(t, label+", validation", got.Val, want.Val, 1e-12)
			for name, value := range want.Measures {
				traintest.SameCurve(t, label+", "+name, []float64{got.Measures[name]}, []float64{value}, 1e-12)
			}
		}
	}
}
