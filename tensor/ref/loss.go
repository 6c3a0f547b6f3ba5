package ref

import (
	"math"

	"starling/tensor"
)

// Loss adds up what is lost in each of the rows. Gradients are made apart from dlogits,
// which may be logits.
func (r *Device) Loss(sums, dlogits, logits Matrix, op tensor.Loss) {
	rows := rowList(op.Rows, logits.Rows)
	grads := r.New(F64, len(rows), logits.Cols)
	out := rowOf(sums, 0)
	clear(out)
	for k, i := range rows {
		row, g := rowOf(logits, int(i)), rowOf(grads, k)
		switch op.Kind {
		case tensor.CrossEntropy:
			crossEntropy(out, g, row, int(entriesOf(op.Labels)[i]), op.Scale)
		case tensor.BCE:
			binaryCrossEntropy(out, g, row, rowOf(op.Targets, int(i)), op.Scale)
		case tensor.SquaredError:
			squaredError(out, g, row, rowOf(op.Targets, int(i)), op.Scale)
		}
	}
	if !dlogits.IsZero() {
		r.Zero(dlogits)
		for k, i := range rows {
			copy(rowOf(dlogits, int(i)), rowOf(grads, k))
		}
	}
	r.Free(grads)
}

// rowList are the rows given, or all n.
func rowList(rows Index, n int) []uint32 {
	if !rows.IsZero() {
		return entriesOf(rows)
	}
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

func crossEntropy(sums, grad, row []float64, label int, scale float64) {
	best, sum := argmax(row), 0.0
	for _, x := range row {
		sum += math.Exp(x - row[best])
	}
	sums[0] += scale * (math.Log(sum) + row[best] - row[label])
	if best == label {
		sums[1]++
	}
	for j, x := range row {
		grad[j] = scale * math.Exp(x-row[best]) / sum
	}
	grad[label] -= scale
}

func binaryCrossEntropy(sums, grad, row, targets []float64, scale float64) {
	for j, x := range row {
		sums[0] += scale * (max(x, 0) - x*targets[j] + math.Log1p(math.Exp(-math.Abs(x))))
		grad[j] = scale * (1/(1+math.Exp(-x)) - targets[j])
	}
}

func squaredError(sums, grad, row, targets []float64, scale float64) {
	for j, x := range row {
		d := x - targets[j]
		sums[0] += scale * d * d
		grad[j] = 2 * scale * d
	}
}

func (r *Device) CountMarks(counts, logits, targets Matrix, rows Index) {
	out := rowOf(counts, 0)
	clear(out)
	for _, i := range rowList(rows, logits.Rows) {
		for j, x := range rowOf(logits, int(i)) {
			for n, ok := range [...]bool{x > 0, rowOf(targets, int(i))[j] > 0.5, x > 0 && rowOf(targets, int(i))[j] > 0.5} {
				if ok {
					out[n]++
				}
			}
		}
	}
}

func (r *Device) Softmax(dst, src Matrix) {
	for i := range src.Rows {
		row := rowOf(src, i)
		if len(row) == 0 {
			continue
		}
		top, sum := row[argmax(row)], 0.0
		for j, x := range row {
			rowOf(dst, i)[j] = math.Exp(x - top)
			sum += rowOf(dst, i)[j]
		}
		for j := range row {
			rowOf(dst, i)[j] /= sum
		}
	}
}

func (r *Device) Argmax(dst Index, src Matrix) {
	for i := range src.Rows {
		entriesOf(dst)[i] = uint32(argmax(rowOf(src, i)))
	}
}

// argmax is the place of the largest number, the first of equals.
func argmax(row []float64) int {
	best := 0
	for j, x := range row {
		if x > row[best] {
			best = j
		}
	}
	return best
}
