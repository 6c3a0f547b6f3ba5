package cpu

import "starling/tensor"

// Multiply is the product of equal places. It is memory that counts here, so rows
// of singles have a plain loop and all others go number by number.
func (c *Device) Multiply(dst, x, y Matrix) {
	tensor.NeedSameShape("Multiply", dst, x, y)
	ms := []Matrix{dst, x, y}
	single := dst.Type() == F32 && x.Type() == F32 && y.Type() == F32
	c.byRows(ms, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if single {
				multiplyRow(rowOf(dst, i), rowOf(x, i), rowOf(y, i))
				continue
			}
			for j := range dst.Cols {
				setNumber(dst, i, j, numberAt(x, i, j)*numberAt(y, i, j))
			}
		}
	})
}

func multiplyRow(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for j := range dst {
		dst[j] = x[j] * y[j]
	}
}
