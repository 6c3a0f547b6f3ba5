package nn

import "starling/tensor"

// Local is the aggregator of a graph that is all in this process.
type Local struct {
	Topology *Topology
	// CacheFirst keeps the sum over the input features, which is the same in every
	// epoch, instead of computing it again: one matrix of vertices x features more.
	CacheFirst bool

	cache map[Reduction]tensor.Matrix
}

// NewLocal aggregates over t.
func NewLocal(t *Topology, cacheFirst bool) *Local {
	return &Local{Topology: t, CacheFirst: cacheFirst, cache: map[Reduction]tensor.Matrix{}}
}

func (l *Local) Rows(int) (dst, src int) { return l.Topology.Nodes(), l.Topology.Nodes() }

func (l *Local) Sum(_ int, r Reduction, dst, src tensor.Matrix) {
	row, col := l.Topology.scales(r.Kind)
	l.Topology.dev.Aggregate(dst, l.Topology.structure(r.Kind).in, src,
		tensor.Aggregate{RowScale: row, ColScale: col, Self: r.self()})
}

func (l *Local) SumGrad(_ int, r Reduction, dsrc, ddst tensor.Matrix) {
	row, col := l.Topology.scales(r.Kind)
	l.Topology.dev.Aggregate(dsrc, l.Topology.structure(r.Kind).out, ddst,
		tensor.Aggregate{RowScale: col, ColScale: row, Self: r.self()})
}

// self is the weight of a vertex's own row under the reduction.
func (r Reduction) self() float64 {
	switch r.Kind {
	case Sum:
		return r.Self
	case Mean:
		return 0
	}
	return 1
}

func (l *Local) Constant(r Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	if !l.CacheFirst {
		return tensor.Matrix{}, false
	}
	sum, ok := l.cache[r]
	if !ok {
		sum = l.Topology.dev.Scratch(src.Type(), src.Rows, src.Cols)
		l.Sum(0, r, sum, src)
		l.cache[r] = sum
	}
	return sum, true
}

func (l *Local) Attend(_ int, dst, stat, z, left, right tensor.Matrix, op tensor.Attention) {
	l.Topology.dev.Attend(dst, stat, l.Topology.attention().in, z, left, right, op)
}

func (l *Local) AttendGrad(_ int, dz, dleft, dright, z, left, right, stat, dst, ddst tensor.Matrix, op tensor.Attention) {
	s := l.Topology.attention()
	l.Topology.dev.AttendGrad(dz, dleft, dright, s.in, s.out, z, left, right, stat, dst, ddst, op)
}

func (l *Local) AddUp(tensor.Matrix) {}
