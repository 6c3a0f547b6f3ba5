package batch_test

import (
	"context"
	"testing"

	"starling/nn"
	"starling/sample"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
)

// TestTypedBatchOfAllIsTheWholeGraph: an epoch of one batch with all neighbours is an epoch over the whole graph.
func TestTypedBatchOfAllIsTheWholeGraph(t *testing.T) {
	d := traintest.Featured(traintest.Typed(t, 60))
	for _, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		mini := train.BatchSettings{Sampler: "neighbour", Size: 1000, Fanouts: []int{sample.All, sample.All}}
		got, err := batch.Run(context.Background(), traintest.Ref(), d, o, mini, nil)
		if err != nil {
			t.Fatal(err)
		}
		traintest.SameCurve(t, model, got.Loss, want.Loss, 1e-12)
		traintest.SameCurve(t, model+", validation", got.Val, want.Val, 1e-12)
	}
}

// TestTypedBatchesLearn: sampled batches learn what needs types.
func TestTypedBatchesLearn(t *testing.T) {
	d := traintest.Featured(traintest.Typed(t, 400))
	for _, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		o.Epochs, o.EvalEvery, o.Model.Dropout = 40, 10, 0.2
		mini := train.BatchSettings{Sampler: "neighbour", Size: 50, Fanouts: []int{3, 2}}
		if model == "rgat" { // which sees a tag by the items around it alone
			mini.Fanouts[1] = sample.All
		}
		r, err := batch.Run(context.Background(), traintest.CPU(t, 1), d, o, mini, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.TestMetric < 0.9 {
			t.Errorf("%s: test accuracy %.2f", model, r.TestMetric)
		}
	}
}
