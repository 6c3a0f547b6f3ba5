package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Gradients of weights of 13 to 32 columns by many, on the matrix unit in three parts (see simd.OuterThirds): the narrow
// side is split first, the wide one on the way, a slice of rows at a time.

// outerThirds reports whether aᵀ·b goes this way: with few columns of b, splitting a is too much of it. Up to 16 columns
// compare with cpu_matmul_outer.go, which packs nothing and is faster where rows are in cache, more with tiles in registers.
func (c *CPU) outerThirds(a, b Matrix) bool {
	if c.level < simd.AMX || a.dtype != F32 || b.dtype != F32 || a.Cols > 32 {
		return false
	}
	far := 4*b.Rows*b.stride >= farResult
	return b.Cols >= 256 && (a.Cols > 16 || a.Cols > 12 && far) || b.Cols >= 128 && a.Cols >= 24
}

// outerThirdsRoom is how many bytes each core takes.
func outerThirdsRoom(cols int) int {
	return 2*(outerThirdsDepth(cols)/32*simd.SplitBlock+simd.Room48) + 2*roomsApart
}

// outerThirdsDepth is how many rows a slice has at most. Rows are read by columns, each of another page: of 128 rows, and
// of 64 long ones, looking up pages takes longer than adding up the sums of more slices.
func outerThirdsDepth(cols int) int {
	if cols > 768 {
		return 32
	}
	return 64
}

// newOuterThirds has the sizes of aᵀ·b: sums are whole tiles.
func newOuterThirds(a, b Matrix) tallTall {
	g := tallTall{m: (a.Cols + 15) &^ 15, n: (b.Cols + 15) &^ 15, depth: outerThirdsDepth(b.Cols)}
	g.inGroups(a.Rows, g.m, g.n)
	return g
}

// tallTallOuterThirds: dst = after(aᵀ · b).
func (c *CPU) tallTallOuterThirds(dst, a, b Matrix, op MatMul) {
	g := newOuterThirds(a, b)
	n := g.n
	left, room := c.rooms(BF16, g.depth/32*simd.SplitBlock), c.rooms(BF16, simd.Room48)
	last := c.Scratch(F32, 32, n) // rows of b that are no whole block, and zeros
	sums := c.apart(F32, g.groups, g.m*n)
	steps := make([]perCore[simd.OuterThirds], c.threads)
	c.run(g.groups, func(group, thread int) {
		t, strip := &steps[thread].of, left.row16(thread)
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		if lo >= hi {
			clear(sums.row(group))
		}
		t.A, t.C, t.Rows, t.Cols = unsafe.Pointer(&strip[0]), unsafe.Pointer(&sums.row(group)[0]), a.Cols, b.Cols
		t.Room = unsafe.Pointer(&room.row16(thread)[0])
		for first := lo; lo < hi; {
			end := min(hi, lo+g.depth)
			if end-lo > 32 {
				end = lo + (end-lo)&^31
			}
			partA, partB := a.Slice(lo, end), b.Slice(lo, end)
			simd.SplitPairs(c.level, strip, partA.f32, partA.Rows, partA.Cols, partA.stride, g.depth/32*simd.SplitBlock)
			t.Blocks, t.Add = up32(partA.Rows)/32, flag(lo > first)
			simd.TurnTiles(c.level, strip, t.Blocks)
			t.Ahead, t.AheadApart = uintptr(partB.base())+uintptr(4*partB.Rows*partB.stride), 8*t.Blocks*n
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
	c.addPanels(dst, sums, n, op)
	c.Free(sums)
}
