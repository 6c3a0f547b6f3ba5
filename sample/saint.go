package sample

import (
	"starling/graph"
	"starling/rng"
)

// SAINT is GraphSAINT (Zeng et al., ICLR 2020, alg. 1): a batch is the subgraph
// of vertices drawn at random, and what is computed on it is made unbiased. With
// p_v the probability that v is in a batch and p_uv that both ends of an edge are,
//
//	an edge from u to v counts  p_v / p_uv      (the paper's 1/α_uv)
//	the loss of v counts        1 / p_v         (1/λ_v)
//
// The three ways to draw vertices are in files of their own. A vertex that can never
// be drawn is never learnt from.
type SAINT struct {
	subgraph
	draw    drawer
	batches int
}

// drawer is a way to draw the vertices of a batch.
type drawer interface {
	// vertices calls take for every vertex drawn, perhaps several times.
	vertices(key rng.Key, take func(v uint32))
	// vertex and edge are the probabilities that v is drawn, and that u and v both are.
	vertex(v uint32) float64
	edge(u, v uint32, edge int64) float64
}

// newSAINT has as many batches in an epoch as make the vertices drawn, a batch,
// as many as the graph has.
func newSAINT(g *graph.CSR, roots []uint32, d drawer, drawn int, seed uint64) *SAINT {
	n := (g.Nodes() + drawn - 1) / max(drawn, 1)
	return &SAINT{subgraph: newSubgraph(g, roots, seed), draw: d, batches: max(1, n)}
}

func (s *SAINT) Batches() int { return s.batches }

type saint struct {
	*SAINT
	table *table
}

func (s *SAINT) Sampler() Sampler { return &saint{s, newTable(s.graph.Nodes())} }

func (s *saint) Sample(b *Batch, epoch, number int) {
	b.reset(epoch, number, 1)
	s.table.begin()
	s.draw.vertices(batchKey(s.seed, epoch, number), func(v uint32) { _, b.Vertices = s.table.add(b.Vertices, v) })
	s.induce(b, s.table, s.count)
	for _, i := range b.Roots {
		b.RootWeights = append(b.RootWeights, float32(1/s.draw.vertex(b.Vertices[i])))
	}
	b.Scale = 1 / float64(s.roots)
}

// count is what an edge of the graph counts in a batch that has both its ends.
func (s *saint) count(u, v uint32, edge int64) float64 {
	if u == v {
		return 1
	}
	return s.draw.vertex(v) / s.draw.edge(u, v, edge)
}
