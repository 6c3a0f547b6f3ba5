package nn

import "starling/tensor"

// EdgeOperator is what a layer computes over its edges where that is more than a weighed
// sum: attention, a maximum, or messages that depend on both ends. The rows of all
// sources must be in one place for it, so an aggregator brings those that are
// elsewhere, and takes their gradients back; what is done with them is the layer's.
type EdgeOperator interface {
	// Layer counts message-passing layers from 0.
	Layer() int
	// Width is how wide the rows are that are sent.
	Width() int
	// Over says which edges the layer goes over.
	Over() Form
	// Sent are matrices of Aggregator.MessageRows rows, of which the own ones are given and the
	// others received: first the rows, in the type of activations, then, if there are
	// any, their scores, in the device's. SentGrads are their gradients, on the backward pass.
	Sent() []tensor.Matrix
	SentGrads() []tensor.Matrix
	// EdgeForward computes rows lo to hi of the result.
	EdgeForward(e *Edges, lo, hi int)
	// EdgeBackward computes the gradients of all that was sent.
	EdgeBackward(e *Edges)
}

// Form is which edges a layer goes over.
type Form struct {
	// Looped: loops are replaced by one at each vertex.
	Looped bool
	// Featured: the layer looks at features of edges.
	Featured bool
	// Related: the layer goes over edges by relation.
	Related bool
}

// Edges are the edges of some vertices (rows) from others (columns), and the same transposed.
type Edges struct {
	In, Out *tensor.Sparse
	// Features of edges [entries of In, d], where a layer looks at them.
	Features tensor.Matrix
	// Counts is a diagonal matrix, where edges are drawn: what those of a row count, to
	// stand for the others too; nil: one. It is for sums.
	Counts *tensor.Sparse
	// Related are the edges by relation, instead of In and Out.
	Related *Related
	// IDs are the vertex ids of the columns; none: those of the pass.
	IDs tensor.Index
}

// ids are the vertex ids of the edges' columns.
func (e *Edges) ids(p *Pass) tensor.Index {
	if e.IDs.IsZero() {
		return p.IDs
	}
	return e.IDs
}
