package sample

import (
	"starling/graph"
	"starling/rng"
)

// FastGCN (Chen, Ma and Xiao, ICLR 2018, alg. 2) draws every layer's sources from
// one distribution over all vertices,
//
//	q(u) ∝ ‖Â(:,u)‖²
//
// whatever the destinations, and edges from a source count 1/(t·q(u)). Layers are
// independent of each other, so on sparse graphs many draws have no edge to a
// destination, and those are left out.
type FastGCN struct {
	layers *layerwise
	q      *Distribution
}

// NewFastGCN draws draws[0] sources for the last layer, draws[1] for the one before.
func NewFastGCN(g *graph.CSR, seeds []uint32, size int, draws []int, seed uint64) (*FastGCN, error) {
	l, err := newLayerwise(g, seeds, size, draws, seed)
	if err != nil {
		return nil, err
	}
	return &FastGCN{layers: l, q: NewDistribution(columnNorms(g, l.degrees))}, nil
}

func (f *FastGCN) Batches() int { return f.layers.order.Batches() }

func (f *FastGCN) Sampler() Sampler { return &fastGCN{f.layers.sampler(), f.q} }

type fastGCN struct {
	layers *layerSampler
	q      *Distribution
}

func (s *fastGCN) Sample(b *Batch, epoch, number int) {
	s.layers.sample(b, epoch, number,
		func(key rng.Key, _ []uint32, t int) { s.layers.take(key, s.q, nil, t) },
		func(*Block, []uint32) {})
}
