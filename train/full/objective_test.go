package full

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"starling/graph"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// TestObjectivesOnManyWorkers: losses, metrics and the best epoch equal one worker's, whatever the strategy and
// the number of workers, and what is sent is what was planned.
func TestObjectivesOnManyWorkers(t *testing.T) {
	for _, kind := range []string{"two", "four", graph.MultiLabel, graph.Regression} {
		d := traintest.Rare(t, kind)
		for i, of := range traintest.Objectives(kind) {
			t.Run(fmt.Sprintf("%s/%d", kind, i), func(t *testing.T) {
				o := traintest.TaskOptions(d)
				o.Epochs, o.Metric, o.Balanced, o.Weights, o.Focus = 4, of.Metric, of.Balanced, of.Weights, of.Focus
				want := traintest.Full(t, traintest.Ref(), d, o)
				for k, strategy := range []string{"halo", "g3", "cagnet"} {
					workers := []int{2, 3, 5}[(i+k)%3]
					o.Strategy = traintest.Strategy(t, strategy)
					r := traintest.TrainParts(t, traintest.Cut(t, d, "multilevel", workers), traintest.Ref, o)[0]
					what := fmt.Sprintf("%+v, %s on %d workers", of, strategy, workers)
					traintest.SameCurve(t, what, r.Loss, want.Loss, 1e-12)
					traintest.SameCurve(t, what+", validation", r.Val, want.Val, 1e-12)
					traintest.SameCurve(t, what+", test", r.Test, want.Test, 1e-12)
					if r.BestEpoch != want.BestEpoch || r.Metric != want.Metric || math.IsNaN(want.ValMetric) {
						t.Errorf("%s: best epoch %d by %s, want %d by %s (%g)", what, r.BestEpoch, r.Metric,
							want.BestEpoch, want.Metric, want.ValMetric)
					}
				}
			})
		}
	}
}

// TestTypedObjectives: weights, focal loss and metrics of the target type's labels, on 1, 2, 3 and 5 workers.
func TestTypedObjectives(t *testing.T) {
	d := traintest.Typed(t, 40)
	o := traintest.TypedOptions(d, "rgcn")
	o.Epochs, o.Balanced, o.Focus, o.Metric = 3, true, 1, "macro_f1"
	want := traintest.Full(t, traintest.Ref(), d, o)
	o.Balanced = false
	if plain := traintest.Full(t, traintest.Ref(), d, o); plain.Loss[2] == want.Loss[2] {
		t.Error("balanced weights change no loss")
	}
	o.Balanced = true
	for _, workers := range []int{1, 2, 3, 5} {
		for _, r := range traintest.TrainParts(t, traintest.Cut(t, d, "random", workers), traintest.Ref, o) {
			traintest.SameCurve(t, fmt.Sprintf("%d workers", workers), r.Loss, want.Loss, 1e-12)
			traintest.SameCurve(t, fmt.Sprintf("%d workers, validation", workers), r.Val, want.Val, 1e-12)
		}
	}
}

// TestObjectivesInSinglePrecision: the CPU's losses are near those in float64, of rows in bfloat16 too.
func TestObjectivesInSinglePrecision(t *testing.T) {
	for _, kind := range []string{"two", graph.MultiLabel} {
		d := traintest.Rare(t, kind)
		for i, of := range traintest.Objectives(kind) {
			o := traintest.TaskOptions(d)
			o.Epochs, o.Metric, o.Balanced, o.Weights, o.Focus = 3, of.Metric, of.Balanced, of.Weights, of.Focus
			want := traintest.Full(t, traintest.Ref(), d, o)
			what := fmt.Sprintf("%s/%d", kind, i)
			traintest.SameCurve(t, what, traintest.Full(t, traintest.CPU(t, 2), d, o).Loss, want.Loss, 1e-4)
			o.Rows = tensor.BF16
			traintest.SameCurve(t, what+" in bf16", traintest.Full(t, traintest.CPU(t, 2), d, o).Loss, want.Loss, 2e-2)
		}
	}
}

// TestEvaluationsOnManyWorkers: threshold, metrics, counts by class and calibration of the best weights equal
// one worker's, also of a run that was resumed after its best epoch; what is sent is planned.
func TestEvaluationsOnManyWorkers(t *testing.T) {
	for _, kind := range []string{"two", "four", graph.MultiLabel, graph.Regression} {
		d := traintest.Rare(t, kind)
		o := traintest.TaskOptions(d)
		o.Epochs, o.Threshold = 6, math.NaN()
		if kind == "two" {
			o.Metric = "average_precision"
		}
		want := traintest.Full(t, traintest.Ref(), d, o)
		if want.Evaluation == nil || want.Evaluation.Vertices != len(d.Splits.Test) {
			t.Fatalf("%s: %+v", kind, want.Evaluation)
		}
		for _, workers := range []int{2, 3, 5} {
			r := traintest.TrainParts(t, traintest.Cut(t, d, "multilevel", workers), traintest.Ref, o)[workers-1]
			if !sameEvaluation(r.Evaluation, want.Evaluation) {
				t.Errorf("%s on %d workers: %+v\nwant %+v", kind, workers, r.Evaluation, want.Evaluation)
			}
		}
		parts := traintest.Cut(t, d, "multilevel", 2)
		whole, resumed := traintest.Resumed(t, parts, o, 4, true)
		if !sameEvaluation(resumed.Evaluation, whole.Evaluation) {
			t.Errorf("%s resumed: %+v\nwant %+v", kind, resumed.Evaluation, whole.Evaluation)
		}
	}
}

// sameEvaluation compares but for rounding.
func sameEvaluation(a, b *train.Evaluation) bool {
	if a == nil || b == nil || len(a.Metrics) != len(b.Metrics) || len(a.Threshold) != len(b.Threshold) ||
		!reflect.DeepEqual(a.Confusion, b.Confusion) || !reflect.DeepEqual(a.Classes, b.Classes) || a.Split != b.Split {
		return false
	}
	for name, x := range b.Metrics {
		if y, ok := a.Metrics[name]; !ok || math.Abs(x-y) > 1e-9 {
			return false
		}
	}
	for c, x := range b.Threshold {
		if math.Abs(a.Threshold[c]-x) > 1e-9 {
			return false
		}
	}
	return (a.Calibration == nil) == (b.Calibration == nil) &&
		(a.Calibration == nil || math.Abs(a.Calibration.ECE-b.Calibration.ECE) < 1e-9)
}

// TestBestBeforeResuming: the best weights of before a run was resumed are measured once more, and give the same.
func TestBestBeforeResuming(t *testing.T) {
	d := traintest.Rare(t, "two")
	o := traintest.TaskOptions(d)
	o.Epochs, o.Metric = 3, "average_precision"
	var last train.State
	o.Save = func(s *train.State) error {
		last = *s
		return nil
	}
	first := traintest.Full(t, traintest.Ref(), d, o)
	for i := range last.History.Val { // no later epoch is better
		last.History.Val[i] = 2
	}
	o.Epochs, o.Resume = 5, &last
	again := traintest.Full(t, traintest.Ref(), d, o)
	if !again.MeasuredAgain || !sameEvaluation(again.Evaluation, first.Evaluation) {
		t.Errorf("again %v: %+v\nwant %+v", again.MeasuredAgain, again.Evaluation, first.Evaluation)
	}
}
