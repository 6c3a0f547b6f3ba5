package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Products with 9 to 48 columns, those of a last layer with so many classes or a narrow first one, on the
// matrix unit in three parts like those of cpu_matmul_parts.go. There each row is split first and then multiplied
// with every panel; here one pass over it does both, as fast as it comes from memory.

// narrow reports whether a product goes this way. Of up to 32 columns tiles in registers are as fast where rows are short.
func (c *CPU) narrow(a, b Matrix, cols int) bool {
	shortest := 1
	if cols <= 32 {
		shortest = 24
	}
	return c.level >= simd.AMX && a.dtype == F32 && b.dtype == F32 && a.Cols >= shortest && cols > simd.DotsWidth && cols <= 48
}

// narrowFar reports whether rows are asked for a block ahead, across its pages: where they come from memory, and a block
// has many pages. Rows in cache take up to a twentieth more that way.
func narrowFar(a Matrix) bool { return a.Cols >= 128 && 4*a.Rows*a.stride >= farResult }

// narrowBlock is how many rows a block has: from memory, what leaves the second-level cache room for the next one.
func narrowBlock(a Matrix) int {
	if !narrowFar(a) {
		return splitRows
	}
	return max(16, min(splitRows, (64<<10)/a.Cols&^15))
}

// narrowAsk says what is asked for while a block is multiplied: rows 32 ahead, or the next block.
func narrowAsk(t *simd.Tiles48, block Matrix, far bool) {
	rows := 32
	t.AheadApart, t.AheadStep = 128, 2048
	if far {
		rows = block.Rows
		t.AheadApart, t.AheadStep = 128*(rows/16)*(up32(block.Cols)/32), 128
	}
	t.Ahead = uintptr(block.base()) + uintptr(4*rows*block.stride)
}

// tallSmallNarrow: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallNarrow(dst, a, b Matrix, op MatMul) {
	n, k := dst.Cols, a.Cols
	far, block := narrowFar(a), narrowBlock(a)
	panels, backs := c.partSmall(&thirds, b, op.TransB, k, n)
	split := c.Scratch(BF16, c.threads, simd.Room48)
	room := c.Scratch(F32, c.threads, block*n+16*k) // sums, and the last rows
	tiles := make([]perCore[simd.Tiles48], c.threads)
	c.inTurns(dst.Rows, block, max(1, (1<<22)/(block*up32(k)*48)), func(lo, hi, thread int) {
		t, mine := &tiles[thread].of, room.row(thread)
		t.B, t.BPanel, t.Depth, t.Cols, t.Add = panels.base(), 2*panels.stride, k, n, flag(op.Add)
		t.Room = unsafe.Pointer(&split.row16(thread)[0])
		for ; lo < hi; lo += block {
			end := min(hi, lo+block)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			narrowAsk(t, in, far)
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
				last := dense(mine[block*n:], out.Rows-whole, k)
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
