package tensor

import "starling/tensor/simd"

// Products of short bfloat16 rows, or with few columns, which are rounded as they are made (see simd.Strips16). In blocks
// that are padded, multiplied and rounded one after the other (cpu_matmul_amx.go), sums leave the nearest cache and come
// back, which takes longer than all else; and long rows are asked for in order, a block ahead, and come slower.

// short reports whether a product goes this way: nothing comes after it, and lines of the result are whole. Of longer rows
// with more columns sums are few beside what is read, and blocks as fast or faster.
func (c *CPU) short(dst, a Matrix, op MatMul) bool {
	return dst.dtype == BF16 && (a.Cols <= 64 || dst.Cols <= 16) && !op.Add && op.After.Empty() &&
		(dst.Cols <= simd.StripsWide && dst.contiguous() || dst.Cols%32 == 0)
}

// shortRoom is how many numbers a core takes for itself, away from another's.
const shortRoom = simd.StripsRoom + 1024

// tallSmallShort: dst = a · op(b) for whole units of rows; it returns how many rows these are.
func (c *CPU) tallSmallShort(dst, a, b Matrix, op MatMul) int {
	rows := dst.Rows / simd.StripsRows * simd.StripsRows
	of := simd.Strips16{ARow: 2 * a.stride, CRow: 2 * dst.stride, Cols: dst.Cols, Depth: a.Cols}
	panels := c.packSmall16(b, op.TransB, of.Padded(), dst.Cols)
	room := c.Scratch(F32, c.threads, shortRoom)
	of.B, of.Past = panels.base(), flag(dst.Bytes() >= streamBytes && uintptr(dst.base())&63 == 0 && of.WholeLines())
	strips := make([]perCore[simd.Strips16], c.threads)
	block := max(1, (64<<10)/(simd.StripsRows*(of.ARow+of.CRow))) * simd.StripsRows
	c.inTurns(rows, block, 1, func(lo, hi, thread int) {
		t := &strips[thread].of
		*t = of
		t.A, t.C, t.Room = a.Slice(lo, hi).base(), dst.Slice(lo, hi).base(), room.row(thread)
		t.Units = (hi - lo) / simd.StripsRows
		t.Run(c.level)
		simd.Settle()
	})
	c.Free(room)
	c.Free(panels)
	return rows
}
