package tensor

import "math"

func (r *Ref) ColumnSums(sums, x Matrix) {
	r.Zero(sums)
	for i := range x.Rows {
		for j, v := range x.row64(i) {
			sums.row64(0)[j] += v
			sums.row64(1)[j] += v * v
		}
	}
}

func (r *Ref) Moments(mv, sums Matrix, count int64) { moments(mv, sums, count) }

func (r *Ref) Running(running, mv Matrix, count int64, momentum float64) {
	moveRunning(running, mv, count, momentum)
}

// moments and moveRunning work on F64 matrices of every host device.
func moments(mv, sums Matrix, count int64) {
	n := float64(max(count, 1))
	for j := range mv.Cols {
		mean := sums.row64(0)[j] / n
		mv.row64(0)[j] = mean
		mv.row64(1)[j] = max(0, sums.row64(1)[j]/n-mean*mean)
	}
}

func moveRunning(running, mv Matrix, count int64, momentum float64) {
	unbias := float64(count) / float64(max(count-1, 1))
	for j := range running.Cols {
		running.row64(0)[j] += momentum * (mv.row64(0)[j] - running.row64(0)[j])
		running.row64(1)[j] += momentum * (mv.row64(1)[j]*unbias - running.row64(1)[j])
	}
}

func (r *Ref) BatchNorm(y, x, mv, gamma, beta Matrix, eps float64, after After) {
	for i := range x.Rows {
		for j, v := range x.row64(i) {
			hat := (v - mv.row64(0)[j]) / math.Sqrt(mv.row64(1)[j]+eps)
			y.row64(i)[j] = hat*gamma.row64(0)[j] + beta.row64(0)[j]
		}
	}
	r.Activate(y, y, after)
}

func (r *Ref) BatchNormSums(gs, dy, x, mv Matrix, eps float64) {
	r.Zero(gs)
	for i := range x.Rows {
		for j, v := range x.row64(i) {
			hat := (v - mv.row64(0)[j]) / math.Sqrt(mv.row64(1)[j]+eps)
			gs.row64(0)[j] += dy.row64(i)[j]
			gs.row64(1)[j] += dy.row64(i)[j] * hat
		}
	}
}

func (r *Ref) BatchNormGrad(dx, dy, x, mv, gs, gamma Matrix, count int64, eps float64) {
	n := float64(max(count, 1))
	for i := range x.Rows {
		for j, v := range x.row64(i) {
			inv := 1 / math.Sqrt(mv.row64(1)[j]+eps)
			hat := (v - mv.row64(0)[j]) * inv
			g := dy.row64(i)[j] - gs.row64(0)[j]/n - hat*gs.row64(1)[j]/n
			dx.row64(i)[j] = gamma.row64(0)[j] * inv * g
		}
	}
}

func (r *Ref) LayerNorm(y, stat, x, gamma, beta Matrix, eps float64, after After) {
	for i := range x.Rows {
		row := x.row64(i)
		mean, sq := 0.0, 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for _, v := range row {
			sq += (v - mean) * (v - mean) / float64(len(row))
		}
		inv := 1 / math.Sqrt(sq+eps)
		stat.row64(i)[0], stat.row64(i)[1] = mean, inv
		for j, v := range row {
			y.row64(i)[j] = (v-mean)*inv*gamma.row64(0)[j] + beta.row64(0)[j]
		}
	}
	r.Activate(y, y, after)
}

func (r *Ref) LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma Matrix) {
	n := float64(x.Cols)
	for i := range x.Rows {
		mean, inv := stat.row64(i)[0], stat.row64(i)[1]
		row, g := x.row64(i), dy.row64(i)
		var s0, s1 float64
		for j := range row {
			hat := (row[j] - mean) * inv
			dgamma.row64(0)[j] += g[j] * hat
			dbeta.row64(0)[j] += g[j]
			s0 += g[j] * gamma.row64(0)[j]
			s1 += g[j] * gamma.row64(0)[j] * hat
		}
		for j := range row {
			hat := (row[j] - mean) * inv
			dx.row64(i)[j] = inv * (g[j]*gamma.row64(0)[j] - s0/n - hat*s1/n)
		}
	}
}

func (r *Ref) CrossEntropy(dlogits, logits Matrix, labels, rows Index, scale float64) (loss float64, correct int) {
	grads := r.New(F64, rows.Len(), logits.Cols)
	for k, i := range rows.v {
		row, label := logits.row64(int(i)), int(labels.v[i])
		best, sum := argmax64(row), 0.0
		for _, x := range row {
			sum += math.Exp(x - row[best])
		}
		loss += scale * (math.Log(sum) + row[best] - row[label])
		if best == label {
			correct++
		}
		for j, x := range row {
			grads.row64(k)[j] = scale * math.Exp(x-row[best]) / sum
		}
		grads.row64(k)[label] -= scale
	}
	r.lossGrad(dlogits, grads, rows)
	return loss, correct
}

func (r *Ref) BCE(dlogits, logits, targets Matrix, rows Index, scale float64) (loss float64) {
	grads := r.New(F64, rows.Len(), logits.Cols)
	for k, i := range rows.v {
		for j, x := range logits.row64(int(i)) {
			t := targets.row64(int(i))[j]
			loss += scale * (max(x, 0) - x*t + math.Log1p(math.Exp(-math.Abs(x))))
			grads.row64(k)[j] = scale * (1/(1+math.Exp(-x)) - t)
		}
	}
	r.lossGrad(dlogits, grads, rows)
	return loss
}

func (r *Ref) SquaredError(dlogits, logits, targets Matrix, rows Index, scale float64) (loss float64) {
	grads := r.New(F64, rows.Len(), logits.Cols)
	for k, i := range rows.v {
		for j, x := range logits.row64(int(i)) {
			d := x - targets.row64(int(i))[j]
			loss += scale * d * d
			grads.row64(k)[j] = 2 * scale * d
		}
	}
	r.lossGrad(dlogits, grads, rows)
	return loss
}

func (r *Ref) CountMarks(logits, targets Matrix, rows Index) (predicted, known, both int) {
	for _, i := range rows.v {
		for j, x := range logits.row64(int(i)) {
			p, k := x > 0, targets.row64(int(i))[j] > 0.5
			if p {
				predicted++
			}
			if k {
				known++
			}
			if p && k {
				both++
			}
		}
	}
	return predicted, known, both
}

// lossGrad puts the gradients of the given rows into dlogits, zero elsewhere.
func (r *Ref) lossGrad(dlogits, grads Matrix, rows Index) {
	if dlogits.IsZero() {
		return
	}
	r.Zero(dlogits)
	r.ScatterAdd(dlogits, grads, rows)
}

func (r *Ref) Softmax(dst, src Matrix) {
	for i := range src.Rows {
		row := src.row64(i)
		if len(row) == 0 {
			continue
		}
		top, sum := row[argmax64(row)], 0.0
		for j, x := range row {
			dst.row64(i)[j] = math.Exp(x - top)
			sum += dst.row64(i)[j]
		}
		for j := range row {
			dst.row64(i)[j] /= sum
		}
	}
}

func (r *Ref) Argmax(dst []uint32, src Matrix) {
	for i := range src.Rows {
		dst[i] = uint32(argmax64(src.row64(i)))
	}
}

// argmax64 is the place of the largest number, the first of equals.
func argmax64(row []float64) int {
	best := 0
	for j, x := range row {
		if x > row[best] {
			best = j
		}
	}
	return best
}

var _ Device = (*Ref)(nil)
