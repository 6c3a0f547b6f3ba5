package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Gradients of weights with few columns: of aᵀ·b one side is narrow. Both are read as they lie (see simd.Outer), a slice of
// rows at a time. Each eight columns of a go over a panel of b, which stays in the nearest cache; meanwhile the next panel
// is asked for, some lines with each. Up to eight columns by many have no panels (cpu_matmul_outer_wide.go).

// outer reports whether aᵀ·b goes this way: with more columns, tiles of what is packed are as fast or faster.
func (c *CPU) outer(a, b Matrix) bool {
	return c.level >= simd.AVX512 && a.dtype == F32 && b.dtype == F32 && a.Cols <= b.Cols &&
		(a.Cols <= 16 || b.Cols <= simd.OuterWidth)
}

// outerRows is how many rows a slice has. Rows that are a power of two apart share a few sets of the nearest cache, which
// has room for so many of two panels; of narrow rows it holds more.
func outerRows(cols int) int {
	if cols > simd.OuterWidth {
		return 32
	}
	return max(32, (4<<10)/cols&^31)
}

// newOuter has the sizes of aᵀ·b: sums have whole steps of columns of a, and whole vectors of b's.
func newOuter(a, b Matrix) tallTall {
	g := tallTall{m: (a.Cols + 7) &^ 7, n: (b.Cols + 15) &^ 15, depth: outerRows(b.Cols)}
	if outerSquare(a, b) {
		g = newOuterSquare(a, b)
	}
	g.inGroups(a.Rows, g.m, g.n)
	return g
}

// tallTallOuter: dst = after(aᵀ · b).
func (c *CPU) tallTallOuter(dst, a, b Matrix, op MatMul) {
	switch {
	case outerWide(a, b) || outerFar(a, b):
		c.tallTallOuterWide(dst, a, b, op)
		return
	case c.outerSquareHalves(a, b) && c.evenColumns(a) && c.evenColumns(b):
		c.tallTallOuterSquareHalves(dst, a, b, op)
		return
	}
	g := newOuter(a, b)
	sums := c.apart(F32, g.groups, g.m*g.n)
	steps := make([]perCore[simd.OuterSquare], c.threads)
	c.run(g.groups, func(group, thread int) {
		t := &steps[thread].of
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		sum := dense(sums.row(group), g.m, g.n)
		if lo >= hi {
			zeroRows(sum)
		}
		t.ARow, t.BRow, t.CRow = 4*a.stride, 4*b.stride, 4*g.n
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			t.Rows, t.Add = end-lo, flag(lo > first)
			if outerSquare(a, b) {
				c.outerSquareSlice(t, sum, a.Slice(lo, end), b.Slice(lo, end))
			} else {
				c.outerSlice(&t.Outer, sum, a.Slice(lo, end), b.Slice(lo, end))
			}
		}
	})
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}

// outerSlice adds a slice of rows to the sums.
func (c *CPU) outerSlice(t *simd.Outer, sum, a, b Matrix) {
	passes := sum.Rows / simd.OuterLeft
	for j := 0; j < b.Cols; j += simd.OuterWidth {
		t.Cols, t.B = min(simd.OuterWidth, b.Cols-j), unsafe.Pointer(&b.f32[j])
		next := uintptr(t.B) + 4*simd.OuterWidth
		if j+simd.OuterWidth >= b.Cols { // the first panel of the next slice
			next = uintptr(b.base()) + uintptr(4*b.Rows*b.stride)
		}
		for p := range passes { // together they ask for three lines of a row
			t.Ahead, t.AheadStep = next+uintptr(64*min(p, 2)), 64*flag(p == passes-1 && p < 2)
			t.A, t.Left = unsafe.Pointer(&a.f32[simd.OuterLeft*p]), min(simd.OuterLeft, a.Cols-simd.OuterLeft*p)
			t.C = unsafe.Pointer(&sum.f32[simd.OuterLeft*p*sum.stride+j])
			t.Run(c.level)
		}
	}
}
