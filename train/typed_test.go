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
			t.Errorf(
				"%s: test accuracy %.2f, validation %.2f, loss %.3f",
				model,
				r.TestMetric,
				r.ValMetric,
				r.Loss[len(r.Loss)-1],
			)
		}
	}
}
