package devicetest

import "starling/tensor"

// saturatedGraph has rows of one entry, and rows in which one entry's source is loud and those
// of all others are quiet: the first half of the sources are loud.
func (s *suite) saturatedGraph(rows, cols int) *edges {
	g := &edges{rows: rows, cols: cols, ptr: []int64{0}}
	loud := cols / 2
	for i := range rows {
		n := s.r.IntN(20)
		if i%3 == 0 {
			n = 1
		}
		at := s.r.IntN(max(1, n))
		for k := range n {
			j := loud + s.r.IntN(cols-loud)
			if k == at {
				j = s.r.IntN(loud)
			}
			g.index = append(g.index, uint32(j))
		}
		g.ptr = append(g.ptr, int64(len(g.index)))
	}
	return g
}

// reals are normal numbers, whose sums are rounded.
func (s *suite) reals(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = s.r.NormFloat64()
	}
	return x
}

// volume is above 0 for loud sources and below for quiet ones, times size.
func (s *suite) volume(g *edges, j int, size float64) float64 {
	if j < g.cols/2 {
		return size * (1 + s.r.Float64())
	}
	return -size * (1 + s.r.Float64())
}

// zeros fails unless all numbers of a matrix are exactly zero.
func (s *suite) zeros(what string, p pair) {
	s.Helper()
	for i, x := range download(s.dev, p.dev) {
		if x != 0 {
			s.Fatalf("%s: %s: number %d of row %d is %g, want 0", s.label, what, i%p.dev.Cols, i/p.dev.Cols, x)
		}
	}
}

// saturated: coefficients are 1 or 0, so gradients of scores are exactly zero, whatever the order
// of sums.
func (s *suite) saturated() {
	g := s.saturatedGraph(s.some(60), 2+s.size(60))
	heads, width, t := 1+s.r.IntN(9), s.some(90), s.rowType()
	cols := heads * width
	z, dst := s.of(t, g.cols, cols, s.reals(g.cols*cols)), s.numbers(t, g.rows, cols)
	left, right, stat := s.param(g.cols, heads), s.param(g.rows, heads), s.param(g.rows, 2*heads)
	x := make([]float64, g.cols*heads)
	for k := range x {
		x[k] = s.volume(g, k/heads, 1e4)
	}
	s.dev.Upload(left.dev, x)
	op, _ := s.attention(g, heads)
	var dedge pair
	if s.r.IntN(3) == 0 {
		e := s.param(len(g.index), heads)
		dedge = s.param(len(g.index), heads)
		op.Edge, op.DEdge = e.dev, dedge.dev
	}
	s.describe("%v, %d heads of %d %v, dropout %g, edges %v", g, heads, width, t, op.Dropout.P, !dedge.dev.IsZero())
	s.dev.Attend(dst.dev, stat.dev, g.sparse(s.dev, false), z.dev, left.dev, right.dev, op)
	ddst, dz := s.of(t, g.rows, cols, s.reals(g.rows*cols)), s.numbers(t, g.cols, cols)
	dleft, dright := s.param(g.cols, heads), s.param(g.rows, heads)
	s.dev.AttendGrad(dz.dev, dleft.dev, dright.dev, g.sparse(s.dev, false), g.transpose(s.dev), z.dev, left.dev,
		right.dev, stat.dev, dst.dev, ddst.dev, op)
	s.zeros("dleft", dleft)
	s.zeros("dright", dright)
	if !dedge.dev.IsZero() {
		s.zeros("dedge", dedge)
	}
	s.outside()
}

// saturatedDynamic is saturated for scores of sums of rows: the first column of a head decides.
func (s *suite) saturatedDynamic() {
	g := s.saturatedGraph(s.some(40), 2+s.size(40))
	heads, width, t := 1+s.r.IntN(5), s.some(60), s.rowType()
	cols := heads * width
	x, w := s.reals(g.cols*cols), s.reals(cols)
	for k := 0; k < len(x); k += width {
		x[k] = s.volume(g, k/cols, 1e2)
	}
	for k := 0; k < cols; k += width {
		w[k] = 1e2
	}
	z, right, a := s.of(t, g.cols, cols, x), s.numbers(t, g.rows, cols), s.param(1, cols)
	s.dev.Upload(a.dev, w)
	alpha, dst := s.param(len(g.index), heads), s.numbers(t, g.rows, cols)
	op, _ := s.attention(g, heads)
	s.describe("%v, %d heads of %d %v, dropout %g", g, heads, width, t, op.Dropout.P)
	s.dev.DynamicAttend(dst.dev, alpha.dev, g.sparse(s.dev, false), z.dev, right.dev, a.dev, op, tensor.EdgeInput{})
	ddst, dz := s.of(t, g.rows, cols, s.reals(g.rows*cols)), s.numbers(t, g.cols, cols)
	dright, da := s.numbers(t, g.rows, cols), s.param(1, cols)
	s.dev.Upload(da.dev, make([]float64, cols))
	s.dev.DynamicAttendGrad(dz.dev, dright.dev, da.dev, g.sparse(s.dev, false), g.transpose(s.dev), z.dev, right.dev,
		a.dev, alpha.dev, dst.dev, ddst.dev, op, tensor.EdgeInput{})
	s.zeros("dright", dright)
	s.zeros("da", da)
	s.outside()
}
