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
	layerwise
	q *distribution
}

// NewFastGCN draws draws[0] sources for the last layer, draws[1] for the one before.
func NewFastGCN(g *graph.CSR, roots []uint32, size int, draws []int, seed uint64) (*FastGCN, error) {
	f := &FastGCN{layerwise: layerwise{Graph: g, Roots: roots, Size: size, Draws: draws, Seed: seed}}
	if err := f.prepare(); err != nil {
		return nil, err
	}
	f.q = newDistribution(columnNorms(g, f.degrees))
	return f, nil
}

type fastGCN struct {
	drawing
	q *distribution
}

func (f *FastGCN) Sampler() Sampler { return &fastGCN{f.drawing(), f.q} }

func (s *fastGCN) Sample(b *Batch, epoch, number int) {
	s.sample(b, epoch, number,
		func(key rng.Key, _ []uint32, t int) { s.take(key, s.q, nil, t) },
		func(*Block, []uint32) {})
}
