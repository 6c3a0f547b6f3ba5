package cpu

import (
	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// Dot is the sum of products of corresponding numbers.
func (c *Device) Dot(dst, x, y Matrix) {
	tensor.NeedShape("Dot: dst", dst, 1, 1, F64)
	tensor.NeedSameShape("Dot", x, y)
	row64Of(dst, 0)[0] = c.dot(x, y)
}

func (c *Device) dot(x, y Matrix) float64 {
	if x.Type() == F64 || y.Type() == F64 {
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
			sum += numberAt(x, i, j) * numberAt(y, i, j)
		}
	}
	return sum
}

func (c *Device) dotRows(x, y Matrix) float64 {
	if x.Rows == 0 || x.Cols == 0 {
		return 0
	}
	chunk, step := sumChunk([]Matrix{x, y})
	partial := make([]float64, (x.Rows+chunk-1)/chunk)
	c.forRows(x.Rows, chunk, func(lo, hi, k, _ int) {
		d := simd.Dot{Cols: x.Cols}
		for i := lo; i < hi; i += step {
			d.X, d.Y, d.Rows = blockOf(x, i), blockOf(y, i), min(i+step, hi)-i
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
