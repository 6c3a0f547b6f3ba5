package nn

import (
	"starling/graph"
	"starling/rng"
	"starling/tensor"
)

// Pass is what one forward (and backward) run through a model needs to know.
type Pass struct {
	Dev tensor.Device
	Agg Aggregator
	// Multiplier makes products of sums and weights; nil: layers do.
	Multiplier Multiplier
	// Train: keep what the backward pass needs, draw dropout, use batch statistics.
	Train bool
	// Key is of the seed, the epoch and, with mini-batches, the batch.
	Key rng.Key
	// IDs are the vertex ids of the rows, for draws that must not depend on which
	// worker holds a vertex; none where row i is vertex i.
	IDs tensor.Index
	// Types says of which types rows are, in a typed graph.
	Types []graph.Run
	// Own is how many of the rows, the first, are this worker's; the others are
	// copies of other workers' vertices, which compute them too. 0: all.
	Own int
	// Vertices is the number of rows on all workers together, copies not counted,
	// for batch norm; 0: each module's own rows, where layers differ (mini-batches).
	Vertices int64
	// Rows is the storage type of activations.
	Rows tensor.DType
	// Fewer: layers make fewer rows than they take, over the blocks of a mini-batch or
	// beside copies of other workers' vertices. It is the same on all workers, because
	// what travels backwards depends on it.
	Fewer bool
	// Masked: gradients of rows that were sent come back only where the rows were not zero, so
	// layers of which Config.SendsZeros is true send gradients of their input back. It is the same
	// on all workers.
	Masked bool
	// InRanges: modules are run piece by piece, in any order (see Ranges).
	InRanges bool
	// InputFrom is the first column of the input whose gradient BackwardInput is asked for. The gradient of a first
	// layer that only sums has no columns before it.
	InputFrom int
	// Ready, if set, is called with parameters whose gradients are final, while the
	// backward pass goes on.
	Ready func(params []*Param)
	// Span, if set, is called when a part of the pass begins; what it returns is
	// called when that part ends.
	Span func(name string) (end func())

	announced map[*Param]bool // to Ready
}

// ready tells of parameters whose gradients are final, of each once.
func (p *Pass) ready(params ...*Param) {
	if p.Ready == nil {
		return
	}
	if p.announced == nil {
		p.announced = map[*Param]bool{}
	}
	var news []*Param
	for _, q := range params {
		if !p.announced[q] {
			p.announced[q], news = true, append(news, q)
		}
	}
	p.Ready(news)
}

// span times a part of the pass, if anyone wants to know.
func (p *Pass) span(name string) func() {
	if p.Span == nil {
		return func() {}
	}
	return p.Span(name)
}

// own is how many of a module's rows are not copies.
func (p *Pass) own(rows int) int {
	if p.Own == 0 {
		return rows
	}
	return min(p.Own, rows)
}

// count is how many rows a module's statistics are of.
func (p *Pass) count(rows int) int64 {
	if p.Vertices == 0 {
		return int64(rows)
	}
	return p.Vertices
}

// rowType is the type activations are stored in.
func (p *Pass) rowType() tensor.DType { return p.Dev.RowType(p.Rows) }

// dropout is the dropout of layer's rows; what tells apart the places in a layer that draw.
func (p *Pass) dropout(layer, what int, rate float64) tensor.Dropout {
	if !p.Train || rate == 0 {
		return tensor.Dropout{}
	}
	key := p.Key.Fold(uint64(layer)).Fold(uint64(what))
	return tensor.Dropout{P: float32(rate), Key: uint64(key), IDs: p.IDs}
}

// The places of a layer that draw.
const (
	drawInput = iota
	drawOutput
	drawAttention
)

// Kind is how a layer weighs its neighbours' rows when it adds them up.
type Kind uint8

const (
	// Sum: Σj xj + self·xi.
	Sum Kind = iota
	// Mean: Σj xj / deg(i), zero for a vertex without neighbours.
	Mean
	// MeanSelf: (Σj xj + xi) / (deg(i)+1).
	MeanSelf
	// Symmetric: Σj xj / sqrt((deg(i)+1)(deg(j)+1)) over neighbours and i itself, loops counted once.
	Symmetric
)

// Sums is the Kind of all layers of a model that has nothing but sums over neighbours.
func (c *Config) Sums() (k Kind, ok bool) {
	switch {
	case c.EdgeDim > 0:
		return 0, false
	case c.Model == "gcn" || c.Model == "resgcn+":
		return Symmetric, true
	case (c.Model == "sage" || c.Model == "ressage+") && c.Aggregator == "gcn":
		return MeanSelf, true
	case c.Model == "sage" || c.Model == "ressage+":
		return Mean, true
	}
	return 0, false
}

// Reduction is a Kind with the weight of a vertex's own row (Sum only).
type Reduction struct {
	Kind Kind
	Self float64
}

// Aggregator stands between transform and aggregate: given the rows that layers
// send it computes what each vertex receives from its neighbours. Local does so
// for a graph in this process; distributed strategies bring rows or sums from
// elsewhere. layer counts message-passing layers from 0.
type Aggregator interface {
	// Rows is how many rows a layer receives (dst) and sends (src >= dst).
	Rows(layer int) (dst, src int)
	// MessageRows is how many rows the messages of a layer that is an EdgeOperator takes: its
	// own, then those that are received.
	MessageRows(layer int) int
	// Sum: dst = A·src under the reduction; SumGrad: dsrc = Aᵀ·ddst.
	Sum(layer int, r Reduction, dst, src tensor.Matrix)
	SumGrad(layer int, r Reduction, dsrc, ddst tensor.Matrix)
	// Constant is Sum of rows that are the same in every epoch (the input
	// features), computed once. ok is false where keeping the result would not pay.
	Constant(r Reduction, src tensor.Matrix) (sum tensor.Matrix, ok bool)
	// Edgewise does what a layer computes over its edges, and EdgewiseGrad goes back. A
	// strategy that can only add refuses such models before they run.
	Edgewise(op EdgeOperator)
	EdgewiseGrad(op EdgeOperator)
	// AllReduce adds a small matrix of sums over all workers, in place.
	AllReduce(sums tensor.Matrix)
}

// Module is a part of a model that turns rows into rows.
//
// Forward returns a new matrix y, which the caller frees, unless p.Train is set: then the
// module keeps y and what else Backward needs, x among it.
//
// Backward adds to the gradients of the module's parameters and returns the
// gradient of x, or none unless wantDX. It frees y and dy, unless built to keep them.
type Module interface {
	Forward(p *Pass, x Input) tensor.Matrix
	Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix
}

// Input is what a module works on: rows of numbers, or the sparse rows that
// features may be.
type Input struct {
	tensor.Matrix
	// Sparse and its transpose, instead of Matrix.
	Sparse, SparseT *tensor.Sparse
	// Split, instead of Matrix: columns are divided over workers.
	Split Split
	// Typed, instead of Matrix: rows of types.
	Typed *TypedInput
	// Constant: the same in every epoch.
	Constant bool
	// Drawn is how the rows came from constant features by dropout; nil: they did not.
	Drawn *Drawn

	zeros float32 // the share of zeros that rows are expected to have
}

// Drawn is constant features and the dropout of one pass. A draw depends on key, vertex and column alone, so that every
// worker with a copy of a vertex's features makes the same row of them.
type Drawn struct {
	Features tensor.Matrix
	Dropout  tensor.Dropout
}

// Redrawer is an Aggregator that may have copies of all features that it sums over. Redrawn is Sum of rows after
// dropout of these, for which no rows are brought from elsewhere; the caller frees it. ok is false without copies.
type Redrawer interface {
	Redrawn(r Reduction, dropped tensor.Matrix, d *Drawn) (sum tensor.Matrix, ok bool)
}

// rows is an input of which nothing is known but its numbers.
func rows(m tensor.Matrix) Input { return Input{Matrix: m} }

// madeBy is the input that a module or one of its steps has made.
func madeBy(step any, p *Pass, y tensor.Matrix) Input {
	x := rows(y)
	if s, ok := step.(interface{ zeros(*Pass) float32 }); ok {
		x.zeros = s.zeros(p)
	}
	return x
}

// times: dst = after(x[lo:hi]·w), or added to dst.
func (x Input) times(dev tensor.Device, dst, w tensor.Matrix, lo, hi int, add bool, after tensor.Epilogue) {
	if x.Split != nil {
		x.splitTimes(dev, dst, w, false, add, after)
		return
	}
	if x.Sparse == nil {
		dev.MatMul(dst, x.Slice(lo, hi), w, tensor.MatMul{Add: add, Epilogue: after, ZerosA: x.zeros})
		return
	}
	dev.Aggregate(dst, x.Sparse.Slice(lo, hi), w, tensor.Aggregate{Add: add})
	if !after.Empty() {
		dev.Activate(dst, dst, after)
	}
}

// gradWeight: dw += xᵀ·dy over rows lo to hi; zeros is the share of zeros that dy is expected
// to have. Sparse rows, whose
// transpose has no ranges, are all added with the last range.
func (x Input) gradWeight(dev tensor.Device, dw, dy tensor.Matrix, lo, hi int, zeros float32) {
	if x.Split != nil {
		x.Split.(SplitRows).RowsGrad(false, dy, dw)
		return
	}
	if x.Sparse == nil {
		dev.MatMul(dw, x.Slice(lo, hi), dy.Slice(lo, hi), tensor.MatMul{TransA: true, Add: true, ZerosA: x.zeros,
			ZerosB: zeros})
		return
	}
	if hi < dy.Rows {
		return
	}
	if n := x.SparseT.Cols; dy.Rows < n { // the transpose is of all rows; the others' gradient is zero
		all := dev.Scratch(dy.Type(), n, dy.Cols)
		dev.Copy(all.Slice(0, dy.Rows), dy)
		dev.Zero(all.Slice(dy.Rows, n))
		defer dev.Free(all)
		dy = all
	}
	dev.Aggregate(dw, x.SparseT, dy, tensor.Aggregate{Add: true})
}
