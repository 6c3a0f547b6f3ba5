package ref

import "math"

func (r *Device) ColumnSums(sums, x Matrix) {
	r.Zero(sums)
	for i := range x.Rows {
		for j, v := range rowOf(x, i) {
			rowOf(sums, 0)[j] += v
			rowOf(sums, 1)[j] += v * v
		}
	}
}

func (r *Device) Moments(mv, running, sums Matrix, count int64, momentum float64) {
	n := float64(max(count, 1))
	for j := range mv.Cols {
		mean := rowOf(sums, 0)[j] / n
		rowOf(mv, 0)[j] = mean
		rowOf(mv, 1)[j] = max(0, rowOf(sums, 1)[j]/n-mean*mean)
	}
	if running.IsZero() {
		return
	}
	unbias := float64(count) / float64(max(count-1, 1))
	for j := range running.Cols {
		rowOf(running, 0)[j] += momentum * (rowOf(mv, 0)[j] - rowOf(running, 0)[j])
		rowOf(running, 1)[j] += momentum * (rowOf(mv, 1)[j]*unbias - rowOf(running, 1)[j])
	}
}

func (r *Device) BatchNorm(y, x, mv, gamma, beta Matrix, eps float64, epi Epilogue) {
	for i := range x.Rows {
		for j, v := range rowOf(x, i) {
			hat := (v - rowOf(mv, 0)[j]) / math.Sqrt(rowOf(mv, 1)[j]+eps)
			rowOf(y, i)[j] = hat*rowOf(gamma, 0)[j] + rowOf(beta, 0)[j]
		}
	}
	r.Activate(y, y, epi)
}

func (r *Device) BatchNormSums(gs, dy, x, mv Matrix, eps float64) {
	r.Zero(gs)
	for i := range x.Rows {
		for j, v := range rowOf(x, i) {
			hat := (v - rowOf(mv, 0)[j]) / math.Sqrt(rowOf(mv, 1)[j]+eps)
			rowOf(gs, 0)[j] += rowOf(dy, i)[j]
			rowOf(gs, 1)[j] += rowOf(dy, i)[j] * hat
		}
	}
}

func (r *Device) BatchNormGrad(dx, dy, x, mv, gs, gamma Matrix, count int64, eps float64) {
	n := float64(max(count, 1))
	for i := range x.Rows {
		for j, v := range rowOf(x, i) {
			inv := 1 / math.Sqrt(rowOf(mv, 1)[j]+eps)
			hat := (v - rowOf(mv, 0)[j]) * inv
			g := rowOf(dy, i)[j] - rowOf(gs, 0)[j]/n - hat*rowOf(gs, 1)[j]/n
			rowOf(dx, i)[j] = rowOf(gamma, 0)[j] * inv * g
		}
	}
}

func (r *Device) LayerNorm(y, stat, x, gamma, beta Matrix, eps float64, epi Epilogue) {
	for i := range x.Rows {
		row := rowOf(x, i)
		mean, sq := 0.0, 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for _, v := range row {
			sq += (v - mean) * (v - mean) / float64(len(row))
		}
		inv := 1 / math.Sqrt(sq+eps)
		rowOf(stat, i)[0], rowOf(stat, i)[1] = mean, inv
		for j, v := range row {
			rowOf(y, i)[j] = (v-mean)*inv*rowOf(gamma, 0)[j] + rowOf(beta, 0)[j]
		}
	}
	r.Activate(y, y, epi)
}

func (r *Device) LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma Matrix) {
	n := float64(x.Cols)
	for i := range x.Rows {
		mean, inv := rowOf(stat, i)[0], rowOf(stat, i)[1]
		row, g := rowOf(x, i), rowOf(dy, i)
		var s0, s1 float64
		for j := range row {
			hat := (row[j] - mean) * inv
			rowOf(dgamma, 0)[j] += g[j] * hat
			rowOf(dbeta, 0)[j] += g[j]
			s0 += g[j] * rowOf(gamma, 0)[j]
			s1 += g[j] * rowOf(gamma, 0)[j] * hat
		}
		for j := range row {
			hat := (row[j] - mean) * inv
			rowOf(dx, i)[j] = inv * (g[j]*rowOf(gamma, 0)[j] - s0/n - hat*s1/n)
		}
	}
}
