package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Products of short rows, as of a second layer after sixteen hidden columns. Their rows are read as they lie, and all
// weights of sixteen columns stay in registers (see simd.Fan).

// fanBlock is how many rows go through all columns together: their results should stay in the nearest cache.
func fanBlock(cols int) int { return max(16, min(256, (4<<10)/cols&^7)) }

// fan reports whether a product goes this way: with more of both tiles are as fast, unless the result goes past the caches.
func (c *CPU) fan(dst, a, b Matrix, op MatMul) bool {
	few := dst.Cols <= 64 && a.Cols*dst.Cols <= 512
	return c.level >= simd.AVX512 && a.dtype == F32 && b.dtype == F32 && a.Cols > 0 && a.Cols <= simd.FanDepth &&
		(few || fanPast(dst, op))
}

// tallSmallFan: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallFan(dst, a, b Matrix, op MatMul) {
	panels := c.fanPanels(b, op.TransB, a.Cols, dst.Cols)
	done := 0
	if fanPast(dst, op) && uintptr(dst.base())&63 == 0 {
		done = c.fanPastRows(dst, a, panels)
	}
	if done < dst.Rows {
		c.fanRows(dst.Slice(done, dst.Rows), a.Slice(done, a.Rows), panels, op)
	}
	c.Free(panels)
}

// fanPanels has op(b) in panels.
func (c *CPU) fanPanels(b Matrix, trans bool, k, n int) Matrix {
	panels := c.Scratch(F32, simd.Panels(n, simd.FanWidth), simd.FanDepth*simd.FanWidth)
	for p := range panels.Rows {
		if trans {
			simd.PackPanelTransposed(c.level, panels.row(p), b.f32, k, n, b.stride, p*simd.FanWidth, simd.FanWidth)
		} else {
			simd.PackPanel(panels.row(p), b.f32, k, n, b.stride, p*simd.FanWidth, simd.FanWidth)
		}
	}
	return panels
}

// fanRows: dst = after(a · panels).
func (c *CPU) fanRows(dst, a, panels Matrix, op MatMul) {
	k, n, rows := a.Cols, dst.Cols, fanBlock(dst.Cols)
	fans := make([]perCore[simd.Fan], c.threads)
	c.rowBlocks(dst, a, op, rows, max(1, (1<<20)/(rows*k*n)), func(sum, in Matrix, thread int) {
		t := &fans[thread].of
		*t = simd.Fan{ARow: 4 * a.stride, Depth: k, Add: flag(op.Add), A: in.base(), CRow: 4 * sum.stride, Rows: in.Rows}
		for p := range panels.Rows {
			t.Cols = min(simd.FanWidth, n-p*simd.FanWidth)
			t.B, t.C = unsafe.Pointer(&panels.row(p)[0]), unsafe.Add(sum.base(), 4*p*simd.FanWidth)
			t.Run(c.level)
		}
	})
}

// fanPast reports whether results, which nothing comes after, go past the caches. Two units of them stay in the nearest.
func fanPast(dst Matrix, op MatMul) bool {
	return dst.dtype == F32 && dst.Cols <= 256 && dst.Bytes() >= streamBytes && dst.contiguous() &&
		!op.Add && op.After.Empty()
}

// fanPastRows: dst = a · panels for whole units of rows; it returns how many rows these are.
func (c *CPU) fanPastRows(dst, a, panels Matrix) int {
	fans := make([]perCore[simd.FanPast], c.threads)
	return c.inUnits(dst, a, simd.FanUnit, simd.FanRoom(dst.Cols), func(dst, a Matrix, room []float32, thread int) {
		t := &fans[thread].of
		*t = simd.FanPast{A: a.base(), B: panels.base(), C: dst.base(), ARow: 4 * a.stride,
			Depth: a.Cols, Units: dst.Rows / simd.FanUnit, Cols: dst.Cols, Room: room}
		t.Run(c.level)
	})
}

// inUnits runs body on blocks of whole units of rows, whose results leave past the caches, each core with a room of its
// own; it returns how many rows these are.
func (c *CPU) inUnits(dst, a Matrix, unit, size int, body func(dst, a Matrix, room []float32, thread int)) int {
	rows := dst.Rows / unit * unit
	room := c.rooms(F32, size)
	block := max(1, (64<<10)/(4*unit*(a.stride+dst.stride))) * unit
	c.inTurns(rows, block, 1, func(lo, hi, thread int) {
		body(dst.Slice(lo, hi), a.Slice(lo, hi), room.row(thread), thread)
		simd.Settle()
	})
	c.Free(room)
	return rows
}
