package cpu

import (
	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// JoinAttend weighs both sums of a row by their share in the sum of exponentials.
func (c *Device) JoinAttend(dst, stat Matrix, adj *Sparse, part, partStat Matrix) {
	heads := stat.Cols / 2
	needRows("JoinAttend: dst", dst, adj.Rows, dst.Cols)
	needRows("JoinAttend: part", part, adj.Rows, dst.Cols)
	needScores("JoinAttend: stat", stat, adj.Rows, 2*heads)
	needScores("JoinAttend: partStat", partStat, adj.Rows, 2*heads)
	tensor.Need(heads > 0 && dst.Cols%heads == 0, "JoinAttend: %d columns for %d heads", dst.Cols, heads)
	csr, wide := compressedOf(adj), dst.Cols/heads
	c.byRows([]Matrix{dst, part}, func(lo, hi int) {
		w := c.work(2 * dst.Cols)
		defer w.done()
		before, now := w.take(dst.Cols), w.take(dst.Cols)
		for i := lo; i < hi; i++ {
			if csr.ptr[i] == csr.ptr[i+1] {
				continue
			}
			sum, row := readRow(dst, i, before), readRow(part, i, now)
			for h := range heads {
				a, b := joinStat(rowOf(stat, i)[h:], rowOf(partStat, i)[h:], heads)
				x, y := sum[h*wide:(h+1)*wide], row[h*wide:(h+1)*wide]
				for c := range x {
					x[c] *= a
				}
				simd.AddScaled(c.level, x, y, b)
			}
			if dst.Type() != F32 {
				writeRow(dst, i, sum, 1, false)
			}
		}
	})
}

// joinStat makes s, the maximum and the reciprocal sum of a head, those of both softmaxes, and returns their shares.
func joinStat(s, t []float32, heads int) (before, now float32) {
	if s[heads] == 0 {
		s[0], s[heads] = t[0], t[heads]
		return 0, 1
	}
	m := max(s[0], t[0])
	x, y := simd.Exp(s[0]-m)/s[heads], simd.Exp(t[0]-m)/t[heads]
	sum := x + y
	s[0], s[heads] = m, 1/sum
	return x / sum, y / sum
}
