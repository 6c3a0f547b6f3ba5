package nn

import (
	"math"

	"starling/tensor"
)

// MultiLabel is classification with any number of classes per vertex. The loss is
// binary cross-entropy with logits, the mean over a vertex's classes (as torch's
// BCEWithLogitsLoss has it); a class is predicted where its logit is above 0. The
// metric is the micro-averaged F1 score over all vertices and classes together:
//
//	F1 = 2·TP / (2·TP + FP + FN) = 2·both / (predicted + known)
//
// It is 0 where nothing is predicted and nothing known, as scikit-learn has it.
type MultiLabel struct {
	Marks tensor.Matrix // vertices x classes: 1 for every class of a vertex, else 0
}

func (m MultiLabel) Width() int { return 4 }

func (m MultiLabel) Name() string { return "micro_f1" }

func (m MultiLabel) Loss(dev tensor.Device, dlogits, logits tensor.Matrix, rows tensor.Index,
	scale float64) tensor.Matrix {
	return lossOf(dev, dlogits, logits,
		tensor.Loss{Kind: tensor.BCE, Targets: m.Marks, Rows: rows, Scale: scale / float64(logits.Cols)})
}

func (m MultiLabel) Counts(dev tensor.Device, logits tensor.Matrix, rows ...tensor.Index) [][]float64 {
	counts := sumsOver(dev, rows, 3, func(sums tensor.Matrix, list tensor.Index) {
		dev.CountMarks(sums, logits, m.Marks, list)
	})
	for k, list := range rows {
		counts[k] = append([]float64{float64(list.Len())}, counts[k]...)
	}
	return counts
}

func (m MultiLabel) Metric(counts []float64) float64 {
	rows, predicted, known, both := counts[0], counts[1], counts[2], counts[3]
	switch {
	case rows == 0:
		return math.NaN()
	case predicted+known == 0:
		return 0
	}
	return 2 * both / (predicted + known)
}

func (m MultiLabel) Measures(counts []float64) map[string]float64 {
	return map[string]float64{m.Name(): m.Metric(counts)}
}
