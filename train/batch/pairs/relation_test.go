package pairs_test

import (
	"strings"
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
		o := traintest.RelationOptions(d, model, nn.RelationDecoders[i], "likes", "has")
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
	_, err = pairs.RunRelations(t.Context(), traintest.Ref(), traintest.Typed(t, 60), o, link, nil)
	if err == nil || !strings.Contains(err.Error(), "no features") {
		t.Errorf("rows that are learnt: %v", err)
	}
}
