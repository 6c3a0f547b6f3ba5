package sample

import (
	"starling/graph"
	"starling/rng"
)

// LADIES (Zou et al., NeurIPS 2019, alg. 1) draws a layer's sources among the
// neighbours of its destinations S,
//
//	p(u) ∝ Σ over v in S of Â(v,u)²
//
// and edges from a source count 1/(t·p(u)). Then every destination's edges are
// normalized by their sum, here to the degree it has in the whole graph, so that a
// mean is one of the sources drawn. That makes the estimate biased and much
// less noisy.
type LADIES struct{ layers *layerwise }

// NewLADIES draws draws[0] sources for the last layer, draws[1] for the one before.
func NewLADIES(g *graph.CSR, seeds []uint32, size int, draws []int, seed uint64) (*LADIES, error) {
	l, err := newLayerwise(g, seeds, size, draws, seed)
	return &LADIES{l}, err
}

func (l *LADIES) Batches() int { return l.layers.order.Batches() }

func (l *LADIES) Sampler() Sampler {
	return &ladies{layers: l.layers.sampler(), place: newTable(l.layers.graph.Nodes())}
}

type ladies struct {
	layers     *layerSampler
	place      *table   // in neighbours
	neighbours []uint32 // of the destinations
	norms      []float64
}

func (s *ladies) Sample(b *Batch, epoch, number int) {
	s.layers.sample(b, epoch, number, s.draw, s.normalize)
}

func (s *ladies) draw(key rng.Key, dst []uint32, t int) {
	g, degrees := s.layers.of.graph, s.layers.of.degrees
	s.neighbours, s.norms = s.neighbours[:0], s.norms[:0]
	s.place.begin()
	for _, v := range dst {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u := g.Indices[e]
			at, longer := s.place.add(s.neighbours, u)
			if len(longer) > len(s.neighbours) {
				s.neighbours, s.norms = longer, append(s.norms, 0)
			}
			w := weight(g, e)
			s.norms[at] += w * w / ((degrees[v] + 1) * (degrees[u] + 1))
		}
	}
	s.layers.take(key, NewDistribution(s.norms), s.neighbours, t)
}

// normalize scales the edges of each destination so that they sum to its degree.
func (s *ladies) normalize(x *Block, dst []uint32) {
	g := s.layers.of.graph
	for i, v := range dst {
		all := 0.0
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			all += weight(g, e)
		}
		SumTo(x.Weights[x.Indptr[i]:x.Indptr[i+1]], all)
	}
}

// SumTo scales what edges count so that they sum to all.
func SumTo(edges []float32, all float64) {
	sum := 0.0
	for _, w := range edges {
		sum += float64(w)
	}
	if sum == 0 { // none drawn, or all of weight zero
		return
	}
	for j := range edges {
		edges[j] = float32(float64(edges[j]) * all / sum)
	}
}
