package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Gradients of weights of 25 to 48 columns by 33 to 48, as in cpu_matmul_outer.go, with more columns of a at a time (see
// simd.OuterSquare). Packing both sides for tiles takes longer than multiplying them.

// outerSquare reports whether aᵀ·b, which goes by outer, goes this way: with fewer columns sums are few beside what is read.
func outerSquare(a, b Matrix) bool { return a.Cols > 24 && b.Cols > 32 && b.Cols <= simd.OuterWidth }

// outerSquareRows is how many rows a slice has, which stay near while each step over columns of a reads them.
const outerSquareRows = 96

// newOuterSquare has the sizes of aᵀ·b.
func newOuterSquare(a, b Matrix) tallTall {
	return tallTall{m: a.Cols, n: simd.OuterSquareSums(b.Cols), depth: outerSquareRows}
}

// outerSquareSlice adds a slice of rows to the sums. The last two steps over columns of a overlap.
func (c *CPU) outerSquareSlice(t *simd.OuterSquare, sum, a, b Matrix) {
	left := simd.OuterSquareLeft(b.Cols)
	next := nextSlice(a, b, (a.Cols+left-1)/left*a.Rows)
	t.B, t.Cols = b.base(), b.Cols
	for j := 0; j < a.Cols; j += left {
		t.Left = min(left, a.Cols-j)
		t.A, t.C = unsafe.Pointer(&a.f32[j+t.Left-left]), unsafe.Pointer(&sum.f32[j*sum.stride])
		t.Ahead, t.AheadStep = next.take(t.Rows)
		t.Run(c.level)
	}
}
