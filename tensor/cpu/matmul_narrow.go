package cpu

import (
	"unsafe"

	"starling/tensor/cpu/simd"
)

// Weight gradients with two narrow sides, as of a last layer of few classes after a narrow one: aᵀ·b with up to
// OuterWidth columns each. Both are read in place (see simd.Outer), eight columns of a at a
// time. Packing them for tiles
// takes longer than multiplying them.

// outer reports whether aᵀ·b goes this way; with fewer columns of b its transpose does.
func (c *Device) outer(a, b Matrix) bool {
	return c.level >= simd.AVX512 && a.Type() == F32 && b.Type() == F32 && a.Cols <= b.Cols && b.Cols <= simd.OuterWidth
}

// outerRows is how many rows a slice has: those of both sides stay in the first-level cache.
const outerRows = 256

// newOuter has the sizes of aᵀ·b: sums have whole steps of columns of a, and a whole vector of b's.
func newOuter(a Matrix) tallTall {
	g := tallTall{m: (a.Cols + simd.OuterLeft - 1) / simd.OuterLeft * simd.OuterLeft, n: simd.OuterWidth,
		depth: outerRows}
	g.inGroups(a.Rows, g.m, g.n)
	return g
}

// tallTallOuter: dst = after(aᵀ · b).
func (c *Device) tallTallOuter(dst, a, b Matrix, op MatMul) {
	g := newOuter(a)
	sums := c.apart(F32, g.groups, g.m*g.n)
	steps := make([]perCore[simd.Outer], c.threads)
	c.run(g.groups, func(group, thread int) {
		t := &steps[thread].of
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		sum := part(sums, group, 0, g.m, g.n)
		if lo >= hi {
			zeroRows(sum)
		}
		*t = simd.Outer{ARow: 4 * a.Stride(), BRow: 4 * b.Stride(), CRow: 4 * g.n, Cols: b.Cols}
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			t.Rows, t.Add, t.B = end-lo, flag(lo > first), baseOf(b.Slice(lo, end))
			for j := 0; j < a.Cols; j += simd.OuterLeft {
				t.A, t.Left = unsafe.Pointer(&f32Of(a)[lo*a.Stride()+j]), min(simd.OuterLeft, a.Cols-j)
				t.C = unsafe.Pointer(&f32Of(sum)[j*sum.Stride()])
				t.Run(c.level)
			}
		}
	})
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}
