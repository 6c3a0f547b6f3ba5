package tensor

import "starling/tensor/simd"

// Gradients of weights of 9 to 48 columns by up to 48 of bfloat16, on the matrix unit (see simd.OuterSquare16). In slices
// that are transposed, paired and multiplied one after the other (cpu_matmul_amx.go) what is packed leaves the nearest cache,
// and rows are asked for in order.

// outerSquare16 reports whether aᵀ·b, of bfloat16, goes this way.
func outerSquare16(a, b Matrix) bool {
	return a.Cols > simd.OuterLeft && a.Cols <= b.Cols && b.Cols <= simd.OuterWidth
}

// newOuterSquare16 has the sizes of aᵀ·b: sums are whole tiles.
func newOuterSquare16(a, b Matrix) tallTall {
	g := tallTall{m: (a.Cols + 15) &^ 15, n: (b.Cols + 15) &^ 15, depth: 16 * simd.OuterUnit}
	g.inGroups(a.Rows, g.m, g.n)
	return g
}

// tallTallOuterSquare16: dst = after(aᵀ · b).
func (c *CPU) tallTallOuterSquare16(dst, a, b Matrix, op MatMul) {
	g := newOuterSquare16(a, b)
	sums := c.apart(F32, g.groups, g.m*g.n)
	room := c.rooms(F32, simd.OuterSquare16Room)
	tails := c.rooms(BF16, simd.OuterUnit*(a.Cols+b.Cols))
	steps := make([]perCore[simd.OuterSquare16], c.threads)
	c.run(g.groups, func(group, thread int) {
		t := &steps[thread].of
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		sum := dense(sums.row(group), g.m, g.n)
		zeroRows(sum)
		*t = simd.OuterSquare16{C: sum.base(), CRow: 4 * g.n, Left: a.Cols, Cols: b.Cols, Room: room.row(thread)}
		inUnits(a.Slice(lo, hi), b.Slice(lo, hi), tails.row16(thread), func(a, b Matrix) {
			t.A, t.B, t.ARow, t.BRow, t.Units = a.base(), b.base(), 2*a.stride, 2*b.stride, a.Rows/simd.OuterUnit
			t.Run(c.level)
		})
	})
	c.Free(tails)
	c.Free(room)
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}
