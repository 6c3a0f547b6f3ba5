package nn

import (
	"math"

	"starling/tensor"
)

// Regress is regression of one or several numbers per vertex. The loss is the squared
// error, the mean over a vertex's targets. The metric is the coefficient of
// determination, better when larger, of all targets together:
//
//	R² = 1 - Σ (y - ŷ)² / Σ (y - ȳ)²
//
// where ȳ is each target's mean over the vertices measured: 1 is perfect, 0 as good
// as always saying the mean. (Of several targets this is scikit-learn's r2_score
// with multioutput="variance_weighted".) The mean squared error is reported beside it.
//
// Counts: vertices, Σ (y - ŷ)², Σ y², and Σ y of each target.
type Regress struct {
	Values tensor.Matrix // vertices x targets
	// Standard are what the loss is of, if targets are standardized; none: Values. The metric is of Values.
	Standard tensor.Matrix
	// Targets is how many there are, where Values is left out to plan only.
	Targets int
}

func (r Regress) targets() int { return max(r.Values.Cols, r.Targets) }

func (r Regress) Width() int { return 3 + r.targets() }

func (r Regress) Name() string { return "r2" }

func (r Regress) Loss(dev tensor.Device, dlogits, logits tensor.Matrix, rows tensor.Index,
	scale float64) tensor.Matrix {
	targets := r.Standard
	if targets.IsZero() {
		targets = r.Values
	}
	return lossOf(dev, dlogits, logits, squared(targets, rows, scale/float64(logits.Cols)))
}

func squared(targets tensor.Matrix, rows tensor.Index, scale float64) tensor.Loss {
	return tensor.Loss{Kind: tensor.SquaredError, Targets: targets, Rows: rows, Scale: scale}
}

func (r Regress) Counts(dev tensor.Device, logits tensor.Matrix, rows ...tensor.Index) [][]float64 {
	targets := r.Values.Cols
	sums := sumsOver(dev, rows, 2+2*targets, func(sums tensor.Matrix, list tensor.Index) {
		if list.Len() == 0 {
			return
		}
		dev.Loss(sums.Columns(0, 2), tensor.Matrix{}, logits, squared(r.Values, list, 1))
		known := dev.Scratch(r.Values.Type(), list.Len(), targets)
		dev.GatherRows(known, r.Values, list)
		dev.ColumnSums(sums.Columns(2, sums.Cols).Reshape(2, targets), known)
		dev.Free(known)
	})
	counts := make([][]float64, len(rows))
	for k, list := range rows {
		counts[k] = append([]float64{float64(list.Len()), sums[k][0], 0}, sums[k][2:2+targets]...)
		for _, squares := range sums[k][2+targets:] {
			counts[k][2] += squares
		}
	}
	return counts
}

// Metric is NaN also where the targets do not differ: there is nothing to explain.
func (r Regress) Metric(counts []float64) float64 {
	n, spread := counts[0], counts[2]
	if n == 0 {
		return math.NaN()
	}
	for _, sum := range counts[3:] {
		spread -= sum * sum / n
	}
	if !(spread > 1e-12*counts[2]) { // what rounding leaves of nothing
		return math.NaN()
	}
	return 1 - counts[1]/spread
}

func (r Regress) Measures(counts []float64) map[string]float64 {
	mse := math.NaN()
	if counts[0] > 0 {
		mse = counts[1] / (counts[0] * float64(len(counts)-3))
	}
	return map[string]float64{r.Name(): r.Metric(counts), "mse": mse}
}
