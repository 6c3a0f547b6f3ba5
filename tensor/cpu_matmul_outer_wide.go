package tensor

import "starling/tensor/simd"

// Gradients of weights of a last layer of few classes: few columns by many. Rows of the wide side are read as they lie,
// from the first number to the last, and its sums stay in the nearest cache (see simd.OuterWide). Of bfloat16 they are
// tiles of the matrix unit (see simd.OuterWide16): pairing rows for it first (cpu_matmul_amx.go) takes longer than they
// take to come from memory.

// outerWide reports whether aᵀ·b, of one type, goes this way.
func outerWide(a, b Matrix) bool { return a.Cols <= simd.OuterLeft && b.Cols > simd.OuterWidth }

// outerFar reports whether aᵀ·b of float32, by 33 to 48 columns, goes this way, too: here rows that come from memory are
// asked for across pages. Nearer ones (48 MB were) take up to 1.2 times as long as with sums in registers.
func outerFar(a, b Matrix) bool {
	return a.Cols <= simd.OuterLeft && b.Cols > 32 && 4*b.Rows*b.stride >= 64<<20
}

// tallTallOuterWide: dst = after(aᵀ · b) of float32.
func (c *CPU) tallTallOuterWide(dst, a, b Matrix, op MatMul) {
	sums := c.groupSums(a.Rows, newOuter(a, b), simd.OuterWideSums(b.Cols), func(sum Matrix, lo, hi, _ int) {
		t := simd.OuterWide{A: a.Slice(lo, hi).base(), B: b.Slice(lo, hi).base(), C: sum.base(), ARow: 4 * a.stride,
			BRow: 4 * b.stride, Rows: hi - lo, Cols: b.Cols, Left: a.Cols}
		t.Run(c.level)
	})
	plain := c.placeOuterWide(a.Cols, b.Cols, sums, simd.OuterWidePlace)
	c.addGroups(dst, plain.Reshape(1, a.Cols*b.Cols), b.Cols, op)
	c.Free(plain)
}

// tallTallOuterWide16: dst = after(aᵀ · b) of bfloat16, of which a has no gaps. It does nothing, and returns false, where
// a sum is not finite, which may be its neighbour's fault.
func (c *CPU) tallTallOuterWide16(dst, a, b Matrix, op MatMul) bool {
	m, n := a.Cols, b.Cols
	steps := make([]perCore[simd.OuterWide16], c.threads)
	size := simd.OuterWide16Sums(n)
	sums := c.outerSums16(a, b, newOuter16(a, b), size, simd.OuterWide16Room, func(sum, a, b Matrix, room []float32, thread int) {
		t := &steps[thread].of
		*t = simd.OuterWide16{A: a.base(), B: b.base(), C: sum.base(), BRow: 2 * b.stride, Units: a.Rows / simd.OuterUnit,
			Left: m, Cols: n, Room: room}
		t.Run(c.level)
	})
	plain := c.placeOuterWide(m, n, sums, func(i, j int) int { return simd.OuterWide16Place(i, j, n) })
	fine := finite(plain.f32)
	if fine {
		c.addGroups(dst, plain.Reshape(1, m*n), n, op)
	}
	c.Free(plain)
	return fine
}

// placeOuterWide adds the groups' sums in order, puts each of the m x n where it belongs, and frees them.
func (c *CPU) placeOuterWide(m, n int, sums Matrix, place func(i, j int) int) Matrix {
	all := sums.row(0)
	for group := 1; group < sums.Rows; group++ {
		simd.AddRows(c.level, all, sums.row(group), 1, sums.Cols, sums.Cols)
	}
	plain := c.Scratch(F32, m, n)
	for i := range m {
		row := plain.row(i)
		for j := range row {
			row[j] = all[place(i, j)]
		}
	}
	c.Free(sums)
	return plain
}

// finite reports whether no number is infinite, and none not a number.
func finite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
