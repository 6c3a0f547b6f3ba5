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
	return map[string]string{graph.SingleLabel: TaskClassify, graph.MultiLabel: TaskMultiLabel,
		graph.Regression: TaskRegression}[labels]
}

// Task is what a model is trained for: a loss, and a metric by which models are
// compared. Both are sums over rows, so the shares of several workers add up.
type Task interface {
	// Loss is scale times the loss summed over rows, on the device: TakeLoss reads it. Its
	// gradient goes to dlogits, if given (it may be logits itself).
	Loss(dev tensor.Device, dlogits, logits tensor.Matrix, rows tensor.Index, scale float64) tensor.Matrix
	// Counts are the sums the metric is made of, over each of the lists of rows.
	Counts(dev tensor.Device, logits tensor.Matrix, rows ...tensor.Index) [][]float64
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

func (c Classify) Loss(dev tensor.Device, dlogits, logits tensor.Matrix, rows tensor.Index,
	scale float64) tensor.Matrix {
	return lossOf(dev, dlogits, logits, c.op(rows, scale))
}

func (c Classify) op(rows tensor.Index, scale float64) tensor.Loss {
	return tensor.Loss{Kind: tensor.CrossEntropy, Labels: c.Labels, Rows: rows, Scale: scale}
}

func (c Classify) Counts(dev tensor.Device, logits tensor.Matrix, rows ...tensor.Index) [][]float64 {
	counts := sumsOver(dev, rows, 2, func(sums tensor.Matrix, list tensor.Index) {
		dev.Loss(sums, tensor.Matrix{}, logits, c.op(list, 1))
	})
	for k, list := range rows {
		counts[k] = []float64{counts[k][1], float64(list.Len())}
	}
	return counts
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

// lossOf is a loss that stays on the device.
func lossOf(dev tensor.Device, dlogits, logits tensor.Matrix, op tensor.Loss) tensor.Matrix {
	sums := dev.Scratch(tensor.F64, 1, 2)
	dev.Loss(sums, dlogits, logits, op)
	return sums
}

// TakeLoss waits for a loss, or for several, one per row, and frees their matrix. It returns
// their sum.
func TakeLoss(dev tensor.Device, sums tensor.Matrix) (loss float64) {
	host := make([]float64, sums.Rows*sums.Cols)
	dev.Download(host, sums)
	dev.Free(sums)
	for i := range sums.Rows {
		loss += host[i*sums.Cols]
	}
	return loss
}

// sumsOver are sums that measure leaves in a row of width numbers, for each of the lists of
// rows. The host waits once.
func sumsOver(dev tensor.Device, rows []tensor.Index, width int,
	measure func(sums tensor.Matrix, list tensor.Index)) [][]float64 {
	sums := dev.New(tensor.F64, len(rows), width)
	for k, list := range rows {
		measure(sums.Slice(k, k+1), list)
	}
	host, out := make([]float64, len(rows)*width), make([][]float64, len(rows))
	dev.Download(host, sums)
	dev.Free(sums)
	for k := range out {
		out[k] = host[k*width : (k+1)*width]
	}
	return out
}
