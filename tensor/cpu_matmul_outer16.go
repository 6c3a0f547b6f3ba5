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
	sums := c.Scratch(F32, g.groups, g.m*g.n)
	room := c.rooms(F32, simd.OuterRoom)
	tails := c.rooms(BF16, simd.OuterUnit*(g.m+g.n))
	steps := make([]perCore[simd.Outer16], c.threads)
	c.run(g.groups, func(group, thread int) {
		t := &steps[thread].of
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		sum := dense(sums.row(group), g.m, g.n)
		zeroRows(sum)
		*t = simd.Outer16{C: sum.base(), CRow: 4 * g.n, Left: g.m, Cols: g.n, Room: room.row(thread), Add: 1}
		run := func(a, b Matrix) {
			if a.Rows > 0 {
				t.A, t.B, t.Units = a.base(), b.base(), a.Rows/simd.OuterUnit
				t.Run(c.level)
			}
		}
		whole := lo + (hi-lo)/simd.OuterUnit*simd.OuterUnit
		run(a.Slice(lo, whole), b.Slice(lo, whole))
		if whole < hi {
			tail := tails.row16(thread)
			run(wholeUnit(tail, a.Slice(whole, hi)), wholeUnit(tail[simd.OuterUnit*g.m:], b.Slice(whole, hi)))
		}
	})
	c.Free(tails)
	c.Free(room)
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}

// wholeUnit is rows, fewer than a unit, with rows of zeros after them.
func wholeUnit(mem []uint16, rows Matrix) Matrix {
	clear(mem[:simd.OuterUnit*rows.Cols])
	for i := range rows.Rows {
		copy(mem[i*rows.Cols:], rows.row16(i))
	}
	return Matrix{Rows: simd.OuterUnit, Cols: rows.Cols, dtype: BF16, stride: rows.Cols, b16: mem}
}
