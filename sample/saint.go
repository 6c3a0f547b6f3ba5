package sample

import (
	"starling/graph"
	"starling/rng"
)

// SAINT is GraphSAINT (Zeng et al., ICLR 2020, alg. 1): a batch is the subgraph
// of vertices drawn at random, weighted so that sums and losses are unbiased. With
// p_v the probability that v is in a batch and p_uv that both ends of an edge are,
//
//	an edge from u to v counts  p_v / p_uv      (the paper's 1/α_uv)
//	the loss of v counts        1 / p_v         (1/λ_v)
//
// Three ways to draw vertices are in files of their own. A vertex that can never
// be drawn does not take part in training.
type SAINT struct {
	sub     subgraph
	draw    drawer
	batches int
}

// drawer is a way to draw the vertices of a batch.
type drawer interface {
	// Vertices calls take for every vertex drawn, perhaps several times.
	Vertices(key rng.Key, take func(v uint32))
	// Vertex and Edge are the probabilities that v is drawn, and that u and v both are.
	Vertex(v uint32) float64
	Edge(u, v uint32, edge int64) float64
}

// newSAINT has enough batches per epoch for the drawn vertices of all of them to be about
// the number of vertices of the graph.
func newSAINT(g *graph.CSR, seeds []uint32, d drawer, drawn int, seed uint64) *SAINT {
	return &SAINT{sub: newSubgraph(g, seeds, seed), draw: d, batches: SAINTBatches(g.Nodes(), drawn)}
}

// SAINTBatches is the number of batches of an epoch, given the vertices that each draws.
func SAINTBatches(nodes, drawn int) int { return max(1, (nodes+drawn-1)/max(drawn, 1)) }

func (s *SAINT) Batches() int { return s.batches }

type saint struct {
	of    *SAINT
	table *table
}

func (s *SAINT) Sampler() Sampler { return &saint{s, newTable(s.sub.graph.Nodes())} }

func (s *saint) Sample(b *Batch, epoch, number int) {
	b.Reset(epoch, number, 1)
	s.table.begin()
	s.of.draw.Vertices(BatchKey(s.of.sub.seed, epoch, number),
		func(v uint32) { _, b.Vertices = s.table.add(b.Vertices, v) })
	s.of.sub.induce(b, s.table, s.count)
	for _, i := range b.Seeds {
		b.SeedWeights = append(b.SeedWeights, float32(1/s.of.draw.Vertex(b.Vertices[i])))
	}
	b.Scale = 1 / float64(s.of.sub.seeds)
}

// count is what an edge of the graph counts in a batch that has both its ends.
func (s *saint) count(u, v uint32, edge int64) float64 {
	if u == v {
		return 1
	}
	return s.of.draw.Vertex(v) / s.of.draw.Edge(u, v, edge)
}
