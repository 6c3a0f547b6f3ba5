package devicetest

import (
	"math"

	"starling/tensor"
)

func (s *suite) matMul() {
	m, k, n := s.size(260), s.size(260), s.size(130)
	op := tensor.MatMul{TransA: s.yes(), TransB: s.yes(), Add: s.yes()}
	if op.TransA {
		m, k = s.size(130), s.size(400)
	}
	if s.r.IntN(4) == 0 {
		op.ZerosA, op.ZerosB = s.r.Float32(), s.r.Float32()
	}
	shape := func(rows, cols int, trans bool) (int, int) {
		if trans {
			return cols, rows
		}
		return rows, cols
	}
	t := s.rowType()
	ar, ac := shape(m, k, op.TransA)
	br, bc := shape(k, n, op.TransB)
	bt := s.dev.Type()
	if op.TransA && s.yes() {
		bt = t
	}
	at := t
	if s.r.IntN(4) == 0 { // scores times weights, for example
		at = s.dev.Type()
	}
	a, b, dst := s.product(at, ar, ac), s.product(bt, br, bc), s.numbers(t, m, n)
	if op.TransA {
		dst = s.numbers(s.dev.Type(), m, n)
	}
	s.describe("%v = %v · %v, %+v", dst.dev, a.dev, b.dev, op)
	size := s.productSize(a, b, dst, op)
	refOp := op
	op.Epilogue, refOp.Epilogue = s.epilogue(m, n, true)
	s.dev.MatMul(dst.dev, a.dev, b.dev, op)
	s.ref.MatMul(dst.ref, a.ref, b.ref, refOp)
	tol := precision(dst.dev.Type())
	if t == tensor.BF16 {
		tol = precision(t) // weights may be rounded too
	}
	s.near("product", dst, func(i int, want float64) float64 { return tol * (4 + 3*size[i] + math.Abs(want)) })
	s.outside()
}

// product is a side of a product, of any numbers.
func (s *suite) product(t tensor.DType, rows, cols int) pair {
	p := s.numbers(t, rows, cols)
	if s.yes() {
		x := make([]float64, rows*cols)
		for i := range x {
			x[i] = s.r.NormFloat64()
		}
		s.dev.Upload(p.dev, x)
		s.dev.Download(x, p.dev) // as the type rounds them
		s.ref.Upload(p.ref, x)
	}
	return p
}

// productSize is the sums of the sizes of what is added up.
func (s *suite) productSize(a, b, dst pair, op tensor.MatMul) []float64 {
	abs := func(m tensor.Matrix) tensor.Matrix {
		x := download(s.ref, m)
		for i := range x {
			x[i] = math.Abs(x[i])
		}
		y := s.ref.New(tensor.F64, m.Rows, m.Cols)
		s.ref.Upload(y, x)
		return y
	}
	size := abs(dst.ref)
	s.ref.MatMul(size, abs(a.ref), abs(b.ref), tensor.MatMul{TransA: op.TransA, TransB: op.TransB, Add: op.Add})
	return download(s.ref, size)
}

func (s *suite) columnSum() {
	src := s.numbers(s.rowType(), s.size(700), s.size(130))
	dst, add := s.param(1, src.dev.Cols), s.yes()
	s.describe("%v, add %v", src.dev, add)
	s.dev.ColumnSum(dst.dev, src.dev, add)
	s.ref.ColumnSum(dst.ref, src.ref, add)
	s.same("sum", dst, 30)
}
