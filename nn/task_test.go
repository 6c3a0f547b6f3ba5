package nn

import (
	"math"
	"testing"

	"starling/rng"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/ref"
)

// someTasks are one of each kind over n rows and 3 outputs, with the labels they were
// made of.
func someTasks(dev tensor.Device, n int, key rng.Key) (tasks map[string]Task, marks, values []float64) {
	label := make([]uint32, n)
	for i := range label {
		label[i] = uint32(key.IntN(uint64(i), 3))
	}
	marks, values = make([]float64, 3*n), make([]float64, 3*n)
	for i := range marks {
		marks[i], values[i] = float64(key.Fold(1).IntN(uint64(i), 2)), 2*key.Fold(2).Normal(uint64(i))+3
	}
	m, v := dev.New(dev.Type(), n, 3), dev.New(dev.Type(), n, 3)
	dev.Upload(m, marks)
	dev.Upload(v, values)
	return map[string]Task{"classify": Classify{Labels: tensor.Indices(dev, label)}, "multilabel": MultiLabel{Marks: m},
		"regression": Regress{Values: v}}, marks, values
}

// TestLossGradients: central differences of every logit, in float64; rows that are
// not asked for have no gradient.
func TestLossGradients(t *testing.T) {
	const n, step = 6, 1e-5
	dev := ref.New()
	key := rng.New(5)
	tasks, _, _ := someTasks(dev, n, key)
	rows := tensor.Indices(dev, []uint32{0, 2, 5})
	for name, task := range tasks {
		x := randomMatrix(dev, n, 3, key.Fold(9))
		at := download(dev, x)
		grad := dev.New(tensor.F64, n, 3)
		TakeLoss(dev, task.Loss(dev, grad, x, rows, 0.7))
		for i, g := range download(dev, grad) {
			loss := func(by float64) float64 {
				moved := append([]float64{}, at...)
				moved[i] += by
				dev.Upload(x, moved)
				return TakeLoss(dev, task.Loss(dev, tensor.Matrix{}, x, rows, 0.7))
			}
			if want := (loss(step) - loss(-step)) / (2 * step); math.Abs(g-want) > 1e-8 {
				t.Errorf("%s: gradient %d is %g, want %g", name, i, g, want)
			}
		}
	}
}

// TestMetrics: against the formulas over all numbers, and over rows that two workers
// share.
func TestMetrics(t *testing.T) {
	const n = 40
	for _, dev := range []tensor.Device{ref.New(), cpu.New(2)} {
		key := rng.New(7)
		tasks, marks, values := someTasks(dev, n, key)
		x := randomMatrix(dev, n, 3, key.Fold(9))
		logits := download(dev, x)
		var all, some, others []uint32
		for i := range uint32(n) {
			if i == 3 {
				continue // in no split
			}
			all = append(all, i)
			if i%3 == 0 {
				some = append(some, i)
			} else {
				others = append(others, i)
			}
		}
		want := map[string]float64{"micro_f1": slowF1(logits, marks, all), "r2": 0, "mse": 0}
		want["r2"], want["mse"] = slowR2(logits, values, all)
		for _, task := range []Task{tasks["multilabel"], tasks["regression"]} {
			lists := task.Counts(dev, x, tensor.Indices(dev, all), tensor.Indices(dev, some),
				tensor.Indices(dev, others))
			counts, parts, more := lists[0], lists[1], lists[2]
			if len(counts) != task.Width() {
				t.Fatalf("%s: %d counts, said %d", task.Name(), len(counts), task.Width())
			}
			for i := range parts {
				parts[i] += more[i]
			}
			for name, got := range task.Measures(counts) {
				if math.Abs(got-want[name]) > 1e-5 || math.Abs(task.Measures(parts)[name]-got) > 1e-9 {
					t.Errorf("%s: %g, in two parts %g, want %g", name, got, task.Measures(parts)[name], want[name])
				}
			}
			if none := task.Counts(dev, x, tensor.Indices(dev, nil)); !math.IsNaN(task.Metric(none[0])) {
				t.Errorf("%s of nothing is %g", task.Name(), task.Metric(none[0]))
			}
		}
		dev.Close()
	}
	if got := (MultiLabel{}).Metric([]float64{5, 0, 0, 0}); got != 0 {
		t.Errorf("F1 of nothing predicted and nothing known is %g", got)
	}
	if got := (Regress{Targets: 1}).Metric([]float64{4, 1, 4 * 9, 4 * 3}); !math.IsNaN(got) {
		t.Errorf("R² of equal targets is %g", got)
	}
}

func slowF1(logits, marks []float64, rows []uint32) float64 {
	var tp, fp, fn float64
	for _, r := range rows {
		for k := 3 * r; k < 3*r+3; k++ {
			switch p, m := logits[k] > 0, marks[k] == 1; {
			case p && m:
				tp++
			case p:
				fp++
			case m:
				fn++
			}
		}
	}
	precision, recall := tp/(tp+fp), tp/(tp+fn)
	return 2 * precision * recall / (precision + recall)
}

func slowR2(logits, values []float64, rows []uint32) (r2, mse float64) {
	n, spread := float64(len(rows)), 0.0
	for target := range uint32(3) {
		mean := 0.0
		for _, r := range rows {
			mean += values[3*r+target] / n
		}
		for _, r := range rows {
			y := values[3*r+target]
			spread += (y - mean) * (y - mean)
			mse += (y - logits[3*r+target]) * (y - logits[3*r+target])
		}
	}
	return 1 - mse/spread, mse / (3 * n)
}
