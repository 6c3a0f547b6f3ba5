package tensor

import "starling/tensor/simd"

// Large products of rows of few numbers with 33 to 48 columns, that nothing comes after (see simd.Square): gradients
// before a last layer after one of as many columns. On their way through tiles results come from memory before they go
// there.

// square reports whether a product goes this way. Of longer rows a matrix unit makes as much in less time; shorter ones
// go by fan.
func (c *CPU) square(dst, a, b Matrix, op MatMul) bool {
	most := 64
	if c.level >= simd.AMX {
		most = 48
	}
	return c.level >= simd.AVX512 && a.dtype == F32 && b.dtype == F32 && dst.dtype == F32 && a.Cols > simd.FanDepth &&
		a.Cols <= most && dst.Cols > 32 && dst.Cols <= 48 && dst.Bytes() >= streamBytes && dst.contiguous() &&
		uintptr(dst.base())&63 == 0 && !op.Add && op.After.Empty()
}

// tallSmallSquare: dst = a · op(b) for whole units of rows; it returns how many rows these are.
func (c *CPU) tallSmallSquare(dst, a, b Matrix, op MatMul) int {
	small := c.Scratch(F32, 1, simd.SquareSize(a.Cols))
	row, col := b.stride, 1
	if op.TransB {
		row, col = col, row
	}
	simd.PackSquare(small.f32, b.f32, a.Cols, dst.Cols, row, col)
	squares := make([]perCore[simd.Square], c.threads)
	rows := c.inUnits(dst, a, simd.SquareUnit, simd.SquareRoom, func(dst, a Matrix, room []float32, thread int) {
		t := &squares[thread].of
		*t = simd.Square{A: a.base(), B: small.base(), C: dst.base(), ARow: 4 * a.stride,
			Depth: a.Cols, Units: dst.Rows / simd.SquareUnit, Cols: dst.Cols, Room: room}
		t.Run(c.level)
	})
	c.Free(small)
	return rows
}
