package tensor

import "starling/tensor/simd"

// Gradients of weights of few columns by few of bfloat16, on the matrix unit (see simd.Outer16). In slices that are
// transposed, paired and multiplied one after the other (cpu_matmul_amx.go) what is packed leaves the nearest cache.

// outer16 reports whether aᵀ·b goes this way.
func (c *CPU) outer16(a, b Matrix) bool {
	return a.Cols <= min(simd.OuterLeft, b.Cols) && b.Cols <= simd.OuterWidth && a.contiguous() && b.contiguous()
}

// newOuter16 has the sizes of aᵀ·b.
func newOuter16(a, b Matrix) tallTall {
	g := tallTall{m: a.Cols, n: b.Cols, depth: 16 * simd.OuterUnit}
	g.inGroups(a.Rows, g.m, g.n)
	return g
}

// tallTallOuter16: dst = after(aᵀ · b).
func (c *CPU) tallTallOuter16(dst, a, b Matrix, op MatMul) {
	g := newOuter16(a, b)
	steps := make([]perCore[simd.Outer16], c.threads)
	sums := c.outerSums16(a, b, g, g.m*g.n, simd.OuterRoom, func(sum, a, b Matrix, room []float32, thread int) {
		t := &steps[thread].of
		*t = simd.Outer16{A: a.base(), B: b.base(), C: sum.base(), CRow: 4 * g.n, Units: a.Rows / simd.OuterUnit,
			Left: a.Cols, Cols: b.Cols, Room: room, Add: 1}
		t.Run(c.level)
	})
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}

// outerSums16 has add make so many sums of each group of rows, whole units at a time, with a room for each core.
func (c *CPU) outerSums16(a, b Matrix, g tallTall, size, room int,
	add func(sum, a, b Matrix, room []float32, thread int)) Matrix {
	rooms := c.rooms(F32, room)
	tails := c.rooms(BF16, simd.OuterUnit*(a.Cols+b.Cols))
	sums := c.groupSums(a.Rows, g, size, func(sum Matrix, lo, hi, thread int) {
		inUnits(a.Slice(lo, hi), b.Slice(lo, hi), tails.row16(thread), func(a, b Matrix) {
			add(sum, a, b, rooms.row(thread), thread)
		})
	})
	c.Free(tails)
	c.Free(rooms)
	return sums
}

// inUnits calls run with all whole units of a's and b's rows, and with those that are left, which tail has room for.
func inUnits(a, b Matrix, tail []uint16, run func(a, b Matrix)) {
	whole := a.Rows / simd.OuterUnit * simd.OuterUnit
	if whole > 0 {
		run(a.Slice(0, whole), b.Slice(0, whole))
	}
	if whole < a.Rows {
		run(wholeUnit(tail, a.Slice(whole, a.Rows)), wholeUnit(tail[simd.OuterUnit*a.Cols:], b.Slice(whole, b.Rows)))
	}
}

// wholeUnit is rows, fewer than a unit, with rows of zeros after them.
func wholeUnit(mem []uint16, rows Matrix) Matrix {
	clear(mem[:simd.OuterUnit*rows.Cols])
	for i := range rows.Rows {
		copy(mem[i*rows.Cols:], rows.row16(i))
	}
	return Matrix{Rows: simd.OuterUnit, Cols: rows.Cols, dtype: BF16, stride: rows.Cols, b16: mem}
}
