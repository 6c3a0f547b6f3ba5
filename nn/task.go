package nn

import (
	"math"

	"starling/tensor"
)

// Task is what a model is trained for: a loss, and a metric by which models are
// compared. Both are sums over rows, so the shares of several workers add up.
type Task interface {
	// Loss is scale times the loss summed over rows. Its gradient goes to dlogits,
	// if given (it may be logits itself).
	Loss(dev tensor.Device, dlogits, logits tensor.Matrix, rows tensor.Index, scale float64) float64
	// Counts are the sums the metric is made of, over rows.
	Counts(dev tensor.Device, logits tensor.Matrix, rows tensor.Index) []float64
	// Width is how many counts there are.
	Width() int
	// Metric is better when larger. It is NaN over no rows.
	Metric(counts []float64) float64
	// Name is what reports call the metric.
	Name() string
}

// Classify is single-label classification: cross-entropy and accuracy.
type Classify struct{ Labels tensor.Index }

func (c Classify) Width() int { return 2 }

func (c Classify) Name() string { return "accuracy" }

func (c Classify) Loss(dev tensor.Device, dlogits, logits tensor.Matrix, rows tensor.Index, scale float64) float64 {
	loss, _ := dev.CrossEntropy(dlogits, logits, c.Labels, rows, scale)
	return loss
}

func (c Classify) Counts(dev tensor.Device, logits tensor.Matrix, rows tensor.Index) []float64 {
	_, correct := dev.CrossEntropy(tensor.Matrix{}, logits, c.Labels, rows, 1)
	return []float64{float64(correct), float64(rows.Len())}
}

func (c Classify) Metric(counts []float64) float64 {
	if counts[1] == 0 {
		return math.NaN()
	}
	return counts[0] / counts[1]
}
