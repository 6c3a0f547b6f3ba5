package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Gradients of weights of a last layer of 33 to 48 classes, on a matrix unit that knows half precision (see
// simd.OuterHalves): the narrow side is halved first, the wide one on the way, a slice of rows at a time.

// outerHalves reports whether aᵀ·b goes this way: with less than 128 columns of b, halving a is too much of it.
func (c *CPU) outerHalves(a, b Matrix) bool {
	return c.halves() && a.dtype == F32 && b.dtype == F32 && a.Cols > 32 && a.Cols <= 48 && b.Cols >= 128
}

// outerHalvesPanel is how many numbers of half precision 32 columns of a slice of a take.
const outerHalvesPanel = simd.OuterHalvesDepth / 32 * simd.HalfBlock

// outerHalvesRoom is how many float32 each core takes: the room of a step, and scales of a's columns and of cols of b's.
func outerHalvesRoom(cols int) int { return simd.RoomOuterHalves + 64 + 2*cols }

// tallTallOuterHalves: dst = after(aᵀ · b).
func (c *CPU) tallTallOuterHalves(dst, a, b Matrix, op MatMul) {
	m, n := dst.Rows, (dst.Cols+15)&^15
	g := newSplitGroups(a.Rows, m, n, simd.OuterHalvesDepth)
	left, room := c.Scratch(BF16, c.threads, 2*outerHalvesPanel), c.Scratch(F32, c.threads, outerHalvesRoom(n))
	last := c.Scratch(F32, 32, n) // rows of b that are no whole block, and zeros
	sums := c.Scratch(F32, g.groups, m*n)
	steps := make([]perCore[simd.OuterHalves], c.threads)
	c.run(g.groups, func(group, thread int) {
		t, strips, mine := &steps[thread].of, left.row16(thread), room.row(thread)
		backA := mine[simd.RoomOuterHalves:][:64]
		scale, backB := mine[simd.RoomOuterHalves+64:][:n], mine[simd.RoomOuterHalves+64+n:][:n]
		lo, hi := g.start(group), g.start(group+1)
		sum := dense(sums.row(group), m, n)
		if lo >= hi {
			zeroRows(sum)
		}
		t.A, t.APanel = unsafe.Pointer(&strips[0]), 2*outerHalvesPanel
		t.C, t.CRow, t.Rows, t.Cols = sum.base(), 4*n, m, b.Cols
		t.Scale, t.BackA, t.BackB, t.Room = unsafe.Pointer(&scale[0]), unsafe.Pointer(&backA[0]), unsafe.Pointer(&backB[0]), unsafe.Pointer(&mine[0])
		for first := lo; lo < hi; {
			end := min(hi, lo+g.depth)
			if end-lo > 32 {
				end = lo + (end-lo)&^31
			}
			partA, partB := a.Slice(lo, end), b.Slice(lo, end)
			simd.HalvePairs(c.level, strips, backA, partA.f32, partA.Rows, m, partA.stride, outerHalvesPanel)
			t.Blocks, t.Add = up32(partA.Rows)/32, flag(lo > first)
			for i := range 2 {
				simd.TurnHalves(c.level, strips[i*outerHalvesPanel:], t.Blocks)
			}
			// Lines of the next slice are asked for across its pages: a's with the largest numbers, b's with the products.
			next := nextSlice(partA, partB, 1)
			simd.ColumnScales(c.level, scale, backB, partB.f32, partB.Rows, partB.Cols, partB.stride, next.at)
			t.Ahead, t.AheadApart = next.then, 8*t.Blocks*n
			if partB.Rows < 32 {
				zeroRows(last)
				c.activateSerial(last.Slice(0, partB.Rows).Columns(0, b.Cols), partB, After{})
				partB = last
			}
			t.B, t.BRow = partB.base(), 4*partB.stride
			t.Run(c.level)
			lo = end
		}
	})
	for _, m := range []Matrix{left, room, last} {
		c.Free(m)
	}
	c.addGroups(dst, sums, n, op)
	c.Free(sums)
}
