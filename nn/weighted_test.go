package nn

import (
	"math"
	"testing"

	"starling/graph"
	"starling/rng"
	"starling/tensor"
	"starling/tensor/ref"
)

// weightedCase is a task over a few rows of random logits.
func weightedCase(dev tensor.Device, several bool, w Weighting) (task Task, logits []float64, rows []uint32) {
	const n, classes = 7, 3
	key := rng.New(4)
	marks, labels := make([]uint16, n*classes), make([]uint32, n)
	for i := range n * classes {
		logits = append(logits, 2*key.Normal(uint64(i)))
		if key.Fold(1).Float32(uint64(i)) < 0.4 {
			marks[i] = 0x3f80
		}
	}
	for i := range labels {
		labels[i] = uint32(key.Fold(2).IntN(uint64(i), classes))
	}
	var plain Task = Classify{Labels: tensor.Indices(dev, labels)}
	if several {
		plain = MultiLabel{Marks: dev.FromHost(n, classes, marks)}
	}
	rows = []uint32{0, 2, 3, 6}
	return w.Of(plain, rows, func(row uint32) uint32 { return labels[row] },
		func(row uint32, c int) bool { return marks[int(row)*classes+c] != 0 }), logits, rows
}

func lossAt(dev tensor.Device, task Task, logits []float64, rows []uint32, grad []float64) float64 {
	x := dev.New(tensor.F64, 7, 3)
	dev.Upload(x, logits)
	loss := TakeLoss(dev, task.Loss(dev, x, x, tensor.Indices(dev, rows), 0.5))
	if grad != nil {
		dev.Download(grad, x)
	}
	return loss
}

// TestWeightedLossIsItsDefinition, and its gradient is the difference quotient; rows that are not of the loss have none.
func TestWeightedLossIsItsDefinition(t *testing.T) {
	dev := ref.New()
	for _, several := range []bool{false, true} {
		for _, w := range []Weighting{{Class: []float64{0.5, 3, 1}}, {Gamma: 2}, {Gamma: 0.5},
			{Class: []float64{0.5, 3, 1}, Gamma: 1.5}} {
			task, logits, rows := weightedCase(dev, several, w)
			grad := make([]float64, len(logits))
			loss := lossAt(dev, task, logits, rows, grad)
			if want := defined(task.(*Weighted), logits); math.Abs(loss-want) > 1e-12 {
				t.Errorf("several %v, %+v: loss %.15g, want %.15g", several, w, loss, want)
			}
			const h = 1e-6
			for i := range logits {
				up, down := append([]float64{}, logits...), append([]float64{}, logits...)
				up[i], down[i] = up[i]+h, down[i]-h
				want := (lossAt(dev, task, up, rows, nil) - lossAt(dev, task, down, rows, nil)) / (2 * h)
				if math.Abs(grad[i]-want) > 1e-8 {
					t.Errorf("several %v, %+v: gradient %d is %g, want %g", several, w, i, grad[i], want)
				}
			}
		}
	}
}

// defined is the loss as the package comment has it, times a half.
func defined(t *Weighted, logits []float64) (loss float64) {
	lost := func(p, weight float64) float64 { return -0.5 * weight * math.Pow(1-p, t.Gamma) * math.Log(p) }
	for _, row := range t.rows {
		x := logits[3*row : 3*row+3]
		if !t.several {
			sum := 0.0
			for _, v := range x {
				sum += math.Exp(v)
			}
			c := t.class(row)
			loss += lost(math.Exp(x[c])/sum, t.of(int(c)))
			continue
		}
		for c, v := range x {
			if p := 1 / (1 + math.Exp(-v)); t.has(row, c) {
				loss += lost(p, t.of(c)) / 3
			} else {
				loss += lost(1-p, 1) / 3
			}
		}
	}
	return loss
}

// TestWeightsOfOneChangeNothing: the loss is then that of the task, and so is focal loss without focus.
func TestWeightsOfOneChangeNothing(t *testing.T) {
	dev := ref.New()
	for _, several := range []bool{false, true} {
		task, logits, rows := weightedCase(dev, several, Weighting{Class: []float64{1, 1, 1}})
		a, b := make([]float64, len(logits)), make([]float64, len(logits))
		got, want := lossAt(dev, task, logits, rows, a), lossAt(dev, task.(*Weighted).Task, logits, rows, b)
		if math.Abs(got-want) > 1e-13 {
			t.Errorf("several %v: loss %g, want %g", several, got, want)
		}
		for i := range a {
			if math.Abs(a[i]-b[i]) > 1e-14 {
				t.Errorf("several %v: gradient %g, want %g", several, a[i], b[i])
			}
		}
	}
}

// TestFocalLossAtTheEnds: labels that are sure, or lost, have finite losses and gradients.
func TestFocalLossAtTheEnds(t *testing.T) {
	for _, gamma := range []float64{0, 0.5, 1, 2, 100} {
		for _, x := range [][]float64{{800, 0}, {-800, 0}, {40, 0}, {0, 0}} {
			g := append([]float64{}, x...)
			if loss := focalSoftmax(g, 0, 1, gamma); math.IsNaN(loss+g[0]+g[1]) || math.IsInf(loss+g[0]+g[1], 0) {
				t.Errorf("gamma %g, logits %v: loss %g, gradient %v", gamma, x, loss, g)
			}
		}
	}
}

// TestBalancedWeights are scikit-learn's, with a mean of one over the vertices.
func TestBalancedWeights(t *testing.T) {
	got := BalancedWeights(graph.SingleLabel, []float64{90, 10, 0}, 100)
	if want := []float64{100. / 180, 5, 1}; got[0] != want[0] || got[1] != want[1] || got[2] != 1 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := BalancedWeights(graph.MultiLabel, []float64{20, 100, 0}, 100); got[0] != 4 || got[1] != 1 || got[2] != 1 {
		t.Errorf("several labels: %v", got)
	}
	if got := Normalized([]float64{1, 20}, []float64{90, 10}); math.Abs(90*got[0]+10*got[1]-100) > 1e-12 ||
		math.Abs(got[1]/got[0]-20) > 1e-12 {
		t.Errorf("normalized: %v", got)
	}
}
