package nn

import (
	"math"

	"starling/tensor"
)

// Regress is regression of one or several numbers a vertex. The loss is the squared
// error, the mean over a vertex's targets. The metric is the coefficient of
// determination, better when larger, of all targets together:
//
//	R² = 1 - Σ (y - ŷ)² / Σ (y - ȳ)²
//
// where ȳ is each target's mean over the vertices measured: 1 is perfect, 0 as good
// as always saying the mean. (Of several targets this is scikit-learn's r2_score
// with multioutput="variance_weighted".) The mean squared error is told beside it.
//
// Counts: vertices, Σ (y - ŷ)², Σ y², and Σ y of each target.
type Regress struct {
	Values tensor.Matrix // vertices x targets
	// Targets is how many there are, where Values is left out to plan only.
	Targets int
}

func (r Regress) targets() int { return max(r.Values.Cols, r.Targets) }

func (r Regress) Width() int { return 3 + r.targets() }

func (r Regress) Name() string { return "r2" }

func (r Regress) Loss(dev tensor.Device, dlogits, logits tensor.Matrix, rows tensor.Index, scale float64) float64 {
	return dev.SquaredError(dlogits, logits, r.Values, rows, scale/float64(logits.Cols))
}

func (r Regress) Counts(dev tensor.Device, logits tensor.Matrix, rows tensor.Index) []float64 {
	counts := make([]float64, r.Width())
	n := rows.Len()
	if n == 0 {
		return counts
	}
	counts[0], counts[1] = float64(n), dev.SquaredError(tensor.Matrix{}, logits, r.Values, rows, 1)
	known := dev.Scratch(r.Values.Type(), n, r.Values.Cols)
	dev.GatherRows(known, r.Values, rows)
	sums := dev.Scratch(tensor.F64, 2, known.Cols)
	dev.ColumnSums(sums, known)
	host := make([]float64, 2*known.Cols)
	dev.Download(host, sums)
	dev.Free(sums)
	dev.Free(known)
	copy(counts[3:], host[:r.Values.Cols])
	for _, squares := range host[r.Values.Cols:] {
		counts[2] += squares
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
