package train_test

import (
	"testing"

	"starling/nn"
	"starling/train/traintest"
)

// TestTypedModelsLearnWhatNeedsTypes: a model that tells relations apart learns classes that features alone and edges
// without relations do not give.
func TestTypedModelsLearnWhatNeedsTypes(t *testing.T) {
	d := traintest.Typed(t, 400)
	for _, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		o.Epochs, o.EvalEvery, o.Model.Dropout = 60, 10, 0.2
		r := traintest.Full(t, traintest.CPU(t, 1), d, o)
		if r.TestMetric < 0.9 {
			t.Errorf("%s: test accuracy %.2f, validation %.2f, loss %.3f", model, r.TestMetric, r.ValMetric,
				r.Loss[len(r.Loss)-1])
		}
	}
}

// TestOnlyNeededRowsAreComputed: a model that computes the rows of its target alone, and what these need, learns what
// one does that computes all.
func TestOnlyNeededRowsAreComputed(t *testing.T) {
	d := traintest.Typed(t, 40)
	for _, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		if o.Model.Typed.Outputs[0] < 0 {
			t.Fatal("the graph has no target")
		}
		all, types := o, *o.Model.Typed
		types.Outputs = nil
		all.Model.Typed = &types
		got, want := traintest.Full(t, traintest.Ref(), d, o), traintest.Full(t, traintest.Ref(), d, all)
		traintest.SameCurve(t, model, got.Loss, want.Loss, 1e-12)
		traintest.SameCurve(t, model+", validation", got.Val, want.Val, 1e-12)
	}
}
