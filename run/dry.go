package run

import (
	"starling/nn"
	"starling/tensor"
)

// dry is a device that makes and frees matrices and computes nothing. A model
// run on it takes exactly the memory of a real epoch, on paper: the pages are
// mapped but never touched.
type dry struct {
	*tensor.CPU
	rows tensor.DType
	f64  bool

	now, most map[int64]int64 // by size: blocks in use, and the most at once
}

func newDry(rows tensor.DType) *dry {
	return &dry{CPU: tensor.NewCPU(1), rows: rows, f64: rows == tensor.F64, now: map[int64]int64{}, most: map[int64]int64{}}
}

// footprint is the memory a device that keeps freed blocks for reuse by size
// ends up with.
func (d *dry) footprint() (bytes int64) {
	for size, n := range d.most {
		bytes += size * n
	}
	return bytes
}

func (d *dry) Type() tensor.DType {
	if d.f64 {
		return tensor.F64
	}
	return tensor.F32
}

func (d *dry) RowType(t tensor.DType) tensor.DType {
	if d.f64 {
		return tensor.F64
	}
	return d.CPU.RowType(t)
}

func (d *dry) New(t tensor.DType, rows, cols int) tensor.Matrix { return d.Scratch(t, rows, cols) }

func (d *dry) Scratch(t tensor.DType, rows, cols int) tensor.Matrix {
	m := d.CPU.Scratch(t, rows, cols)
	size := m.Bytes()
	d.now[size]++
	d.most[size] = max(d.most[size], d.now[size])
	return m
}

func (d *dry) Free(m tensor.Matrix) {
	d.now[m.Bytes()]--
	d.CPU.Free(m)
}

func (d *dry) SparseTranspose(s *tensor.Sparse, ptr []int64, index []uint32, _ []uint32) *tensor.Sparse {
	return d.SparseMatrix(s.Cols, s.Rows, ptr, index, nil)
}

func (*dry) MatMul(_, _, _ tensor.Matrix, _ tensor.MatMul)                                       {}
func (*dry) ColumnSum(_, _ tensor.Matrix, _ bool)                                                {}
func (*dry) Aggregate(_ tensor.Matrix, _ *tensor.Sparse, _ tensor.Matrix, _ tensor.Aggregate)    {}
func (*dry) AggregateMax(_ tensor.Matrix, _ tensor.Index, _ *tensor.Sparse, _ tensor.Matrix)     {}
func (*dry) AggregateMaxGrad(_ tensor.Matrix, _ *tensor.Sparse, _ tensor.Matrix, _ tensor.Index) {}
func (*dry) HeadDot(_ tensor.Matrix, _ ...tensor.HeadDot)                                        {}
func (*dry) HeadDotGrad(_, _ tensor.Matrix, _ ...tensor.HeadDot)                                 {}
func (*dry) GatherRows(_, _ tensor.Matrix, _ tensor.Index)                                       {}
func (*dry) ScatterAdd(_, _ tensor.Matrix, _ tensor.Index)                                       {}
func (*dry) DropoutValues(_ tensor.Matrix, _ *tensor.Sparse, _ tensor.Dropout, _ bool)           {}
func (*dry) Zero(tensor.Matrix)                                                                  {}
func (*dry) Copy(_, _ tensor.Matrix)                                                             {}
func (*dry) Combine(_ tensor.Matrix, _ float64, _ tensor.Matrix, _ float64, _ tensor.Matrix)     {}
func (*dry) Multiply(_, _, _ tensor.Matrix)                                                      {}
func (*dry) Activate(_, _ tensor.Matrix, _ tensor.After)                                         {}
func (*dry) ActivateGrad(_, _, _ tensor.Matrix, _ tensor.After, _ tensor.Matrix)                 {}
func (*dry) Dot(_, _ tensor.Matrix) float64                                                      { return 0 }
func (*dry) Finite(tensor.Matrix) bool                                                           { return true }
func (*dry) ColumnSums(_, _ tensor.Matrix)                                                       {}
func (*dry) Moments(_, _ tensor.Matrix, _ int64)                                                 {}
func (*dry) Running(_, _ tensor.Matrix, _ int64, _ float64)                                      {}
func (*dry) BatchNorm(_, _, _, _, _ tensor.Matrix, _ float64, _ tensor.After)                    {}
func (*dry) BatchNormSums(_, _, _, _ tensor.Matrix, _ float64)                                   {}
func (*dry) BatchNormGrad(_, _, _, _, _, _ tensor.Matrix, _ int64, _ float64)                    {}
func (*dry) LayerNorm(_, _, _, _, _ tensor.Matrix, _ float64, _ tensor.After)                    {}
func (*dry) LayerNormGrad(_, _, _, _, _, _, _ tensor.Matrix)                                     {}
func (*dry) Softmax(_, _ tensor.Matrix)                                                          {}
func (*dry) Argmax([]uint32, tensor.Matrix)                                                      {}
func (*dry) Adam(_, _, _, _ tensor.Matrix, _ tensor.Adam)                                        {}
func (*dry) SGD(_, _, _ tensor.Matrix, _ tensor.SGD)                                             {}
func (*dry) Pack([]byte, tensor.Packed, tensor.Matrix, tensor.Matrix, tensor.Index)              {}
func (*dry) Unpack(tensor.Matrix, tensor.Packed, []byte)                                         {}

func (*dry) Attend(_, _ tensor.Matrix, _ *tensor.Sparse, _, _, _ tensor.Matrix, _ tensor.Attention) {
}

func (*dry) FilmMean(_ tensor.Matrix, _ *tensor.Sparse, _, _ tensor.Matrix, _ bool)         {}
func (*dry) FilmMeanGrad(_, _ tensor.Matrix, _, _ *tensor.Sparse, _, _, _ tensor.Matrix)    {}
func (*dry) EdgeSum(_ tensor.Matrix, _ *tensor.Sparse, _ tensor.Matrix, _ tensor.EdgeInput) {}
func (*dry) EdgeSumGrad(_ tensor.Matrix, _, _ *tensor.Sparse, _, _ tensor.Matrix, _ tensor.EdgeInput) {
}

func (*dry) DynamicAttend(_, _ tensor.Matrix, _ *tensor.Sparse, _, _, _ tensor.Matrix, _ tensor.Attention, _ tensor.EdgeInput) {
}

// DynamicAttendGrad takes a number an edge and head for itself.
func (d *dry) DynamicAttendGrad(_, _, _ tensor.Matrix, adj, _ *tensor.Sparse, _, _, _, _, _, _ tensor.Matrix, op tensor.Attention, _ tensor.EdgeInput) {
	d.Free(d.Scratch(d.Type(), int(adj.Entries()), op.Heads))
}

// AttendGrad takes what the kernel needs for itself: a number an edge and head, and
// a few numbers a vertex and head.
func (d *dry) AttendGrad(_, _, _ tensor.Matrix, adj, _ *tensor.Sparse, _, _, _, _, _, _ tensor.Matrix, op tensor.Attention) {
	edge := d.Scratch(d.Type(), int(adj.Entries()), op.Heads)
	vertex := d.Scratch(d.Type(), adj.Rows, 4*op.Heads+2)
	d.Free(edge)
	d.Free(vertex)
}

func (*dry) CrossEntropy(_, _ tensor.Matrix, _, _ tensor.Index, _ float64) (float64, int) {
	return 0, 0
}

func (*dry) BCE(_, _, _ tensor.Matrix, _ tensor.Index, _ float64) float64          { return 0 }
func (*dry) SquaredError(_, _, _ tensor.Matrix, _ tensor.Index, _ float64) float64 { return 0 }
func (*dry) CountMarks(_, _ tensor.Matrix, _ tensor.Index) (_, _, _ int)           { return 0, 0, 0 }

// dryGraph is an aggregator that only needs to know how many vertices and edges there are.
type dryGraph struct {
	dev   *dry
	n     int
	count int // of edges
	// Of edges' features, where the model looks at them.
	edgeDim  int
	features tensor.Matrix
	// Of a part: rows that come from other workers, and that go to them.
	halo, sent int
	cache      bool // as nn.Local's CacheFirst
	sums       map[nn.Reduction]tensor.Matrix
}

func (g *dryGraph) Rows(int) (dst, src int) { return g.n, g.n }

func (g *dryGraph) Room(int) int { return g.n + g.halo }

// exchange takes the buffers of rows that come and go.
func (g *dryGraph) exchange(m tensor.Matrix, rows ...int) {
	var taken []tensor.Matrix
	for _, n := range rows {
		if n > 0 {
			taken = append(taken, g.dev.Scratch(m.Type(), n, m.Cols))
		}
	}
	for _, t := range taken {
		g.dev.Free(t)
	}
}

func (g *dryGraph) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	if !g.cache {
		return tensor.Matrix{}, false
	}
	if _, ok := g.sums[r]; !ok {
		g.sums[r] = g.dev.Scratch(src.Type(), src.Rows, src.Cols)
		g.exchange(src, g.halo, g.sent)
	}
	return g.sums[r], true
}

func (g *dryGraph) Sum(_ int, _ nn.Reduction, _, src tensor.Matrix) { g.exchange(src, g.halo, g.sent) }

func (g *dryGraph) SumGrad(_ int, _ nn.Reduction, _, ddst tensor.Matrix) {
	g.exchange(ddst, g.halo, g.sent)
}

func (*dryGraph) AddUp(tensor.Matrix) {}

// edges has as many as the real ones; where they lie does not matter here.
func (g *dryGraph) edges(f nn.Form) *nn.Edges {
	count := g.count
	if f.Looped {
		count += g.n
	}
	ptr := make([]int64, g.n+1)
	ptr[g.n] = int64(count)
	in := g.dev.SparseMatrix(g.n, g.n+g.halo, ptr, nil, nil)
	e := &nn.Edges{In: in, Out: in}
	if f.Featured {
		if g.features.IsZero() { // not counted here: they are mapped, or the graph's
			g.features = g.dev.CPU.Scratch(tensor.F32, count, g.edgeDim)
		}
		e.Features = g.features
	}
	return e
}

func (g *dryGraph) Across(op nn.Across) {
	g.exchange(op.Sent()[0], g.sent)
	op.Do(g.edges(op.Over()), 0, g.n)
}

func (g *dryGraph) AcrossGrad(op nn.Across) {
	op.Undo(g.edges(op.Over()))
	g.exchange(op.SentGrads()[0], g.sent)
}
