package devicetest

import (
	"fmt"
	"slices"

	"starling/tensor"
)

// edges is a sparse matrix, or the transpose of one.
type edges struct {
	rows, cols int
	ptr        []int64
	index      []uint32
	value      []float32
	perm       []uint32
}

func (g *edges) String() string {
	return fmt.Sprintf("%dx%d with %d entries", g.rows, g.cols, len(g.index))
}

// graph has few entries per row, none, or very many in one.
func (s *suite) graph(rows, cols int) *edges {
	g := &edges{rows: rows, cols: cols, ptr: []int64{0}}
	degree, hub := s.r.IntN(8), -1
	if rows > 0 && s.r.IntN(4) == 0 {
		hub = s.r.IntN(rows)
	}
	for i := range rows {
		n := s.r.IntN(degree + 1)
		if i == hub {
			n = 3000
		}
		for range n {
			if cols > 0 {
				g.index = append(g.index, uint32(s.r.IntN(cols)))
			}
		}
		g.ptr = append(g.ptr, int64(len(g.index)))
	}
	g.value = make([]float32, len(g.index))
	for e, v := range s.values(len(g.value)) {
		g.value[e] = float32(v)
	}
	return g
}

func (g *edges) sparse(d tensor.Device, values bool) *tensor.Sparse {
	if values {
		return tensor.NewSparse(d, g.rows, g.cols, g.ptr, g.index, g.value)
	}
	return tensor.NewSparse(d, g.rows, g.cols, g.ptr, g.index, nil)
}

func (g *edges) transposed() *edges {
	t := &edges{rows: g.cols, cols: g.rows, ptr: []int64{0}}
	type entry struct{ row, e uint32 }
	by := make([][]entry, g.cols)
	for i := range g.rows {
		for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
			by[g.index[e]] = append(by[g.index[e]], entry{uint32(i), uint32(e)})
		}
	}
	for _, list := range by {
		for _, x := range list {
			t.index, t.perm = append(t.index, x.row), append(t.perm, x.e)
		}
		t.ptr = append(t.ptr, int64(len(t.index)))
	}
	return t
}

// transpose is the transpose of g on a device.
func (g *edges) transpose(d tensor.Device) *tensor.Sparse {
	t := g.transposed()
	if t.perm == nil {
		t.perm = []uint32{}
	}
	return tensor.Transpose(d, g.sparse(d, false), t.ptr, t.index, t.perm)
}

// scale is a factor per row, or none.
func (s *suite) scale(n int) pair {
	if s.yes() {
		return pair{}
	}
	return s.param(n, 1)
}

func (s *suite) aggregate() {
	g := s.graph(s.size(80), s.size(80))
	t := s.rowType()
	width := s.size(300)
	if s.r.IntN(10) == 0 {
		width = 602
	}
	src, dst := s.numbers(t, g.cols, width), pair{}
	lo := s.r.IntN(g.rows + 1)
	hi := lo + s.r.IntN(g.rows-lo+1)
	dst = s.numbers(s.rowType(), hi-lo, src.dev.Cols)
	values := s.yes()
	op := tensor.Aggregate{Add: s.yes(), First: lo}
	if g.cols >= g.rows && s.yes() {
		op.Self = 0.5
	}
	refOp := op
	if row := s.scale(hi - lo); row.dev.Rows == hi-lo {
		op.RowScale, refOp.RowScale = row.dev, row.ref
	}
	if col := s.scale(g.cols); s.yes() {
		op.ColScale, refOp.ColScale = col.dev, col.ref
	} else if op.Self != 0 {
		op.SelfScale, refOp.SelfScale = col.dev, col.ref
	}
	s.describe("rows %d to %d of %v, values %v, %+v", lo, hi, g, values, op)
	s.dev.Aggregate(dst.dev, g.sparse(s.dev, values).Slice(lo, hi), src.dev, op)
	s.ref.Aggregate(dst.ref, g.sparse(s.ref, values).Slice(lo, hi), src.ref, refOp)
	s.same("sum", dst, 20)
	s.outside()
}

func (s *suite) aggregateMax() {
	g := s.graph(s.size(60), s.size(60))
	t, cols := s.rowType(), s.size(140)
	src, dst := s.numbers(t, g.cols, cols), s.numbers(s.rowType(), g.rows, cols)
	s.describe("%v of %d columns", g, cols)
	arg := [2]tensor.Matrix{s.dev.Scratch(tensor.U32, g.rows, cols), s.ref.Scratch(tensor.U32, g.rows, cols)}
	s.what = append(s.what, arg[0])
	s.dev.AggregateMax(dst.dev, tensor.IndexIn(arg[0]), g.sparse(s.dev, false), src.dev)
	s.ref.AggregateMax(dst.ref, tensor.IndexIn(arg[1]), g.sparse(s.ref, false), src.ref)
	s.same("maximum", dst, 0)
	got, want := make([]uint32, g.rows*cols), make([]uint32, g.rows*cols)
	s.dev.Download(got, arg[0])
	s.ref.Download(want, arg[1])
	if !slices.Equal(got, want) {
		s.Fatalf("%s: maxima come from other rows", s.label)
	}
	ddst, dsrc := s.numbers(t, g.rows, cols), s.numbers(t, g.cols, cols)
	s.dev.AggregateMaxGrad(dsrc.dev, g.transpose(s.dev), ddst.dev, tensor.IndexIn(arg[0]))
	s.ref.AggregateMaxGrad(dsrc.ref, g.transpose(s.ref), ddst.ref, tensor.IndexIn(arg[1]))
	s.same("gradient", dsrc, 4)
	s.outside()
}

func (s *suite) headDot() {
	heads, width := 1+s.r.IntN(9), s.some(40)
	rows, n := s.size(60), 1+s.r.IntN(3)
	z := s.numbers(s.rowType(), rows, heads*width)
	dz := s.numbers(z.dev.Type(), rows, heads*width)
	dots, refDots := make([]tensor.HeadDot, n), make([]tensor.HeadDot, n)
	var scores, das []pair
	for i := range dots {
		few := rows
		if s.yes() {
			few = s.r.IntN(rows + 1)
		}
		score, a, da := s.param(few, heads), s.param(1, heads*width), s.param(1, heads*width)
		dots[i], refDots[i] = tensor.HeadDot{Score: score.dev, A: a.dev, DA: da.dev}, tensor.HeadDot{Score: score.ref,
			A: a.ref, DA: da.ref}
		scores, das = append(scores, score), append(das, da)
	}
	s.describe("%d dots of %v, %d heads", n, z.dev, heads)
	s.dev.HeadDotGrad(dz.dev, z.dev, dots...)
	s.ref.HeadDotGrad(dz.ref, z.ref, refDots...)
	s.same("dz", dz, 16)
	for _, da := range das {
		s.same("da", da, 20)
	}
	for i := range dots {
		dots[i].DA, refDots[i].DA = tensor.Matrix{}, tensor.Matrix{}
	}
	s.dev.HeadDot(z.dev, dots...)
	s.ref.HeadDot(z.ref, refDots...)
	for _, score := range scores {
		s.same("score", score, 20)
	}
	s.outside()
}

// attention is the settings of an attention layer over g.
func (s *suite) attention(g *edges, heads int) (op, refOp tensor.Attention) {
	op = tensor.Attention{Heads: heads, Slope: 0.2}
	refOp = op
	op.Dropout, refOp.Dropout = s.dropout(g.rows)
	if s.yes() {
		op.SrcIDs, refOp.SrcIDs = s.index(s.ids(g.cols))
	}
	return op, refOp
}

func (s *suite) attend() {
	g := s.graph(s.size(50), s.some(50))
	heads, width, t := 1+s.r.IntN(9), s.some(40), s.rowType()
	z, dst := s.numbers(t, g.cols, heads*width), s.numbers(t, g.rows, heads*width)
	left, right, stat := s.param(g.cols, heads), s.param(g.rows, heads), s.param(g.rows, 2*heads)
	op, refOp := s.attention(g, heads)
	var dedge pair
	if s.r.IntN(3) == 0 {
		e, d := s.param(len(g.index), heads), s.param(len(g.index), heads)
		op.Edge, refOp.Edge, op.DEdge, refOp.DEdge, dedge = e.dev, e.ref, d.dev, d.ref, d
	}
	s.describe("%v, %d heads of %d %v, dropout %g, edges %v", g, heads, width, t, op.Dropout.P, !dedge.dev.IsZero())
	s.dev.Attend(dst.dev, stat.dev, g.sparse(s.dev, false), z.dev, left.dev, right.dev, op)
	s.ref.Attend(dst.ref, stat.ref, g.sparse(s.ref, false), z.ref, left.ref, right.ref, refOp)
	s.same("attention", dst, 40)
	ddst, dz := s.numbers(t, g.rows, heads*width), s.numbers(t, g.cols, heads*width)
	dleft, dright := s.param(g.cols, heads), s.param(g.rows, heads)
	x := download(s.dev, dst.dev) // what the backward pass reads is rounded alike
	s.ref.Upload(dst.ref, x)
	s.dev.AttendGrad(dz.dev, dleft.dev, dright.dev, g.sparse(s.dev, false), g.transpose(s.dev), z.dev, left.dev,
		right.dev, stat.dev, dst.dev, ddst.dev, op)
	s.ref.AttendGrad(dz.ref, dleft.ref, dright.ref, g.sparse(s.ref, false), g.transpose(s.ref), z.ref, left.ref,
		right.ref, stat.ref, dst.ref, ddst.ref, refOp)
	each := 200 + float64(len(g.index)/max(g.cols, 1)) // terms of a sum, more where few sources have all edges
	s.same("dz", dz, each)
	s.same("dleft", dleft, each*float64(width))
	s.same("dright", dright, 200*float64(width))
	if !dedge.dev.IsZero() {
		s.same("dedge", dedge, 20*float64(width))
	}
	s.outside()
}

func (s *suite) rows() {
	t, cols, n := s.rowType(), s.size(300), s.some(50)
	src := s.numbers(t, n, cols)
	list := make([]uint32, s.size(2*n)) // few are named often: sums are rounded each time
	for k := range list {
		list[k] = uint32(s.r.IntN(n))
	}
	at, refAt := s.index(list)
	dst, sum := s.numbers(t, len(list), cols), s.numbers(t, n, cols)
	s.describe("%d of %v", len(list), src.dev)
	s.dev.GatherRows(dst.dev, src.dev, at)
	s.ref.GatherRows(dst.ref, src.ref, refAt)
	s.same("gathered", dst, 0)
	s.dev.ScatterAdd(sum.dev, dst.dev, at)
	s.ref.ScatterAdd(sum.ref, dst.ref, refAt)
	s.same("added", sum, 20)
	s.outside()
}

func (s *suite) dropoutValues() {
	g := s.graph(s.size(60), s.size(60))
	values, transposed := s.yes(), s.yes()
	vertices := g.rows
	if transposed {
		vertices = g.cols
	}
	d, e := s.dropout(vertices)
	dst := s.param(len(g.index), 1)
	s.describe("%v, values %v, transposed %v, %g", g, values, transposed, d.P)
	s.dev.DropoutValues(dst.dev, g.sparse(s.dev, values), d, transposed)
	s.ref.DropoutValues(dst.ref, g.sparse(s.ref, values), e, transposed)
	s.same("values", dst, 0)
}
