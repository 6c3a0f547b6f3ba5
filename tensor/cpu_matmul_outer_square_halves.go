package tensor

import "starling/tensor/simd"

// Large gradients of weights of 25 to 48 columns by 33 to 48, as in cpu_matmul_outer_square.go, on a matrix unit that knows
// half precision (see simd.OuterSquareHalves).

// outerSquareHalves reports whether aᵀ·b, which goes by outer, goes this way if columns are even (evenColumns). Rows that are
// not far (32 MB were not) are as fast in float32.
func (c *CPU) outerSquareHalves(a, b Matrix) bool {
	return c.halves() && outerSquare(a, b) && 4*a.Rows*(a.stride+b.stride) >= 64<<20
}

// Scales are taken of the first squareHalvesSample rows of squareHalvesScaled, and serve all of these.
const squareHalvesSample, squareHalvesScaled = 64, 1024

// evenColumns reports whether scales of some rows may well serve others: at eight places, always the same, columns' largest
// numbers are of about one size. Where columns are zeros in most rows, they are not.
func (c *CPU) evenColumns(m Matrix) bool {
	const places, most = 8, 64
	room := make([]float32, 2*places*simd.OuterWidth)
	var largest [places][]float32 // to within a factor of two
	for i := range places {
		at := room[2*i*simd.OuterWidth:]
		largest[i] = at[simd.OuterWidth:]
		simd.StartScales(at[:simd.OuterWidth], largest[i][:simd.OuterWidth])
		lo := i * (m.Rows / places)
		simd.ColumnScales(c.level, at, largest[i], m.f32[lo*m.stride:], squareHalvesSample, m.Cols, m.stride, 0)
	}
	for j := range m.Cols {
		low, high := largest[0][j], largest[0][j]
		for _, x := range largest {
			low, high = min(low, x[j]), max(high, x[j])
		}
		if high > most*low {
			return false
		}
	}
	return true
}

// tallTallOuterSquareHalves: dst = after(aᵀ · b).
func (c *CPU) tallTallOuterSquareHalves(dst, a, b Matrix, op MatMul) {
	g := newOuterSquare(a, b)
	g.rows = (a.Rows/32/squareHalvesScaled + 1) * squareHalvesScaled // of up to 32 groups
	g.groups = (a.Rows + g.rows - 1) / g.rows
	room := c.rooms(F32, simd.OuterSquareHalvesRoom)
	steps := make([]perCore[squareHalves], c.threads)
	sums := c.groupSums(a.Rows, g, g.m*g.n, func(sum Matrix, lo, hi, thread int) {
		s := &steps[thread].of
		s.start(sum.Reshape(g.m, g.n), a, b, room.row(thread))
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
