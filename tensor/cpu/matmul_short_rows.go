package cpu

import (
	"unsafe"

	"starling/tensor/cpu/simd"
)

// Products of short rows, as of a second layer after sixteen hidden columns. Their rows are read in place, and all
// weights of sixteen columns stay in registers (see simd.ShortRows).

// shortBlock is how many rows go through all columns together: their results should stay in the nearest cache.
func shortBlock(cols int) int { return max(16, min(256, (4<<10)/cols&^7)) }

// fan reports whether a product goes this way: with more of both, tiles are as fast.
func (c *Device) shortRows(dst, a, b Matrix) bool {
	return c.level >= simd.AVX512 && a.Type() == F32 && b.Type() == F32 && a.Cols > 0 && a.Cols <= simd.ShortDepth &&
		dst.Cols <= 64 && a.Cols*dst.Cols <= 512
}

// tallSmallShort: dst = after(a · op(b)), by blocks of rows.
func (c *Device) tallSmallShort(dst, a, b Matrix, op MatMul) {
	k, n, rows := a.Cols, dst.Cols, shortBlock(dst.Cols)
	panels := c.shortPanels(b, op.TransB, k, n)
	tiles := make([]perCore[simd.ShortRows], c.threads)
	c.rowBlocks(dst, a, op, rows, max(1, (1<<20)/(rows*k*n)), func(sum, in Matrix, thread int) {
		t := &tiles[thread].of
		*t = simd.ShortRows{ARow: 4 * a.Stride(), Depth: k, Add: flag(op.Add), A: baseOf(in), CRow: 4 * sum.Stride(),
			Rows: in.Rows}
		for p := range panels.Rows {
			t.Cols = min(simd.ShortWidth, n-p*simd.ShortWidth)
			t.B, t.C = unsafe.Pointer(&rowOf(panels, p)[0]), unsafe.Add(baseOf(sum), 4*p*simd.ShortWidth)
			t.Run(c.level)
		}
	})
	c.Free(panels)
}

// shortPanels has op(b) in panels.
func (c *Device) shortPanels(b Matrix, trans bool, k, n int) Matrix {
	panels := c.Scratch(F32, simd.Panels(n, simd.ShortWidth), simd.ShortDepth*simd.ShortWidth)
	for p := range panels.Rows {
		if trans {
			simd.PackPanelTransposed(c.level, rowOf(panels, p), f32Of(b), k, n, b.Stride(), p*simd.ShortWidth,
				simd.ShortWidth)
		} else {
			simd.PackPanel(rowOf(panels, p), f32Of(b), k, n, b.Stride(), p*simd.ShortWidth, simd.ShortWidth)
		}
	}
	return panels
}
