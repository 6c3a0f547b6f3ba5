package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Gradients of weights with few columns: of aᵀ·b one side is narrow, the other is read once, as it lies (see simd.Outer).
// Only the narrow one, a, is packed, a slice of rows at a time. Each eight columns of a go over a panel of b, which stays
// in the nearest cache; meanwhile the next panel is asked for, right into that cache, some lines with each.

// outerRows is how many rows a slice has: rows that are a power of two apart share a few sets of the nearest cache, which
// has room for so many of two panels.
const outerRows = 32

// outer reports whether aᵀ·b goes this way: with more columns of a, tiles of what is packed are as fast or faster, and
// with fewer of b.
func (c *CPU) outer(a, b Matrix) bool {
	return c.level >= simd.AVX512 && a.dtype == F32 && b.dtype == F32 && a.Cols <= 16 && b.Cols >= 128
}

// newOuter has the sizes of aᵀ·b: sums have whole steps of columns of a, and whole vectors of b's.
func newOuter(a, b Matrix) tallTall {
	g := tallTall{m: (a.Cols + 7) &^ 7, n: (b.Cols + 15) &^ 15, depth: outerRows}
	g.left = simd.Packing{Width: 8, Pitch: simd.OuterPitch, Depth: outerRows}
	g.inGroups(a.Rows, g.m, g.n)
	return g
}

// tallTallOuter: dst = after(aᵀ · b).
func (c *CPU) tallTallOuter(dst, a, b Matrix, op MatMul) {
	g := newOuter(a, b)
	room := c.Scratch(F32, c.threads, g.left.Size(g.m))
	sums := c.Scratch(F32, g.groups, g.m*g.n)
	steps := make([]perCore[simd.Outer], c.threads)
	c.run(g.groups, func(group, thread int) {
		t, mine := &steps[thread].of, room.row(thread)
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		sum := dense(sums.row(group), g.m, g.n)
		if lo >= hi {
			zeroRows(sum)
		}
		t.BRow, t.CRow = 4*b.stride, 4*g.n
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			pack(c.level, mine, a.Slice(lo, end), g.left)
			t.Rows, t.Add = end-lo, flag(lo > first)
			c.outerSlice(t, sum, mine, b.Slice(lo, end))
		}
	})
	c.Free(room)
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}

// outerSlice adds a slice of rows to the sums.
func (c *CPU) outerSlice(t *simd.Outer, sum Matrix, a []float32, b Matrix) {
	passes := sum.Rows / 8
	for j := 0; j < b.Cols; j += simd.OuterWidth {
		t.Cols, t.B = min(simd.OuterWidth, b.Cols-j), unsafe.Pointer(&b.f32[j])
		next := uintptr(t.B) + 4*simd.OuterWidth
		if j+simd.OuterWidth >= b.Cols { // the first panel of the next slice
			next = uintptr(b.base()) + uintptr(4*b.Rows*b.stride)
		}
		for p := range passes { // one of two asks for one line of three, the other for two
			t.Ahead, t.AheadStep = next+uintptr(64*p), 64*min(1, 2-passes+p)
			t.A, t.C = unsafe.Pointer(&a[p*outerRows*simd.OuterPitch]), unsafe.Pointer(&sum.f32[8*p*sum.stride+j])
			t.Run(c.level)
		}
	}
}
