package cpu

import (
	"fmt"
	"math"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// pairOf64 panics unless m is 2 x cols float64, the form of batch norm's sums.
func pairOf64(op, name string, m Matrix, cols int) {
	if m.Rows != 2 || m.Cols != cols || m.Type() != F64 {
		panic(fmt.Sprintf("tensor: %s: %s is %v, want 2x%d float64", op, name, m, cols))
	}
}

// ColumnSums: the sums of x and x² over rows.
func (c *Device) ColumnSums(sums, x Matrix) {
	pairOf64("ColumnSums", "sums", sums, x.Cols)
	noF64("ColumnSums", x)
	c.sumPairs(sums, []Matrix{x}, func(ms []Matrix, lo int) simd.ColumnSums {
		return simd.ColumnSums{X: blockOf(ms[0], lo)}
	})
}

// sumPairs fills sums (2 x cols) over chunks of rows. at gives what to sum of ms from a row on.
func (c *Device) sumPairs(sums Matrix, ms []Matrix, at func(ms []Matrix, lo int) simd.ColumnSums) {
	c.Zero(sums)
	rest := fold(repeats(foldRow/4, sums.Cols), ms)
	c.addPairs(sums, ms, at)
	if rest != nil {
		c.addPairs(sums, rest, at)
	}
}

func (c *Device) addPairs(sums Matrix, ms []Matrix, at func(ms []Matrix, lo int) simd.ColumnSums) {
	rows, cols := ms[0].Rows, ms[0].Cols
	if rows == 0 || cols == 0 {
		return
	}
	chunk, _ := sumChunk(ms)
	pitch := padded(cols)
	partial := c.Scratch(F64, (rows+chunk-1)/chunk, 2*pitch+apart)
	defer c.Free(partial)
	c.forRows(rows, chunk, func(lo, hi, k, _ int) {
		p := row64Of(partial, k)
		clear(p)
		s := at(ms, lo)
		s.Rows, s.Cols = hi-lo, cols
		s.First, s.Other = &p[0], &p[pitch]
		s.Run(c.level)
	})
	total := addRows(partial)
	for i := range 2 {
		for j, x := range folded(total[i*pitch:i*pitch+cols], sums.Cols) {
			row64Of(sums, i)[j] += x
		}
	}
}

// Moments are mean and biased variance from sums, and running ones that move towards them.
func (c *Device) Moments(mv, running, sums Matrix, count int64, momentum float64) {
	pairOf64("Moments", "sums", sums, mv.Cols)
	pairOf64("Moments", "mv", mv, mv.Cols)
	n := float64(max(count, 1))
	for j := range mv.Cols {
		mean := row64Of(sums, 0)[j] / n
		row64Of(mv, 1)[j] = max(row64Of(sums, 1)[j]/n-mean*mean, 0)
		row64Of(mv, 0)[j] = mean
	}
	if running.IsZero() {
		return
	}
	pairOf64("Moments", "running", running, mv.Cols)
	unbias := 1.0
	if count > 1 {
		unbias = float64(count) / float64(count-1)
	}
	for j := range mv.Cols {
		row64Of(running, 0)[j] += momentum * (row64Of(mv, 0)[j] - row64Of(running, 0)[j])
		row64Of(running, 1)[j] += momentum * (row64Of(mv, 1)[j]*unbias - row64Of(running, 1)[j])
	}
}

// BatchNorm normalizes columns.
func (c *Device) BatchNorm(y, x, mv, gamma, beta Matrix, eps float64, epi Epilogue) {
	const op = "BatchNorm"
	tensor.NeedSameShape(op, y, x)
	noF64(op, y, x)
	pairOf64(op, "mv", mv, x.Cols)
	if !epi.Bias.IsZero() {
		panic("tensor: BatchNorm takes no bias beside beta")
	}
	if x.Rows == 0 || x.Cols == 0 {
		return
	}
	center, scale := make([]float32, x.Cols), make([]float32, x.Cols)
	vectorOf(gamma, op, "gamma", x.Cols)
	for j := range x.Cols {
		center[j] = float32(row64Of(mv, 0)[j])
		scale[j] = float32(float64(f32Of(gamma)[j]) / math.Sqrt(row64Of(mv, 1)[j]+eps))
	}
	m := epilogueSteps(epi, op, y)
	m.Center, m.Scale, m.Bias = &center[0], &scale[0], vectorOf(beta, op, "beta", x.Cols)
	c.mapRows(y, x, Matrix{}, m)
}

// BatchNormSums: the sums of dy and dy·xhat over rows.
func (c *Device) BatchNormSums(gs, dy, x, mv Matrix, eps float64) {
	const op = "BatchNormSums"
	tensor.NeedSameShape(op, dy, x)
	noF64(op, dy, x)
	pairOf64(op, "gs", gs, x.Cols)
	pairOf64(op, "mv", mv, x.Cols)
	if x.Cols == 0 {
		return
	}
	pitch := padded(x.Cols * repeats(foldRow, x.Cols))
	mean, rdev := make([]float64, pitch), make([]float64, pitch)
	for j := range pitch {
		mean[j] = row64Of(mv, 0)[j%x.Cols]
		rdev[j] = 1 / math.Sqrt(row64Of(mv, 1)[j%x.Cols]+eps)
	}
	c.sumPairs(gs, []Matrix{dy, x}, func(ms []Matrix, lo int) simd.ColumnSums {
		return simd.ColumnSums{Dy: blockOf(ms[0], lo), X: blockOf(ms[1], lo), Mean: &mean[0], Rdev: &rdev[0]}
	})
}

// BatchNormGrad: gamma·rdev·(dy - gs0/count - xhat·gs1/count), as A·dy - B - (x-mean)·C.
func (c *Device) BatchNormGrad(dx, dy, x, mv, gs, gamma Matrix, count int64, eps float64) {
	const op = "BatchNormGrad"
	tensor.NeedSameShape(op, dx, dy, x)
	noF64(op, dx, dy, x)
	pairOf64(op, "gs", gs, x.Cols)
	pairOf64(op, "mv", mv, x.Cols)
	if x.Rows == 0 || x.Cols == 0 {
		return
	}
	vectorOf(gamma, op, "gamma", x.Cols)
	pitch := x.Cols * repeats(foldRow, x.Cols)
	v := make([]float32, 4*pitch)
	mean, ka, kb, kc := v[:pitch], v[pitch:2*pitch], v[2*pitch:3*pitch], v[3*pitch:]
	n := float64(count)
	for k := range mean {
		j := k % x.Cols
		rdev := 1 / math.Sqrt(row64Of(mv, 1)[j]+eps)
		a := float64(f32Of(gamma)[j]) * rdev
		mean[k], ka[k] = float32(row64Of(mv, 0)[j]), float32(a)
		kb[k], kc[k] = float32(a*row64Of(gs, 0)[j]/n), float32(a*rdev*row64Of(gs, 1)[j]/n)
	}
	run := func(ms []Matrix) {
		c.byRows(ms, func(lo, hi int) {
			g := simd.NormGrad{
				Dy: blockOf(ms[1], lo), X: blockOf(ms[2], lo), Rows: hi - lo, Cols: ms[0].Cols,
				Mean: &mean[0], A: &ka[0], B: &kb[0], C: &kc[0],
			}
			g.Dx = resultOf(ms[0], lo, g.Dy, g.X)
			g.Run(c.level)
		})
	}
	ms := []Matrix{dx, dy, x}
	if rest := fold(repeats(foldRow, x.Cols), ms); rest != nil {
		run(rest)
	}
	run(ms)
}

// layerStat panics unless stat is rows x 2 float32.
func layerStat(op string, stat, x Matrix) {
	if stat.Rows != x.Rows || stat.Cols != 2 || stat.Type() != F32 {
		panic(fmt.Sprintf("tensor: %s: stat is %v, want %dx2 float32", op, stat, x.Rows))
	}
}

// LayerNorm normalizes rows.
func (c *Device) LayerNorm(y, stat, x, gamma, beta Matrix, eps float64, epi Epilogue) {
	const op = "LayerNorm"
	tensor.NeedSameShape(op, y, x)
	noF64(op, y, x)
	layerStat(op, stat, x)
	if !epi.Bias.IsZero() {
		panic("tensor: LayerNorm takes no bias beside beta")
	}
	if x.Rows == 0 || x.Cols == 0 {
		return
	}
	all := epilogueSteps(epi, op, y)
	all.Scale, all.Bias = vectorOf(gamma, op, "gamma", x.Cols), vectorOf(beta, op, "beta", x.Cols)
	all.Moments, all.Eps, all.StatStride = true, float32(eps), stat.Stride()*4
	c.byRows([]Matrix{y, x}, func(lo, hi int) {
		m := all
		m.Src, m.Rows, m.Cols = blockOf(x, lo), hi-lo, x.Cols
		m.Dst = resultOf(y, lo, m.Src)
		m.Stat, m.Drop = &rowOf(stat, lo)[0], all.Drop.Rows(lo)
		m.Run(c.level)
	})
}

// LayerNormGrad is the backward pass of LayerNorm.
func (c *Device) LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma Matrix) {
	const op = "LayerNormGrad"
	tensor.NeedSameShape(op, dx, dy, x)
	noF64(op, dx, dy, x)
	layerStat(op, stat, x)
	vectorOf(dgamma, op, "dgamma", x.Cols)
	vectorOf(dbeta, op, "dbeta", x.Cols)
	scale := vectorOf(gamma, op, "gamma", x.Cols)
	c.sumColumns(1, []Matrix{dx, dy, x}, [][]float32{f32Of(dgamma), f32Of(dbeta)},
		func(_ []Matrix, lo, hi int, sums []float32) {
			g := simd.LayerGrad{
				Dy: blockOf(dy, lo), X: blockOf(x, lo), Rows: hi - lo, Cols: x.Cols,
				Stat: &rowOf(stat, lo)[0], StatStride: stat.Stride() * 4,
				Gamma: scale, DGamma: &sums[0], DBeta: &sums[padded(x.Cols)],
			}
			g.Dx = resultOf(dx, lo, g.Dy, g.X)
			g.Run(c.level)
		})
}
