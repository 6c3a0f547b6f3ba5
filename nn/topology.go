package nn

import (
	"math"
	"slices"

	"starling/graph"
	"starling/tensor"
)

// Topology is a graph made ready for aggregation on a device: the orientations
// and scales that the reductions need, each made once, when first asked for.
// Where the graph is symmetric one structure serves both directions.
//
// It may be a part of a larger graph: in-edges of some vertices (rows) from
// others (columns). Scales are by the degrees in the whole graph, which are then
// given.
type Topology struct {
	dev  tensor.Device
	in   *graph.CSR // in-edges of the rows
	cols int
	// degrees of rows and columns in the whole graph.
	rowDegrees, colDegrees *Degrees
	aligned                bool // row i and column i are the same vertex

	oneWay                  bool  // made to sum only: it has no edges transposed
	symmetric               *bool // whether every edge has its reverse; nil: to be found out
	plain, loopFree, looped *structure
	typed                   *typing // nil: a graph without types
	related                 *Related
	empty                   *tensor.Sparse
	featured                map[Form]*Edges
	rowScale, colScale      map[Kind]tensor.Matrix
}

// Degrees are in-degrees (sums of weights, in a weighted graph) in a whole graph.
type Degrees struct {
	All     []float64
	NoLoops []float64 // without self-loops; nil: the same
}

// Slice is the degrees of vertices lo to hi.
func (d *Degrees) Slice(lo, hi int) *Degrees {
	s := &Degrees{All: d.All[lo:hi]}
	if d.NoLoops != nil {
		s.NoLoops = d.NoLoops[lo:hi]
	}
	return s
}

// structure is a graph in both orientations.
type structure struct{ in, out *tensor.Sparse }

// NewTopology prepares a whole graph, which must stay as it is.
func NewTopology(dev tensor.Device, g *graph.CSR) *Topology {
	d := degreesOf(g)
	return NewPart(dev, g, g.Nodes(), d, d, true)
}

// NewPart prepares the in-edges of some vertices from cols others. aligned says
// that the vertices of the rows are the first of the columns; else none of them is
// among the columns. (Equal sizes do not tell: a part may have as many remote
// vertices as own ones.)
func NewPart(dev tensor.Device, in *graph.CSR, cols int, rows, columns *Degrees, aligned bool) *Topology {
	return &Topology{dev: dev, in: in, cols: cols, rowDegrees: rows, colDegrees: columns, aligned: aligned,
		rowScale: map[Kind]tensor.Matrix{}, colScale: map[Kind]tensor.Matrix{}, featured: map[Form]*Edges{}}
}

// SetSymmetric says whether every edge has its reverse, so that edges are not compared.
func (t *Topology) SetSymmetric(yes bool) { t.symmetric = &yes }

// ByColumn takes a topology apart: the edges from columns of each of n groups, whose
// sums add up to its own. They serve Sum and SumRows only. None of its rows is a column.
func (t *Topology) ByColumn(group []int, n int) []*Topology {
	rows := t.in.Nodes()
	out := make([]*Topology, n)
	for k := range out {
		part := *t // with the same scales, made once
		part.in, part.oneWay, part.plain, part.loopFree = &graph.CSR{Indptr: make([]int64, rows+1)}, true, nil, nil
		out[k] = &part
	}
	for v := range rows {
		for e := t.in.Indptr[v]; e < t.in.Indptr[v+1]; e++ {
			to := out[group[t.in.Indices[e]]].in
			to.Indices = append(to.Indices, t.in.Indices[e])
			if t.in.Weights != nil {
				to.Weights = append(to.Weights, t.in.Weights[e])
			}
		}
		for _, part := range out {
			part.in.Indptr[v+1] = int64(len(part.in.Indices))
		}
	}
	return out
}

// EdgeCount is the number of edges into rows lo to hi.
func (t *Topology) EdgeCount(lo, hi int) int64 { return t.in.Indptr[hi] - t.in.Indptr[lo] }

// Nodes is the number of rows.
func (t *Topology) Nodes() int { return t.in.Nodes() }

// structure returns the edges for a reduction: as they are, or, for Symmetric, without
// loops, since it counts one at every vertex, and with the scales of columns as values.
func (t *Topology) structure(k Kind) *structure {
	if t.plain == nil {
		t.plain = t.orient(t.in)
	}
	if k != Symmetric {
		return t.plain
	}
	if t.loopFree == nil {
		g, s := t.in, t.plain
		if t.aligned && hasLoops(g) {
			plain := *g
			plain.EdgeFeatures, plain.EdgeDim = nil, 0
			g = plain.WithoutSelfLoops()
			s = t.orient(g)
		}
		t.loopFree = t.scaled(s)
	}
	return t.loopFree
}

// scaled gives edges without weights the scales of their columns: four bytes per edge, read
// in order, where a scale for each column is a line from anywhere for each edge, a
// tenth to a third as much again as the source rows. Edges with weights have the scales apart.
func (t *Topology) scaled(s *structure) *structure {
	if t.in.Weights != nil {
		return s
	}
	made := &structure{in: t.withScales(s.in, t.columns(Symmetric))}
	switch {
	case s.out == s.in && t.rowDegrees == t.colDegrees:
		made.out = made.in
	case s.out != nil:
		made.out = t.withScales(s.out, t.rows(Symmetric))
	}
	return made
}

func (t *Topology) withScales(s *tensor.Sparse, scale tensor.Matrix) *tensor.Sparse {
	value := t.dev.New(t.dev.Type(), int(s.Entries()), 1)
	t.dev.GatherRows(value, scale, s.Columns())
	return s.WithValues(value)
}

// factors are the factors of an aggregation whose rows and columns have the given scales.
func (t *Topology) factors(r Reduction, rows, columns tensor.Matrix) tensor.Aggregate {
	op := tensor.Aggregate{RowScale: rows, ColScale: columns, Self: t.self(r)}
	if r.Kind == Symmetric && t.in.Weights == nil { // see scaled
		op.ColScale, op.SelfScale = tensor.Matrix{}, columns
	}
	return op
}

// orient puts a graph on the device in both directions.
func (t *Topology) orient(g *graph.CSR) *structure {
	n := g.Nodes()
	in := tensor.NewSparse(t.dev, n, t.cols, g.Indptr, g.Indices, g.Weights)
	if t.oneWay {
		return &structure{in: in}
	}
	if t.cols == n && g.Weights == nil && t.isSymmetric(g) {
		return &structure{in: in, out: in}
	}
	ptr, index, perm := t.transpose(g)
	if g.Weights == nil {
		perm = nil
	}
	return &structure{in: in, out: tensor.Transpose(t.dev, in, ptr, index, perm)}
}

func (t *Topology) isSymmetric(g *graph.CSR) bool {
	if t.symmetric != nil {
		return *t.symmetric
	}
	return g.Symmetric()
}

// dryRun is a device that counts memory and computes nothing: it never looks at edges,
// so that for it they need only be as many, and weights need not be drawn, nor kept.
type dryRun interface{ DryRun() }

// transpose turns g round, on all cores where it is square.
func (t *Topology) transpose(g *graph.CSR) (ptr []int64, index, perm []uint32) {
	square := t.cols == g.Nodes()
	if _, ok := t.dev.(dryRun); ok { // memory that is not touched
		perm = make([]uint32, len(g.Indices))
		if square && g.Mirrored() {
			return g.Indptr, g.Indices, perm
		}
		ptr = make([]int64, t.cols+1)
		ptr[t.cols] = int64(len(g.Indices))
		return ptr, make([]uint32, len(g.Indices)), perm
	}
	if square {
		back, perm := g.Transpose()
		return back.Indptr, back.Indices, perm
	}
	return graph.TransposeRows(t.cols, g.Indptr, g.Indices)
}

// attention returns the edges with one loop at every vertex, in both
// orientations, and for each edge backwards its place forwards. The vertices of
// the rows are the first of the columns.
func (t *Topology) attention() *structure {
	if t.looped == nil {
		plain := *t.in
		plain.EdgeFeatures, plain.EdgeDim = nil, 0
		g := plain.WithSelfLoops()
		in := tensor.NewSparse(t.dev, g.Nodes(), t.cols, g.Indptr, g.Indices, nil)
		ptr, index, perm := t.transpose(g)
		t.looped = &structure{in: in, out: tensor.Transpose(t.dev, in, ptr, index, perm)}
	}
	return t.looped
}

// Sum: dst = A·src, or dst += A·src.
func (t *Topology) Sum(r Reduction, dst, src tensor.Matrix, add bool) {
	t.SumRows(r, dst, src, 0, t.Nodes(), add)
}

// SumRows is rows lo to hi of Sum.
func (t *Topology) SumRows(r Reduction, dst, src tensor.Matrix, lo, hi int, add bool) {
	t.SumOf(r, dst.Slice(lo, hi), src, lo, add)
}

// SumOf is SumRows of the rows from lo on, of which there are as many as dst has.
func (t *Topology) SumOf(r Reduction, dst, src tensor.Matrix, lo int, add bool) {
	hi := lo + dst.Rows
	op := t.factors(r, part(t.rows(r.Kind), lo, hi), t.columns(r.Kind))
	op.First, op.Add = lo, add
	t.dev.Aggregate(dst, t.structure(r.Kind).in.Slice(lo, hi), src, op)
}

// part is rows lo to hi of a scale, if there is one.
func part(scale tensor.Matrix, lo, hi int) tensor.Matrix {
	if scale.IsZero() {
		return scale
	}
	return scale.Slice(lo, hi)
}

// SumGrad: dsrc = Aᵀ·ddst.
func (t *Topology) SumGrad(r Reduction, dsrc, ddst tensor.Matrix) {
	if t.self(r) == 0 || dsrc.Rows == ddst.Rows {
		t.SumGradRows(r, dsrc, ddst, 0, dsrc.Rows)
		return
	}
	op := t.factors(r, t.columns(r.Kind), t.rows(r.Kind))
	// Only the first rows of dsrc have a row of their own in ddst.
	self := op
	op.Self, self.Add = 0, true
	t.dev.Aggregate(dsrc, t.structure(r.Kind).out, ddst, op)
	n := ddst.Rows
	self.RowScale = part(self.RowScale, 0, n)
	t.dev.Aggregate(dsrc.Slice(0, n), t.noEdges(n), ddst, self)
}

// SumGradRows is rows lo to hi of SumGrad, where columns are as many as rows or none
// of them is a row.
func (t *Topology) SumGradRows(r Reduction, dsrc, ddst tensor.Matrix, lo, hi int) {
	t.SumGradOf(r, dsrc.Slice(lo, hi), ddst, lo)
}

// SumGradOf is SumGradRows of the rows from lo on, of which there are as many as dsrc has.
func (t *Topology) SumGradOf(r Reduction, dsrc, ddst tensor.Matrix, lo int) {
	hi := lo + dsrc.Rows
	op := t.factors(r, part(t.columns(r.Kind), lo, hi), t.rows(r.Kind))
	op.First = lo
	t.dev.Aggregate(dsrc, t.structure(r.Kind).out.Slice(lo, hi), ddst, op)
}

// noEdges is a graph of n vertices without any.
func (t *Topology) noEdges(n int) *tensor.Sparse {
	if t.empty == nil {
		t.empty = tensor.NewSparse(t.dev, n, n, make([]int64, n+1), nil, nil)
	}
	return t.empty
}

// Edges are all edges in some form, without weights. Of a looped form, rows are the
// first columns.
func (t *Topology) Edges(f Form) *Edges {
	if f.Related {
		return &Edges{Related: t.relatedEdges()}
	}
	if f.Featured {
		return t.withFeatures(f)
	}
	s := t.structure(Sum)
	if f.Looped {
		s = t.attention()
	}
	return &Edges{In: s.in, Out: s.out}
}

// withFeatures are the edges, with loops or without, and their features; each form is
// made once.
func (t *Topology) withFeatures(f Form) *Edges {
	if e, ok := t.featured[f]; ok {
		made := *e
		return &made
	}
	g := t.in
	if f.Looped {
		g = g.WithSelfLoops()
	}
	in := tensor.NewSparse(t.dev, g.Nodes(), t.cols, g.Indptr, g.Indices, nil)
	ptr, index, perm := t.transpose(g)
	e := &Edges{In: in, Out: tensor.Transpose(t.dev, in, ptr, index, perm),
		Features: t.dev.FromHost(len(g.Indices), g.EdgeDim, g.EdgeFeatures)}
	t.featured[f] = e
	made := *e
	return &made
}

// self is the weight of a vertex's own row under the reduction.
func (t *Topology) self(r Reduction) float64 {
	switch {
	case !t.aligned || r.Kind == Mean:
		return 0
	case r.Kind == Sum:
		return r.Self
	}
	return 1
}

// rows are the factors of a reduction for its rows, columns those for its columns.
func (t *Topology) rows(k Kind) tensor.Matrix {
	if k == Sum {
		return tensor.Matrix{}
	}
	return t.scales(t.rowScale, k, t.rowDegrees)
}

func (t *Topology) columns(k Kind) tensor.Matrix {
	switch {
	case k != Symmetric:
		return tensor.Matrix{}
	case t.rowDegrees == t.colDegrees:
		return t.rows(k)
	}
	return t.scales(t.colScale, k, t.colDegrees)
}

func (t *Topology) scales(made map[Kind]tensor.Matrix, k Kind, d *Degrees) tensor.Matrix {
	s, ok := made[k]
	if !ok {
		f := d.factors(k)
		s = t.dev.New(t.dev.Type(), len(f), 1)
		t.dev.Upload(s, f)
		made[k] = s
	}
	return s
}

// Factors are what a reduction multiplies each row with, for strategies that sum elsewhere;
// nil: nothing. Those of source rows are the same for Symmetric, and none otherwise.
func (d *Degrees) Factors(k Kind) []float64 {
	if k == Sum {
		return nil
	}
	return d.factors(k)
}

func (d *Degrees) factors(k Kind) []float64 {
	degrees := d.All
	if k == Symmetric && d.NoLoops != nil {
		degrees = d.NoLoops
	}
	f := make([]float64, len(degrees))
	for v, x := range degrees {
		switch k {
		case Mean:
			if f[v] = 1; x > 0 {
				f[v] = 1 / x
			}
		case MeanSelf:
			f[v] = 1 / (x + 1)
		case Symmetric:
			f[v] = 1 / math.Sqrt(x+1)
		}
	}
	return f
}

// degreesOf counts the in-edges (or adds their weights) of every vertex.
func degreesOf(g *graph.CSR) *Degrees {
	n := g.Nodes()
	d := &Degrees{All: make([]float64, n), NoLoops: make([]float64, n)}
	for v := range n {
		lo := g.Indptr[v]
		for i, u := range g.Neighbors(uint32(v)) {
			w := 1.0
			if g.Weights != nil {
				w = float64(g.Weights[lo+int64(i)])
			}
			d.All[v] += w
			if u != uint32(v) {
				d.NoLoops[v] += w
			}
		}
	}
	return d
}

func hasLoops(g *graph.CSR) bool {
	for v := range g.Nodes() {
		if slices.Contains(g.Neighbors(uint32(v)), uint32(v)) {
			return true
		}
	}
	return false
}
