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
	steps := make([]perCore[simd.OuterSquare16], c.threads)
	sums := c.outerSums16(a, b, g, g.m*g.n, simd.OuterSquare16Room, func(sum, a, b Matrix, room []float32, thread int) {
		t := &steps[thread].of
		*t = simd.OuterSquare16{A: a.base(), B: b.base(), C: sum.base(), ARow: 2 * a.stride, BRow: 2 * b.stride, CRow: 4 * g.n,
			Units: a.Rows / simd.OuterUnit, Left: a.Cols, Cols: b.Cols, Room: room}
		t.Run(c.level)
	})
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}
