package nn

import (
	"math"

	"starling/graph"
	"starling/tensor"
)

// The tasks, as users, config.json and checkpoints name them. The first three are of
// vertices and follow from the kind of labels; the others need none.
const (
	TaskClassify     = "classify"
	TaskMultiLabel   = "multilabel"
	TaskRegression   = "regression"
	TaskLink         = "link"
	TaskUnsupervised = "unsupervised"
)

// Tasks are all of them.
var Tasks = []string{TaskClassify, TaskMultiLabel, TaskRegression, TaskLink, TaskUnsupervised}

// TaskOf is the task that labels of a kind (a dataset's graph.Meta.Task) are for; "" of none.
func TaskOf(labels string) string {
	return map[string]string{graph.SingleLabel: TaskClassify, graph.MultiLabel: TaskMultiLabel, graph.Regression: TaskRegression}[labels]
}

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
	// Measures are the metric and whatever else the counts tell, by name.
	Measures(counts []float64) map[string]float64
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

func (c Classify) Measures(counts []float64) map[string]float64 {
	return map[string]float64{c.Name(): c.Metric(counts)}
}
