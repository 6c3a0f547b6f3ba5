package tensor

// Multiply is the product of equal places. It is memory that counts here, so rows
// of singles have a plain loop and all others go number by number.
func (c *CPU) Multiply(dst, x, y Matrix) {
	sameShape("Multiply", dst, x, y)
	ms := []Matrix{dst, x, y}
	single := dst.dtype == F32 && x.dtype == F32 && y.dtype == F32
	c.byRows(ms, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if single {
				multiplyRow(dst.row(i), x.row(i), y.row(i))
				continue
			}
			for j := range dst.Cols {
				dst.set(i, j, x.get(i, j)*y.get(i, j))
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

// Multiply is the product of equal places.
func (r *Ref) Multiply(dst, x, y Matrix) {
	for i := range dst.Rows {
		d, a, b := dst.row64(i), x.row64(i), y.row64(i)
		for j := range d {
			d[j] = a[j] * b[j]
		}
	}
}
