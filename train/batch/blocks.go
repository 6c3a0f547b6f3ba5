package batch

import (
	"math"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
)

// Blocks is the aggregator of mini-batches: every layer goes over its block of
// the batch at hand.
//
// A sum is over the edges drawn, with what each counts, and is scaled by degrees in
// the whole graph (or in the block, where it says so). A vertex's own row is never
// sampled, so it is added beside them, as it is.
type Blocks struct {
	dev      tensor.Device
	Degrees  *nn.Degrees
	loops    bool          // the graph has some
	features tensor.Matrix // of the whole graph, where they are dense
	columns  tensor.Matrix // factors of all vertices for blocks by id
	zeros    []int64
	// Indices of a diagonal matrix, and its rows' starts.
	diagonal    []uint32
	diagonalPtr []int64

	batch *Batch
	made  []onDevice
	taken []tensor.Matrix // until the batch's end
	typed []*nn.Related   // of a typed batch's blocks
}

// onDevice is a block there.
type onDevice struct {
	in, out        *tensor.Sparse
	local, remote  *tensor.Sparse // in, where its edges are divided
	counts         *tensor.Sparse // a diagonal of row weights, for edges with features
	features       tensor.Matrix  // of edges
	kind           nn.Kind
	scaled         bool
	made           *edges        // the block's, as they were prepared
	rows, own, col tensor.Matrix // factors of edges' rows, of own rows, of columns; none: one
	host           []float64
	drawn          tensor.DrawnBlock // by the device
}

// NewBlocks is an aggregator of batches whose vertices are pulled. loops: the graph has some.
func NewBlocks(dev tensor.Device, loops bool, features tensor.Matrix) *Blocks {
	return &Blocks{dev: dev, loops: loops, features: features}
}

// blocksOf is an aggregator of batches of a graph that is all here.
func blocksOf(dev tensor.Device, g *graph.CSR, features tensor.Matrix) *Blocks {
	d, loops := degreesOf(g)
	return &Blocks{dev: dev, features: features, Degrees: d, loops: loops}
}

// degreesOf sums the weights of in-edges.
func degreesOf(g *graph.CSR) (d *nn.Degrees, loops bool) {
	n := g.Nodes()
	d = &nn.Degrees{All: make([]float64, n), NoLoops: make([]float64, n)}
	for v := range n {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			w := 1.0
			if g.Weights != nil {
				w = float64(g.Weights[e])
			}
			d.All[v] += w
			if g.Indices[e] != uint32(v) {
				d.NoLoops[v] += w
			} else {
				loops = true
			}
		}
	}
	return d, loops
}

// Begin puts a batch's blocks on the device.
func (a *Blocks) Begin(b *Batch) {
	a.batch = b
	if b.schema != nil {
		a.beginTyped()
		return
	}
	if l := b.laid; l != nil {
		a.made, a.taken = l.made, append(a.taken, l.taken...)
		l.fed.Join()
		return
	}
	if b.drawn != nil {
		a.beginDrawn(b)
		return
	}
	for len(a.made) < len(b.Blocks) {
		a.made = append(a.made, onDevice{})
	}
	for i := range b.Blocks {
		x, e, m := &b.Blocks[i], &b.edges[i], &a.made[i]
		m.scaled, m.made = false, e
		cols := x.Src
		if x.ByID {
			cols = a.features.Rows
		}
		m.in = tensor.NewSparse(a.dev, x.Dst, cols, e.in.ptr, e.in.index, orNil(e.in.value))
		a.putDivided(m, &e.divided)
		if x.ByID || b.goesForward(i) {
			continue
		}
		m.out = tensor.Transpose(a.dev, m.in, e.back.ptr, e.back.index, b.places(e))
		if v := m.out.Values(); !v.IsZero() {
			a.taken = append(a.taken, v)
		}
		if b.graph != nil {
			a.putFeatures(m, x, e)
		}
	}
}

// places are the places of a block's transposed edges, where a layer asks for them.
func (r *Batch) places(e *edges) []uint32 {
	if r.Host != nil && r.kind != nil && len(e.in.value) == 0 {
		return nil // layers only sum
	}
	return e.place
}

// putFeatures puts the features of a block's edges on the device.
func (a *Blocks) putFeatures(m *onDevice, x *sample.Block, e *edges) {
	m.features = a.dev.Scratch(a.dev.Type(), len(e.in.index), a.batch.graph.EdgeDim)
	a.dev.Upload(m.features, e.features)
	a.taken = append(a.taken, m.features)
	m.counts = nil
	if len(x.RowWeights) > 0 {
		for len(a.diagonal) <= x.Dst {
			a.diagonal = append(a.diagonal, uint32(len(a.diagonal)))
			a.diagonalPtr = append(a.diagonalPtr, int64(len(a.diagonalPtr)))
		}
		m.counts = tensor.NewSparse(a.dev, x.Dst, x.Dst, a.diagonalPtr[:x.Dst+1], a.diagonal[:x.Dst], x.RowWeights)
	}
}

func orNil(v []float32) []float32 {
	if len(v) == 0 {
		return nil
	}
	return v
}

// End frees what the batch's step made.
func (a *Blocks) End() {
	for _, m := range a.taken {
		a.dev.Free(m)
	}
	for _, r := range a.typed {
		r.Free(a.dev)
	}
	a.typed = a.typed[:0]
	if l := a.batch.laid; l != nil {
		l.fed.Free()
	}
	if d := a.batch.drawn; d != nil {
		d.Done()
	}
	a.taken, a.batch = a.taken[:0], nil
}

// Failed is why the rows of the batch at hand mean nothing.
func (a *Blocks) Failed() error {
	if s := a.batch.First; s != nil {
		return s.Failure()
	}
	return nil
}

// of is a layer's block.
func (a *Blocks) of(layer int) (*sample.Block, *onDevice) {
	if len(a.batch.Blocks) == 1 {
		layer = 0
	}
	return &a.batch.Blocks[layer], &a.made[layer]
}

func (a *Blocks) Rows(layer int) (dst, src int) {
	x := a.batch.Block(layer)
	return x.Dst, x.Src
}

func (a *Blocks) MessageRows(layer int) int {
	return a.batch.Block(layer).Src
}

func (a *Blocks) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	x, m := a.of(layer)
	a.scale(x, m, r.Kind)
	op := tensor.Aggregate{RowScale: m.rows, ColScale: m.col}
	if !m.counted(x) {
		op.Self = SelfWeight(r)
		a.dev.Aggregate(dst, m.in, src, op)
		return
	}
	a.dev.Aggregate(dst, m.in, src, op)
	a.addOwn(r, dst, src.Slice(0, dst.Rows), m.own, m.col)
}

// addOwn: dst_i += rows_i · self · columns_i · src_i.
func (a *Blocks) addOwn(r nn.Reduction, dst, src, rows, columns tensor.Matrix) {
	if w := SelfWeight(r); w != 0 {
		a.dev.Aggregate(dst, a.noEdges(dst.Rows), src, tensor.Aggregate{RowScale: first(rows, dst.Rows),
			ColScale: first(columns, dst.Rows), Self: w, Add: true})
	}
}

// first is the first n rows of a scale, if there is one.
func first(scale tensor.Matrix, n int) tensor.Matrix {
	if scale.IsZero() {
		return scale
	}
	return scale.Slice(0, n)
}

func (a *Blocks) noEdges(n int) *tensor.Sparse {
	if len(a.zeros) <= n {
		a.zeros = make([]int64, 2*n+1)
	}
	return tensor.NewSparse(a.dev, n, n, a.zeros[:n+1], []uint32{}, nil)
}

func (a *Blocks) SumGrad(layer int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	x, m := a.of(layer)
	a.scale(x, m, r.Kind)
	a.dev.Aggregate(dsrc, m.out, ddst, tensor.Aggregate{RowScale: m.col, ColScale: m.rows})
	a.addOwn(r, dsrc.Slice(0, ddst.Rows), ddst, m.col, m.own)
}

// Constant is the first layer's sum over features. Keeping it until the batch's end
// means that nothing goes back over the first block, the largest by far.
func (a *Blocks) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	x, m := a.of(0)
	sum := a.dev.Scratch(src.Type(), x.Dst, src.Cols)
	a.taken = append(a.taken, sum)
	if !x.ByID {
		a.Sum(0, r, sum, src)
		return sum, true
	}
	a.scale(x, m, r.Kind)
	op := tensor.Aggregate{RowScale: m.rows}
	if r.Kind == nn.Symmetric {
		op.ColScale = a.allColumns()
	}
	a.dev.Aggregate(sum, m.in, a.features, op)
	a.addOwn(r, sum, src, m.own, m.col)
	return sum, true
}

// allColumns are GCN's factors of all vertices, made once.
func (a *Blocks) allColumns() tensor.Matrix {
	if a.columns.IsZero() {
		f := make([]float64, len(a.Degrees.NoLoops))
		for v := range f {
			f[v] = Factor(nn.Symmetric, 0, a.Degrees.NoLoops[v])
		}
		a.columns = a.dev.New(a.dev.Type(), len(f), 1)
		a.dev.Upload(a.columns, f)
	}
	return a.columns
}

// Edges are the edges of a layer's block: they were put in its form when the batch was made.
func (a *Blocks) Edges(layer int) *nn.Edges {
	if len(a.typed) > 0 {
		return &nn.Edges{Related: a.typed[layer]}
	}
	_, m := a.of(layer)
	return &nn.Edges{In: m.in, Out: m.out, Features: m.features, Counts: m.counts}
}

func (a *Blocks) Edgewise(op nn.EdgeOperator) {
	dst, _ := a.Rows(op.Layer())
	op.EdgeForward(a.Edges(op.Layer()), 0, dst)
}

func (a *Blocks) EdgewiseGrad(op nn.EdgeOperator) { op.EdgeBackward(a.Edges(op.Layer())) }

func (a *Blocks) AllReduce(tensor.Matrix) {}

// Weigh multiplies the gradients of seed vertices by what their losses count. It returns a
// new matrix if there is anything to do.
func (a *Blocks) Weigh(dlogits tensor.Matrix) tensor.Matrix {
	b := a.batch
	if len(b.SeedWeights) == 0 {
		return dlogits
	}
	f := make([]float64, dlogits.Rows)
	for i, row := range b.Seeds {
		f[row] = float64(b.SeedWeights[i])
	}
	out := a.dev.Scratch(dlogits.Type(), dlogits.Rows, dlogits.Cols)
	a.dev.Aggregate(out, a.noEdges(dlogits.Rows), dlogits, tensor.Aggregate{RowScale: a.upload(f), Self: 1})
	return out
}

// scale makes a block's factors for a kind of sum.
func (a *Blocks) scale(x *sample.Block, m *onDevice, k nn.Kind) {
	if m.scaled && m.kind == k {
		return
	}
	m.scaled, m.kind, m.rows, m.own, m.col = true, k, tensor.Matrix{}, tensor.Matrix{}, tensor.Matrix{}
	if a.batch.drawn != nil {
		a.scaleDrawn(x, m, k)
		return
	}
	if b := a.batch; b.kind != nil && *b.kind == k {
		m.own, m.rows, m.col = a.column(m.made.ownScale), a.column(m.made.rowScale), a.column(m.made.colScale)
		if m.rows.IsZero() {
			m.rows = m.own
		}
		return
	}
	if k != nn.Sum {
		m.own = a.upload(a.factors(x, m, k, x.Dst))
		m.rows = m.own
	}
	if len(x.RowWeights) > 0 {
		f := a.factors(x, m, k, x.Dst)
		for i, w := range x.RowWeights {
			f[i] *= float64(w)
		}
		m.rows = a.upload(f)
	}
	if k == nn.Symmetric {
		m.col = a.upload(a.factors(x, m, k, x.Src))
	}
}

// factors are the factors of the first n vertices, by their degrees.
func (a *Blocks) factors(x *sample.Block, m *onDevice, k nn.Kind, n int) []float64 {
	m.host = m.host[:0]
	for i := range n {
		m.host = append(m.host, a.batch.factor(x, a.Degrees, k, i))
	}
	return m.host
}

// column is a list that the batch has as a column; none of an empty one.
func (a *Blocks) column(of []float32) tensor.Matrix {
	if len(of) == 0 {
		return tensor.Matrix{}
	}
	return a.dev.FromHost(len(of), 1, of)
}

// Factor is a vertex's factor in a kind of sum.
func Factor(k nn.Kind, degree, noLoops float64) float64 {
	switch {
	case k == nn.Mean && degree > 0:
		return 1 / degree
	case k == nn.MeanSelf:
		return 1 / (degree + 1)
	case k == nn.Symmetric:
		return 1 / math.Sqrt(noLoops+1)
	}
	return 1
}

// SelfWeight is the weight of a vertex's own row.
func SelfWeight(r nn.Reduction) float64 {
	switch r.Kind {
	case nn.Sum:
		return r.Self
	case nn.Mean:
		return 0
	}
	return 1
}

// upload keeps numbers on the device until the batch's end.
func (a *Blocks) upload(f []float64) tensor.Matrix {
	m := a.dev.Scratch(a.dev.Type(), len(f), 1)
	a.dev.Upload(m, f)
	a.taken = append(a.taken, m)
	return m
}
