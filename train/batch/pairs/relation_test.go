package pairs_test

import (
	"fmt"
	"math"
	"testing"

	"starling/nn"
	"starling/sample"
	"starling/train"
	"starling/train/batch/pairs"
	"starling/train/traintest"
)

// TestRelationBatchesAreTheWholeGraph: an epoch of one batch with all neighbours is an epoch over the whole graph,
// whatever model and decoder.
func TestRelationBatchesAreTheWholeGraph(t *testing.T) {
	d := traintest.Featured(traintest.Typed(t, 30))
	for i, model := range nn.TypedModels {
		o := traintest.RelationOptions(d, model, nn.RelationDecoders[i%len(nn.RelationDecoders)], "likes", "has")
		o.Pairs.ValEdges, o.Epochs = 0.2, 4
		link := pairs.Options{Batches: train.BatchSettings{Sampler: "neighbour", Size: 1 << 20, Threads: 1,
			Fanouts: []int{sample.All, sample.All}}}
		got, err := pairs.RunRelations(t.Context(), traintest.Ref(), d, o, link, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := traintest.LinkRelations(t, d, o)
		traintest.SameCurve(t, model, got.Loss, want.Loss, 1e-12)
		traintest.SameCurve(t, model+", validation", got.Val, want.Val, 1e-12)
	}
}

// TestRelationBatchesLearn: batches that leave out their own pairs find held-out edges of each relation; a dry run
// takes the same parameters.
func TestRelationBatchesLearn(t *testing.T) {
	d := traintest.Featured(traintest.Typed(t, 60))
	o := traintest.RelationOptions(d, "hsage", "distmult", "has", "lacks")
	o.Epochs, o.EvalEvery, o.Optim.LR = 25, 25, 0.02
	link := pairs.Options{Without: true, Batches: train.BatchSettings{Sampler: "neighbour", Size: 100, Threads: 2,
		Fanouts: []int{5, 5}}}
	r, err := pairs.RunRelations(t.Context(), traintest.Ref(), d, o, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Measures["auc of tag has item"] < 0.7 || r.Loss[24] >= r.Loss[0] {
		t.Errorf("losses %v, measures %v", r.Loss, r.Measures)
	}
	needs, err := pairs.DryRunRelations(t.Context(), traintest.Ref(), d, o, link, nil)
	if err != nil || needs.Parameters != r.Parameters || needs.Ranking == 0 {
		t.Errorf("a dry run needs %+v: %v", needs, err)
	}
}

// relationBatches leave out their own pairs, and draw more of one relation.
func relationBatches(size, relations int) pairs.Options {
	own := make([]int, relations)
	own[0] = sample.All
	return pairs.Options{Without: true, Batches: train.BatchSettings{Sampler: "neighbour", Size: size, Threads: 1,
		Fanouts: []int{3, 2}, RelationFanouts: [][]int{own}}}
}

// TestRelationBatchesAreOneWorkers: several workers follow one worker's loss on pairs of relations and measure the
// same, whatever model, decoder, strategy and way to divide a batch; types without features have rows that are learnt.
func TestRelationBatchesAreOneWorkers(t *testing.T) {
	d := traintest.Typed(t, 40)
	link := relationBatches(30, len(d.Meta.Schema.Relations))
	strategies := [][]string{{"lookahead"}, {"salient", "roots=random"}, {"bytegnn"}, {"distdgl", "roots=random"}}
	for k, model := range nn.TypedModels {
		relations := [][]string{{"has", "lacks"}, {"tag has item", "knows"}, {"of"}}[k%3]
		o := traintest.RelationOptions(d, model, nn.RelationDecoders[k%len(nn.RelationDecoders)], relations...)
		o.Epochs, o.EvalEvery = 3, 2
		want := traintest.Ran(t)(pairs.RunRelations(t.Context(), traintest.Ref(), d, o, link, nil))
		for i, w := range []int{1, 2, 3, 5} {
			parts := traintest.CutForServers(t, d, []string{"random", "hash"}[w%2], w, w)
			c := strategies[(i+k)%len(strategies)]
			label := fmt.Sprintf("%s of %v with %v on %d workers", model, relations, c, w)
			for _, r := range traintest.Batches(t, parts, o, link.Batches, true, c[0], c[1:]...).Results {
				traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-12)
				traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-12)
				traintest.SameCurve(t, label+", test", r.Test, want.Test, 1e-12)
				for name, value := range want.Measures {
					if math.Abs(r.Measures[name]-value) > 1e-12 {
						t.Errorf("%s: %s is %g, want %g", label, name, r.Measures[name], value)
					}
				}
			}
		}
	}
}
