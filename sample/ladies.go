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
// normalised by their sum, here to the degree it has in the whole graph, so that a
// mean is one of the sources drawn. That makes the estimate biased and much
// less noisy.
type LADIES struct{ layerwise }

// NewLADIES draws draws[0] sources for the last layer, draws[1] for the one before.
func NewLADIES(g *graph.CSR, roots []uint32, size int, draws []int, seed uint64) (*LADIES, error) {
	l := &LADIES{layerwise{Graph: g, Roots: roots, Size: size, Draws: draws, Seed: seed}}
	return l, l.prepare()
}

type ladies struct {
	drawing
	near  *table
	there []uint32 // neighbours of the destinations
	norms []float64
}

func (l *LADIES) Sampler() Sampler {
	return &ladies{drawing: l.drawing(), near: newTable(l.Graph.Nodes())}
}

func (s *ladies) Sample(b *Batch, epoch, number int) {
	s.sample(b, epoch, number, s.draw, s.normalise)
}

func (s *ladies) draw(key rng.Key, dst []uint32, t int) {
	s.there, s.norms = s.there[:0], s.norms[:0]
	s.near.begin()
	for _, v := range dst {
		for e := s.Graph.Indptr[v]; e < s.Graph.Indptr[v+1]; e++ {
			u := s.Graph.Indices[e]
			at, longer := s.near.add(s.there, u)
			if len(longer) > len(s.there) {
				s.there, s.norms = longer, append(s.norms, 0)
			}
			w := weight(s.Graph, e)
			s.norms[at] += w * w / ((s.degrees[v] + 1) * (s.degrees[u] + 1))
		}
	}
	s.take(key, newDistribution(s.norms), s.there, t)
}

// normalise scales the edges of each destination so that they add up to its degree.
func (s *ladies) normalise(x *Block, dst []uint32) {
	for i, v := range dst {
		edges := x.Weights[x.Indptr[i]:x.Indptr[i+1]]
		sum, all := 0.0, 0.0
		for _, w := range edges {
			sum += float64(w)
		}
		for e := s.Graph.Indptr[v]; e < s.Graph.Indptr[v+1]; e++ {
			all += weight(s.Graph, e)
		}
		if sum == 0 { // none drawn, or none that weighs anything
			continue
		}
		for j := range edges {
			edges[j] = float32(float64(edges[j]) * all / sum)
		}
	}
}
