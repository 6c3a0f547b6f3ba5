package tensor

import "starling/tensor/simd"

// Products with up to eight columns, those of a last layer of few classes, as dot products (see simd.Dots). Tiles of any
// kind would be mostly padding there, and take longer than rows take to come from memory.

// dots reports whether a product goes this way: rows of fewer numbers would be mostly padding.
func (c *CPU) dots(a, b Matrix, cols int) bool {
	return c.level >= simd.AVX512 && a.dtype == F32 && b.dtype == F32 && a.Cols >= 16 && cols <= simd.DotsWidth
}

// dotsRows is how many rows of k numbers are a block.
func dotsRows(k int) int { return max(16, rowChunk(4*k)/4) }

// tallSmallDots: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallDots(dst, a, b Matrix, op MatMul) {
	k, n := a.Cols, dst.Cols
	small := c.Scratch(F32, 1, simd.DotsSize(k))
	row, col := b.stride, 1
	if op.TransB {
		row, col = col, row
	}
	simd.PackDots(small.f32, b.f32, k, n, row, col)
	of := simd.Dots{B: small.base(), ARow: 4 * a.stride, Depth: k, Cols: n, Add: flag(op.Add)}
	dots := make([]perCore[simd.Dots], c.threads)
	c.rowBlocks(dst, a, op, dotsRows(k), 1, func(sum, in Matrix, thread int) {
		t := &dots[thread].of
		*t = of
		t.A, t.C, t.CRow, t.Rows = in.base(), sum.base(), 4*sum.stride, in.Rows
		t.Run(c.level)
	})
	c.Free(small)
}
