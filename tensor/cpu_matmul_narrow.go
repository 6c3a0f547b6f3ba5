package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Products with 33 to 48 columns, those of a last layer with so many classes, on the
// matrix unit in three parts like those of cpu_matmul_parts.go. There each row is split first and then multiplied
// with every panel; here one pass over it does both, as fast as it comes from memory.

func (c *CPU) narrow(a, b Matrix, cols int) bool {
	return c.level >= simd.AMX && a.dtype == F32 && b.dtype == F32 && a.Cols > 0 && cols > 32 && cols <= 48
}

// narrowAhead is how many rows ahead of those being split rows are asked for. A whole block of them ahead takes a
// twentieth more on two threads, 16 rows no less.
const narrowAhead = 32

// tallSmallNarrow: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallNarrow(dst, a, b Matrix, op MatMul) {
	n, k := dst.Cols, a.Cols
	panels, backs := c.partSmall(&thirds, b, op.TransB, k, n)
	split := c.Scratch(BF16, c.threads, simd.Room48)
	room := c.Scratch(F32, c.threads, splitRows*n+16*k) // sums, and the last rows
	tiles := make([]perCore[simd.Tiles48], c.threads)
	c.inTurns(dst.Rows, splitRows, max(1, (1<<22)/(splitRows*up32(k)*48)), func(lo, hi, thread int) {
		t, mine := &tiles[thread].of, room.row(thread)
		t.B, t.BPanel, t.Depth, t.Cols, t.Add = panels.base(), 2*panels.stride, k, n, flag(op.Add)
		t.Room, t.AheadStep = unsafe.Pointer(&split.row16(thread)[0]), 2048
		for ; lo < hi; lo += splitRows {
			end := min(hi, lo+splitRows)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			t.Ahead = uintptr(in.base()) + uintptr(4*narrowAhead*a.stride)
			sum := out
			if out.Rows%16 != 0 || dst.dtype != F32 {
				sum = dense(mine, out.Rows, n)
				if op.Add {
					c.activateSerial(sum, out, After{})
				}
			}
			whole := out.Rows &^ 15
			if whole > 0 {
				c.strips(t, sum.Slice(0, whole), in.Slice(0, whole))
			}
			if whole < out.Rows { // a strip reads all its rows: those that are there, in a room for 16
				last := dense(mine[splitRows*n:], out.Rows-whole, k)
				c.activateSerial(last, in.Slice(whole, out.Rows), After{})
				c.strips(t, sum.Slice(whole, out.Rows), last)
			}
			if sum.base() != out.base() || !op.After.Empty() {
				c.activateSerial(out, sum, op.After.slice(lo, end))
			}
		}
	})
	c.Free(room)
	c.Free(split)
	c.Free(backs)
	c.Free(panels)
}

// strips computes the sums of all rows of a, in strips of 16.
func (c *CPU) strips(t *simd.Tiles48, sum, a Matrix) {
	t.A, t.ARow, t.C, t.CRow = a.base(), 4*a.stride, sum.base(), 4*sum.stride
	t.Strips = (a.Rows + 15) / 16
	t.Run(c.level)
}
