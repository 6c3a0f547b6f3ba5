package tensor

import (
	"fmt"
	"math"

	"starling/tensor/simd"
)

// pairOf64 panics unless m is 2 x cols float64, the form of batch norm's sums.
func pairOf64(op, name string, m Matrix, cols int) {
	if m.Rows != 2 || m.Cols != cols || m.dtype != F64 {
		panic(fmt.Sprintf("tensor: %s: %s is %v, want 2x%d float64", op, name, m, cols))
	}
}

// ColumnSums: the sums of x and x² over rows.
func (c *CPU) ColumnSums(sums, x Matrix) {
	pairOf64("ColumnSums", "sums", sums, x.Cols)
	noF64("ColumnSums", x)
	c.sumPairs(sums, []Matrix{x}, func(ms []Matrix, lo int) simd.ColumnSums {
		return simd.ColumnSums{X: ms[0].block(lo)}
	})
}

// sumPairs fills sums (2 x cols) over chunks of rows. at gives what to sum of ms from a row on.
func (c *CPU) sumPairs(sums Matrix, ms []Matrix, at func(ms []Matrix, lo int) simd.ColumnSums) {
	c.Zero(sums)
	rest := fold(repeats(foldRow/4, sums.Cols), ms)
	c.addPairs(sums, ms, at)
	if rest != nil {
		c.addPairs(sums, rest, at)
	}
}

func (c *CPU) addPairs(sums Matrix, ms []Matrix, at func(ms []Matrix, lo int) simd.ColumnSums) {
	rows, cols := ms[0].Rows, ms[0].Cols
	if rows == 0 || cols == 0 {
		return
	}
	chunk, _ := sumChunk(ms)
	room := padded(cols)
	partial := c.Scratch(F64, (rows+chunk-1)/chunk, 2*room+apart)
	defer c.Free(partial)
	c.forRows(rows, chunk, func(lo, hi, k, _ int) {
		p := partial.row64(k)
		clear(p)
		s := at(ms, lo)
		s.Rows, s.Cols = hi-lo, cols
		s.First, s.Other = &p[0], &p[room]
		s.Run(c.level)
	})
	total := addRows(partial)
	for i := range 2 {
		for j, x := range folded(total[i*room:i*room+cols], sums.Cols) {
			sums.row64(i)[j] += x
		}
	}
}

// Moments: mean and biased variance from sums.
func (c *CPU) Moments(mv, sums Matrix, count int64) {
	pairOf64("Moments", "sums", sums, mv.Cols)
	pairOf64("Moments", "mv", mv, mv.Cols)
	n := float64(max(count, 1))
	for j := range mv.Cols {
		mean := sums.row64(0)[j] / n
		mv.row64(1)[j] = max(sums.row64(1)[j]/n-mean*mean, 0)
		mv.row64(0)[j] = mean
	}
}

// Running moves the running mean and variance towards those of this step.
func (c *CPU) Running(running, mv Matrix, count int64, momentum float64) {
	pairOf64("Running", "running", running, mv.Cols)
	pairOf64("Running", "mv", mv, mv.Cols)
	unbias := 1.0
	if count > 1 {
		unbias = float64(count) / float64(count-1)
	}
	for j := range mv.Cols {
		running.row64(0)[j] += momentum * (mv.row64(0)[j] - running.row64(0)[j])
		running.row64(1)[j] += momentum * (mv.row64(1)[j]*unbias - running.row64(1)[j])
	}
}

// BatchNorm normalises columns.
func (c *CPU) BatchNorm(y, x, mv, gamma, beta Matrix, eps float64, after After) {
	const op = "BatchNorm"
	sameShape(op, y, x)
	noF64(op, y, x)
	pairOf64(op, "mv", mv, x.Cols)
	if !after.Bias.IsZero() {
		panic("tensor: BatchNorm takes no bias beside beta")
	}
	if x.Rows == 0 || x.Cols == 0 {
		return
	}
	center, scale := make([]float32, x.Cols), make([]float32, x.Cols)
	gamma.vector(op, "gamma", x.Cols)
	for j := range x.Cols {
		center[j] = float32(mv.row64(0)[j])
		scale[j] = float32(float64(gamma.f32[j]) / math.Sqrt(mv.row64(1)[j]+eps))
	}
	m := after.steps(op, y)
	m.Center, m.Scale, m.Bias = &center[0], &scale[0], beta.vector(op, "beta", x.Cols)
	c.mapRows(y, x, Matrix{}, m)
}

// BatchNormSums: the sums of dy and dy·xhat over rows.
func (c *CPU) BatchNormSums(gs, dy, x, mv Matrix, eps float64) {
	const op = "BatchNormSums"
	sameShape(op, dy, x)
	noF64(op, dy, x)
	pairOf64(op, "gs", gs, x.Cols)
	pairOf64(op, "mv", mv, x.Cols)
	if x.Cols == 0 {
		return
	}
	room := padded(x.Cols * repeats(foldRow, x.Cols))
	mean, rdev := make([]float64, room), make([]float64, room)
	for j := range room {
		mean[j] = mv.row64(0)[j%x.Cols]
		rdev[j] = 1 / math.Sqrt(mv.row64(1)[j%x.Cols]+eps)
	}
	c.sumPairs(gs, []Matrix{dy, x}, func(ms []Matrix, lo int) simd.ColumnSums {
		return simd.ColumnSums{Dy: ms[0].block(lo), X: ms[1].block(lo), Mean: &mean[0], Rdev: &rdev[0]}
	})
}

// BatchNormGrad: gamma·rdev·(dy - gs0/count - xhat·gs1/count), as A·dy - B - (x-mean)·C.
func (c *CPU) BatchNormGrad(dx, dy, x, mv, gs, gamma Matrix, count int64, eps float64) {
	const op = "BatchNormGrad"
	sameShape(op, dx, dy, x)
	noF64(op, dx, dy, x)
	pairOf64(op, "gs", gs, x.Cols)
	pairOf64(op, "mv", mv, x.Cols)
	if x.Rows == 0 || x.Cols == 0 {
		return
	}
	gamma.vector(op, "gamma", x.Cols)
	room := x.Cols * repeats(foldRow, x.Cols)
	v := make([]float32, 4*room)
	mean, ka, kb, kc := v[:room], v[room:2*room], v[2*room:3*room], v[3*room:]
	n := float64(count)
	for k := range mean {
		j := k % x.Cols
		rdev := 1 / math.Sqrt(mv.row64(1)[j]+eps)
		a := float64(gamma.f32[j]) * rdev
		mean[k], ka[k] = float32(mv.row64(0)[j]), float32(a)
		kb[k], kc[k] = float32(a*gs.row64(0)[j]/n), float32(a*rdev*gs.row64(1)[j]/n)
	}
	run := func(ms []Matrix) {
		c.byRows(ms, func(lo, hi int) {
			g := simd.NormGrad{
				Dy: ms[1].block(lo), X: ms[2].block(lo), Rows: hi - lo, Cols: ms[0].Cols,
				Mean: &mean[0], A: &ka[0], B: &kb[0], C: &kc[0],
			}
			g.Dx = ms[0].result(lo, g.Dy, g.X)
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
	if stat.Rows != x.Rows || stat.Cols != 2 || stat.dtype != F32 {
		panic(fmt.Sprintf("tensor: %s: stat is %v, want %dx2 float32", op, stat, x.Rows))
	}
}

// LayerNorm normalises rows.
func (c *CPU) LayerNorm(y, stat, x, gamma, beta Matrix, eps float64, after After) {
	const op = "LayerNorm"
	sameShape(op, y, x)
	noF64(op, y, x)
	layerStat(op, stat, x)
	if !after.Bias.IsZero() {
		panic("tensor: LayerNorm takes no bias beside beta")
	}
	if x.Rows == 0 || x.Cols == 0 {
		return
	}
	all := after.steps(op, y)
	all.Scale, all.Bias = gamma.vector(op, "gamma", x.Cols), beta.vector(op, "beta", x.Cols)
	all.Moments, all.Eps, all.StatStride = true, float32(eps), stat.stride*4
	c.byRows([]Matrix{y, x}, func(lo, hi int) {
		m := all
		m.Src, m.Rows, m.Cols = x.block(lo), hi-lo, x.Cols
		m.Dst = y.turnedResult(lo, m.Turned(), m.Src)
		m.Stat, m.Drop = &stat.row(lo)[0], all.Drop.Rows(lo)
		m.Run(c.level)
	})
}

// LayerNormGrad is the backward pass of LayerNorm.
func (c *CPU) LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma Matrix) {
	const op = "LayerNormGrad"
	sameShape(op, dx, dy, x)
	noF64(op, dx, dy, x)
	layerStat(op, stat, x)
	dgamma.vector(op, "dgamma", x.Cols)
	dbeta.vector(op, "dbeta", x.Cols)
	scale := gamma.vector(op, "gamma", x.Cols)
	c.sumColumns(1, []Matrix{dx, dy, x}, [][]float32{dgamma.f32, dbeta.f32}, func(_ []Matrix, lo, hi int, sums []float32) {
		g := simd.LayerGrad{
			Dy: dy.block(lo), X: x.block(lo), Rows: hi - lo, Cols: x.Cols,
			Stat: &stat.row(lo)[0], StatStride: stat.stride * 4,
			Gamma: scale, DGamma: &sums[0], DBeta: &sums[padded(x.Cols)],
		}
		g.Dx = dx.turnedResult(lo, g.Turned(), g.Dy, g.X)
		g.Run(c.level)
	})
}
