package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Products of short rows, as of a second layer after sixteen hidden columns. Their rows are read as they lie, and all
// weights of sixteen columns stay in registers (see simd.Fan).

// fanRows is how many rows go through all columns together.
const fanRows = 256

// fan reports whether a product goes this way. With more columns a row's lines are written piece by piece, and with more
// of both tiles are as fast.
func (c *CPU) fan(a, b Matrix, cols int) bool {
	return c.level >= simd.AVX512 && a.dtype == F32 && b.dtype == F32 && a.Cols > 0 && a.Cols <= simd.FanDepth &&
		cols <= 64 && a.Cols*cols <= 512
}

// tallSmallFan: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallFan(dst, a, b Matrix, op MatMul) {
	k, n := a.Cols, dst.Cols
	panels := c.Scratch(F32, simd.Panels(n, simd.FanWidth), simd.FanDepth*simd.FanWidth)
	for p := range panels.Rows {
		if op.TransB {
			simd.PackPanelTransposed(c.level, panels.row(p), b.f32, k, n, b.stride, p*simd.FanWidth, simd.FanWidth)
		} else {
			simd.PackPanel(panels.row(p), b.f32, k, n, b.stride, p*simd.FanWidth, simd.FanWidth)
		}
	}
	fans := make([]perCore[simd.Fan], c.threads)
	c.rowBlocks(dst, a, op, fanRows, max(1, (1<<20)/(fanRows*k*n)), func(sum, in Matrix, thread int) {
		t := &fans[thread].of
		*t = simd.Fan{ARow: 4 * a.stride, Depth: k, Add: flag(op.Add), A: in.base(), CRow: 4 * sum.stride, Rows: in.Rows}
		for p := range panels.Rows {
			t.Cols = min(simd.FanWidth, n-p*simd.FanWidth)
			t.B, t.C = unsafe.Pointer(&panels.row(p)[0]), unsafe.Add(sum.base(), 4*p*simd.FanWidth)
			t.Run(c.level)
		}
	})
	c.Free(panels)
}
