package tensor

import (
	"math"

	"starling/tensor/simd"
)

// Dot is the sum of products of equal places.
func (c *CPU) Dot(x, y Matrix) float64 {
	sameShape("Dot", x, y)
	if x.dtype == F64 || y.dtype == F64 {
		return dotWide(x, y)
	}
	ms := []Matrix{x, y}
	rest := fold(repeats(flatRow, x.Cols), ms)
	sum := c.dotRows(ms[0], ms[1])
	if rest != nil {
		sum += c.dotRows(rest[0], rest[1])
	}
	return sum
}

func dotWide(x, y Matrix) (sum float64) {
	for i := range x.Rows {
		for j := range x.Cols {
			sum += x.get(i, j) * y.get(i, j)
		}
	}
	return sum
}

func (c *CPU) dotRows(x, y Matrix) float64 {
	if x.Rows == 0 || x.Cols == 0 {
		return 0
	}
	chunk, step := sumChunk([]Matrix{x, y})
	partial := make([]float64, (x.Rows+chunk-1)/chunk)
	c.forRows(x.Rows, chunk, func(lo, hi, k, _ int) {
		d := simd.Dot{Cols: x.Cols}
		for i := lo; i < hi; i += step {
			d.X, d.Y, d.Rows = x.block(i), y.block(i), min(i+step, hi)-i
			d.Run(c.level)
		}
		partial[k] = d.Sum
	})
	sum := 0.0
	for _, p := range partial {
		sum += p
	}
	return sum
}

// Finite reports whether all numbers are finite.
func (c *CPU) Finite(m Matrix) bool {
	if m.dtype == F64 {
		return finiteWide(m)
	}
	ms := []Matrix{m}
	rest := fold(repeats(flatRow, m.Cols), ms)
	return c.finiteRows(ms[0]) && (rest == nil || c.finiteRows(rest[0]))
}

func finiteWide(m Matrix) bool {
	for i := range m.Rows {
		for _, x := range m.row64(i) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return false
			}
		}
	}
	return true
}

func (c *CPU) finiteRows(m Matrix) bool {
	if m.Rows == 0 || m.Cols == 0 {
		return true
	}
	chunk, step := sumChunk([]Matrix{m})
	bad := make([]bool, (m.Rows+chunk-1)/chunk)
	c.forRows(m.Rows, chunk, func(lo, hi, k, _ int) {
		for i := lo; i < hi && !bad[k]; i += step {
			f := simd.Finite{X: m.block(i), Rows: min(i+step, hi) - i, Cols: m.Cols}
			f.Run(c.level)
			bad[k] = f.Bad
		}
	})
	for _, b := range bad {
		if b {
			return false
		}
	}
	return true
}
