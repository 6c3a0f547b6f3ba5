package tensor

import "starling/tensor/simd"

// Gradients of weights of a last layer of few classes in bfloat16, on the matrix unit, which takes rows of the wide side as
// they lie (see simd.OuterWide16). Pairing them first (cpu_matmul_amx.go) takes longer than they take to come from memory.

// outerWide16 reports whether aᵀ·b goes this way.
func (c *CPU) outerWide16(a, b Matrix) bool {
	return a.Cols <= simd.OuterLeft && b.Cols > simd.OuterWidth && a.contiguous()
}

// tallTallOuterWide16: dst = after(aᵀ · b). It does nothing, and returns false, where a sum is not finite, which may be
// its neighbour's fault.
func (c *CPU) tallTallOuterWide16(dst, a, b Matrix, op MatMul) bool {
	g := newOuter16(a, b)
	sums := c.Scratch(F32, g.groups, simd.OuterWideSums(g.n))
	room := c.Scratch(F32, c.threads, simd.OuterWideRoom)
	tails := c.Scratch(BF16, c.threads, simd.OuterUnit*(g.m+g.n))
	steps := make([]perCore[simd.OuterWide16], c.threads)
	c.run(g.groups, func(group, thread int) {
		t := &steps[thread].of
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		sum := sums.row(group)
		clear(sum)
		*t = simd.OuterWide16{C: sums.Slice(group, group+1).base(), Left: g.m, Cols: g.n, Room: room.row(thread)}
		run := func(a, b Matrix) {
			t.A, t.B, t.BRow, t.Units = a.base(), b.base(), 2*b.stride, a.Rows/simd.OuterUnit
			t.Run(c.level)
		}
		whole := lo + (hi-lo)/simd.OuterUnit*simd.OuterUnit
		if lo < whole {
			run(a.Slice(lo, whole), b.Slice(lo, whole))
		}
		if whole < hi {
			tail := tails.row16(thread)
			run(wholeUnit(tail, a.Slice(whole, hi)), wholeUnit(tail[simd.OuterUnit*g.m:], b.Slice(whole, hi)))
		}
	})
	c.Free(tails)
	c.Free(room)
	plain := c.Scratch(F32, g.m, g.n)
	finite := c.placeOuterWide(plain, sums)
	c.Free(sums)
	if finite {
		c.addGroups(dst, plain.Reshape(1, g.m*g.n), g.n, op)
	}
	c.Free(plain)
	return finite
}

// placeOuterWide adds the groups' sums in order, puts them in their places, and reports whether all are finite.
func (c *CPU) placeOuterWide(dst, sums Matrix) bool {
	all := sums.row(0)
	for group := 1; group < sums.Rows; group++ {
		simd.AddRows(c.level, all, sums.row(group), 1, sums.Cols, sums.Cols)
	}
	finite := true
	for i := range dst.Rows {
		row := dst.row(i)
		for j := range row {
			x := all[simd.OuterWidePlace(i, j, dst.Cols)]
			row[j] = x
			finite = finite && x-x == 0
		}
	}
	return finite
}
