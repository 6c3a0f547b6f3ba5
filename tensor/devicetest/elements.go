package devicetest

import (
	"starling/tensor"
)

func (s *suite) elements() {
	t := s.rowType()
	rows, cols := s.shape(200, 300)
	x, y := s.numbers(t, rows, cols), s.numbers(t, rows, cols)
	u := s.rowType()
	dst := s.numbers(u, rows, cols)
	s.describe("%v from %v", dst.dev, x.dev)
	sum := s.sums(1, 1)
	s.dev.Dot(sum.dev, x.dev, y.dev)
	s.ref.Dot(sum.ref, x.ref, y.ref)
	s.near("dot", sum, func(int, float64) float64 { return 1e-4 * float64(rows*cols+1) / 100 })
	s.dev.Copy(dst.dev, x.dev)
	s.ref.Copy(dst.ref, x.ref)
	s.same("copy", dst, 0)
	a, b := float64(s.r.IntN(9)-4)/4, float64(s.r.IntN(9)-4)/4
	s.dev.Combine(dst.dev, a, x.dev, b, y.dev)
	s.ref.Combine(dst.ref, a, x.ref, b, y.ref)
	s.same("sum", dst, 4)
	s.dev.Combine(dst.dev, a, dst.dev, 0, tensor.Matrix{})
	s.ref.Combine(dst.ref, a, dst.ref, 0, tensor.Matrix{})
	s.same("multiple, in place", dst, 4)
	s.dev.Multiply(y.dev, x.dev, y.dev)
	s.ref.Multiply(y.ref, x.ref, y.ref)
	s.same("product, in place", y, 4)
	s.dev.Zero(x.dev)
	s.ref.Zero(x.ref)
	s.same("zero", x, 0)
	s.small(min(cols, 40))
	s.outside()
}

func (s *suite) gelu() {
	t, u := s.rowType(), s.rowType()
	rows, cols := s.shape(200, 300)
	x, dy, y, dx := s.numbers(t, rows, cols), s.numbers(u, rows, cols), s.numbers(t, rows, cols), s.numbers(u, rows, cols)
	if s.yes() { // where Φ ends
		s.dev.Combine(x.dev, 8, x.dev, 0, tensor.Matrix{})
		s.ref.Combine(x.ref, 8, x.ref, 0, tensor.Matrix{})
	}
	s.describe("%v from %v", y.dev, x.dev)
	s.dev.GELU(y.dev, x.dev)
	s.ref.GELU(y.ref, x.ref)
	s.same("gelu", y, 1)
	s.dev.GELUGrad(dx.dev, dy.dev, x.dev)
	s.ref.GELUGrad(dx.ref, dy.ref, x.ref)
	s.same("gradient", dx, 1)
	s.dev.GELUGrad(dy.dev, dy.dev, x.dev)
	s.ref.GELUGrad(dy.ref, dy.ref, x.ref)
	s.same("gradient, in place", dy, 1)
	s.outside()
}

// small moves numbers between types, as sums and parameters.
func (s *suite) small(cols int) {
	p, sum := s.param(2, cols), s.sums(2, cols)
	s.dev.Copy(sum.dev, p.dev)
	s.ref.Copy(sum.ref, p.ref)
	s.dev.Combine(sum.dev, 0.5, sum.dev, 1, p.dev)
	s.ref.Combine(sum.ref, 0.5, sum.ref, 1, p.ref)
	s.same("sum of types", sum, 1)
	s.dev.Copy(p.dev, sum.dev)
	s.ref.Copy(p.ref, sum.ref)
	s.same("copy of types", p, 1)
}

func (s *suite) activate() {
	t, u := s.rowType(), s.rowType()
	rows, cols := s.shape(200, 200)
	src, y := s.numbers(t, rows, cols), s.numbers(u, rows, cols)
	e, f := s.epilogue(rows, cols, true)
	if s.yes() { // in place
		y = src
	}
	s.describe("%v, act %v, dropout %g, in place %v", y.dev, e.Act, e.Dropout.P, y == src)
	s.dev.Activate(y.dev, src.dev, e)
	s.ref.Activate(y.ref, src.ref, f)
	s.same("activation", y, 2)
	x := download(s.dev, y.dev) // the gradient looks at what was rounded
	s.ref.Upload(y.ref, x)
	dy := s.numbers(t, rows, cols)
	dx := dy
	if s.yes() {
		dx = s.numbers(u, rows, cols)
	}
	var dbias pair
	if s.yes() {
		dbias = s.param(1, cols)
	}
	e.Bias, f.Bias = tensor.Matrix{}, tensor.Matrix{}
	s.dev.ActivateGrad(dx.dev, dy.dev, y.dev, e, dbias.dev)
	s.ref.ActivateGrad(dx.ref, dy.ref, y.ref, f, dbias.ref)
	s.same("gradient", dx, 2)
	if !dbias.dev.IsZero() {
		tol := max(precision(t), precision(u)) / 2 // of a sum of rounded numbers
		s.near("gradient of the bias", dbias, func(int, float64) float64 { return tol * 6 * (float64(rows) + 4) })
	}
	s.outside()
}
