package nn

import "starling/tensor"

// Local is the aggregator of a graph that is all in this process.
type Local struct {
	*Topology
	// CacheFirst keeps the sum over the input features, which is the same in every
	// epoch, instead of computing it again: one matrix of vertices x features more.
	CacheFirst bool
	// Done, if set, is called when the sum over features is kept, after which nothing reads these.
	Done func(features tensor.Matrix)

	cache map[Reduction]tensor.Matrix
}

// NewLocal aggregates over t.
func NewLocal(t *Topology, cacheFirst bool) *Local {
	return &Local{Topology: t, CacheFirst: cacheFirst, cache: map[Reduction]tensor.Matrix{}}
}

func (l *Local) Rows(int) (dst, src int) { return l.Nodes(), l.Nodes() }

func (l *Local) MessageRows(int) int { return l.Nodes() }

func (l *Local) Sum(_ int, r Reduction, dst, src tensor.Matrix) { l.Topology.Sum(r, dst, src, false) }

func (l *Local) SumGrad(_ int, r Reduction, dsrc, ddst tensor.Matrix) {
	l.Topology.SumGrad(r, dsrc, ddst)
}

func (l *Local) Constant(r Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	if !l.CacheFirst {
		return tensor.Matrix{}, false
	}
	sum, ok := l.cache[r]
	if !ok {
		sum = l.dev.Scratch(src.Type(), src.Rows, src.Cols)
		l.Sum(0, r, sum, src)
		l.cache[r] = sum
		if l.Done != nil {
			l.Done(src)
		}
	}
	return sum, true
}

func (l *Local) Edgewise(op EdgeOperator) { op.EdgeForward(l.Edges(op.Over()), 0, l.Nodes()) }

func (l *Local) EdgewiseGrad(op EdgeOperator) { op.EdgeBackward(l.Edges(op.Over())) }

func (l *Local) AllReduce(tensor.Matrix) {}
