package tensor

import "starling/tensor/simd"

// Large gradients of weights of 25 to 48 columns by 33 to 48, as in cpu_matmul_outer_square.go, on a matrix unit that knows
// half precision (see simd.OuterSquareHalves).

// outerSquareHalves reports whether aᵀ·b, which goes by outer, goes this way: with fewer rows, beginning takes too long.
func (c *CPU) outerSquareHalves(a, b Matrix) bool {
	return c.halves() && outerSquare(a, b) && a.Rows >= 4*squareHalvesScaled
}

// Scales are taken of the first squareHalvesSample rows of squareHalvesScaled, and serve all of these.
const squareHalvesSample, squareHalvesScaled = 64, 1024

// newOuterSquareHalves has the sizes of aᵀ·b.
func newOuterSquareHalves(a, b Matrix) tallTall {
	g := newOuterSquare(a, b)
	g.depth = squareHalvesScaled / 4
	g.inGroups(a.Rows, g.m, g.n)
	return g
}

// tallTallOuterSquareHalves: dst = after(aᵀ · b).
func (c *CPU) tallTallOuterSquareHalves(dst, a, b Matrix, op MatMul) {
	g := newOuterSquareHalves(a, b)
	sums := c.apart(F32, g.groups, g.m*g.n)
	room := c.rooms(F32, simd.OuterSquareHalvesRoom)
	steps := make([]perCore[squareHalves], c.threads)
	c.run(g.groups, func(group, thread int) {
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		sum := dense(sums.row(group), g.m, g.n)
		zeroRows(sum)
		s := &steps[thread].of
		s.start(sum, a, b, room.row(thread))
		for ; lo < hi; lo += squareHalvesScaled {
			end := min(hi, lo+squareHalvesScaled)
			s.add(c, a.Slice(lo, end), b.Slice(lo, end))
		}
	})
	c.Free(room)
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}

// squareHalves is a core's step. Rows that are no whole unit are multiplied in float32, and so are those with a number too
// large for its column's scale and all that follow in the group: where rows differ so much, the next ones may as well.
type squareHalves struct {
	simd.OuterSquareHalves
	exact  simd.OuterSquare
	sum    Matrix
	spoilt bool
}

// start begins a group, with sums that are zeros.
func (s *squareHalves) start(sum, a, b Matrix, room []float32) {
	arow, brow, crow := 4*a.stride, 4*b.stride, 4*sum.stride
	*s = squareHalves{sum: sum, exact: simd.OuterSquare{Outer: simd.Outer{ARow: arow, BRow: brow, CRow: crow, Add: 1}},
		OuterSquareHalves: simd.OuterSquareHalves{C: sum.base(), ARow: arow, BRow: brow, CRow: crow, Left: a.Cols, Cols: b.Cols, Room: room}}
	s.Start()
}

// add adds rows that have scales of their own.
func (s *squareHalves) add(c *CPU, a, b Matrix) {
	whole := a.Rows / simd.OuterUnit * simd.OuterUnit
	if s.spoilt || whole == 0 {
		s.addExact(c, a, b)
		return
	}
	s.A, s.B, s.Units = a.base(), b.base(), whole/simd.OuterUnit
	s.Scale(c.level, min(whole, squareHalvesSample))
	s.spoilt = !s.Run(c.level)
	if s.spoilt {
		whole = 0
	}
	s.addExact(c, a.Slice(whole, a.Rows), b.Slice(whole, b.Rows))
}

// addExact adds rows in float32.
func (s *squareHalves) addExact(c *CPU, a, b Matrix) {
	for lo := 0; lo < a.Rows; lo += outerSquareRows {
		end := min(a.Rows, lo+outerSquareRows)
		s.exact.Rows = end - lo
		c.outerSquareSlice(&s.exact, s.sum, a.Slice(lo, end), b.Slice(lo, end))
	}
}
