package devicetest

import "starling/tensor"

// edgeInput is features of edges and their linear map; none where dim is 0.
func (s *suite) edgeInput(g *edges, dim, width int, bias bool) (x, y tensor.EdgeInput, grads []pair) {
	if dim == 0 {
		return x, y, nil
	}
	f, w, dw := s.param(len(g.index), dim), s.param(dim, width), s.param(dim, width)
	x, y = tensor.EdgeInput{Features: f.dev, Weight: w.dev, DWeight: dw.dev}, tensor.EdgeInput{Features: f.ref,
		Weight: w.ref, DWeight: dw.ref}
	grads = []pair{dw}
	if bias {
		b, db := s.param(1, width), s.param(1, width)
		x.Bias, y.Bias, x.DBias, y.DBias = b.dev, b.ref, db.dev, db.ref
		grads = append(grads, db)
	}
	return x, y, grads
}

func (s *suite) dynamicAttend() {
	g := s.graph(s.size(40), s.some(40))
	heads, width, t := 1+s.r.IntN(5), s.some(30), s.rowType()
	cols := heads * width
	z, right, a, alpha := s.numbers(t, g.cols, cols), s.numbers(t, g.rows, cols), s.param(1,
		cols), s.param(len(g.index), heads)
	small(s, a)
	dst, ddst := s.numbers(t, g.rows, cols), s.numbers(t, g.rows, cols)
	op, refOp := s.attention(g, heads)
	x, y, grads := s.edgeInput(g, s.r.IntN(4), cols, false)
	s.describe("%v, %d heads of %d %v, dropout %g", g, heads, width, t, op.Dropout.P)
	s.dev.DynamicAttend(dst.dev, alpha.dev, g.sparse(s.dev, false), z.dev, right.dev, a.dev, op, x)
	s.ref.DynamicAttend(dst.ref, alpha.ref, g.sparse(s.ref, false), z.ref, right.ref, a.ref, refOp, y)
	s.same("attention", dst, 40)
	s.same("coefficients", alpha, 1)
	dz, dright, da := s.numbers(t, g.cols, cols), s.numbers(t, g.rows, cols), s.param(1, cols)
	s.ref.Upload(dst.ref, download(s.dev, dst.dev))
	s.dev.DynamicAttendGrad(dz.dev, dright.dev, da.dev, g.sparse(s.dev, false), g.transpose(s.dev), z.dev, right.dev,
		a.dev, alpha.dev, dst.dev, ddst.dev, op, x)
	s.ref.DynamicAttendGrad(dz.ref, dright.ref, da.ref, g.sparse(s.ref, false), g.transpose(s.ref), z.ref, right.ref,
		a.ref, alpha.ref, dst.ref, ddst.ref, refOp, y)
	s.same("dz", dz, 200*float64(width))
	s.same("dright", dright, 200*float64(width))
	s.same("da", da, 200*float64(width))
	for _, d := range grads {
		s.same("gradient of the edges' map", d, 200*float64(width))
	}
	s.outside()
}

func (s *suite) edgeDot() {
	g := s.graph(s.size(50), s.some(50))
	heads, width, t := 1+s.r.IntN(5), s.some(30), s.rowType()
	cols := heads * width
	q, k := s.numbers(t, g.rows, cols), s.numbers(t, g.cols, cols)
	score := s.param(len(g.index), heads)
	lo := s.r.IntN(g.rows + 1)
	s.describe("rows from %d of %v, %d heads of %d %v", lo, g, heads, width, t)
	s.dev.EdgeDot(score.dev, g.sparse(s.dev, false).Slice(lo, g.rows), q.dev.Slice(lo, g.rows), k.dev)
	s.ref.EdgeDot(score.ref, g.sparse(s.ref, false).Slice(lo, g.rows), q.ref.Slice(lo, g.rows), k.ref)
	s.same("products", score, 4*float64(width))
	dq, dk := s.numbers(t, g.rows, cols), s.numbers(t, g.cols, cols)
	ds := s.param(len(g.index), heads)
	s.dev.EdgeDotGrad(dq.dev, dk.dev, g.sparse(s.dev, false), g.transpose(s.dev), q.dev, k.dev, ds.dev)
	s.ref.EdgeDotGrad(dq.ref, dk.ref, g.sparse(s.ref, false), g.transpose(s.ref), q.ref, k.ref, ds.ref)
	s.same("dq", dq, 200)
	s.same("dk", dk, 200+float64(len(g.index)/max(g.cols, 1)))
	s.outside()
}

// joinAttend: the softmax over two graphs' entries, one after the other, is that over both.
func (s *suite) joinAttend() {
	rows := s.size(50)
	heads, width, t := 1+s.r.IntN(5), s.some(30), s.rowType()
	dst, stat := s.numbers(t, rows, heads*width), s.param(rows, 2*heads)
	s.dev.Zero(dst.dev)
	s.ref.Zero(dst.ref)
	s.dev.Zero(stat.dev)
	s.ref.Zero(stat.ref)
	for range 1 + s.r.IntN(3) {
		g := s.graph(rows, s.some(50))
		z, part := s.numbers(t, g.cols, heads*width), s.numbers(t, rows, heads*width)
		left, right, partStat := s.param(g.cols, heads), s.param(rows, heads), s.param(rows, 2*heads)
		s.describe("%v, %d heads of %d %v", g, heads, width, t)
		op := tensor.Attention{Heads: heads, Slope: 0.2}
		s.dev.Attend(part.dev, partStat.dev, g.sparse(s.dev, false), z.dev, left.dev, right.dev, op)
		s.ref.Attend(part.ref, partStat.ref, g.sparse(s.ref, false), z.ref, left.ref, right.ref, op)
		s.dev.JoinAttend(dst.dev, stat.dev, g.sparse(s.dev, false), part.dev, partStat.dev)
		s.ref.JoinAttend(dst.ref, stat.ref, g.sparse(s.ref, false), part.ref, partStat.ref)
		s.same("attention", dst, 40)
		s.same("statistics", stat, 8)
	}
	s.outside()
}

// small makes a parameter so small that scores stay of the size of 1.
func small(s *suite, p pair) {
	x := download(s.ref, p.ref)
	for i := range x {
		x[i] /= 16
	}
	s.dev.Upload(p.dev, x)
	s.ref.Upload(p.ref, x)
}

func (s *suite) filmMean() {
	g := s.graph(s.size(60), s.size(60))
	t, cols, add := s.rowType(), s.size(140), s.yes()
	z, film, dst := s.numbers(t, g.cols, cols), s.numbers(t, g.rows, 2*cols), s.numbers(t, g.rows, cols)
	s.describe("%v of %d columns %v, add %v", g, cols, t, add)
	s.dev.FilmMean(dst.dev, g.sparse(s.dev, false), z.dev, film.dev, add)
	s.ref.FilmMean(dst.ref, g.sparse(s.ref, false), z.ref, film.ref, add)
	s.same("mean", dst, 60)
	dz, dfilm, ddst := s.numbers(t, g.cols, cols), s.numbers(t, g.rows, 2*cols), s.numbers(t, g.rows, cols)
	s.dev.FilmMeanGrad(dz.dev, dfilm.dev, g.sparse(s.dev, false), g.transpose(s.dev), z.dev, film.dev, ddst.dev)
	s.ref.FilmMeanGrad(dz.ref, dfilm.ref, g.sparse(s.ref, false), g.transpose(s.ref), z.ref, film.ref, ddst.ref)
	s.same("dz", dz, 200)
	s.same("dfilm", dfilm, 60)
	s.outside()
}

func (s *suite) edgeSum() {
	g := s.graph(s.size(50), s.size(50))
	t, cols := s.rowType(), s.some(100)
	src, dst := s.numbers(t, g.cols, cols), s.numbers(t, g.rows, cols)
	x, y, grads := s.edgeInput(g, 1+s.r.IntN(5), cols, s.yes())
	s.describe("%v of %d columns %v", g, cols, t)
	s.dev.EdgeSum(dst.dev, g.sparse(s.dev, false), src.dev, x)
	s.ref.EdgeSum(dst.ref, g.sparse(s.ref, false), src.ref, y)
	s.same("sum", dst, 200)
	dsrc, ddst := s.numbers(t, g.cols, cols), s.numbers(t, g.rows, cols)
	s.dev.EdgeSumGrad(dsrc.dev, g.sparse(s.dev, false), g.transpose(s.dev), src.dev, ddst.dev, x)
	s.ref.EdgeSumGrad(dsrc.ref, g.sparse(s.ref, false), g.transpose(s.ref), src.ref, ddst.ref, y)
	s.same("dsrc", dsrc, 200)
	for _, d := range grads {
		s.same("gradient of the edges' map", d, 2000)
	}
	s.outside()
}
