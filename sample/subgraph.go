package sample

import "starling/graph"

// subgraph is what Cluster-GCN and GraphSAINT share: a batch is some vertices and
// all edges between them, one block for every layer; the training vertices among
// them are the seeds.
type subgraph struct {
	graph    *graph.CSR
	training []bool
	seeds    int
	seed     uint64
}

func newSubgraph(g *graph.CSR, seeds []uint32, seed uint64) subgraph {
	s := subgraph{graph: g, training: make([]bool, g.Nodes()), seeds: len(seeds), seed: seed}
	for _, v := range seeds {
		s.training[v] = true
	}
	return s
}

// induce finds the edges between the vertices of b, and the seeds. weigh, if given,
// is what an edge from u to v counts beside its own weight.
func (s *subgraph) induce(b *Batch, t *table, weigh func(u, v uint32, edge int64) float64) {
	x := &b.Blocks[0]
	x.Dst, x.Src = len(b.Vertices), len(b.Vertices)
	for i, v := range b.Vertices {
		if s.training[v] {
			b.Seeds = append(b.Seeds, uint32(i))
		}
		for e := s.graph.Indptr[v]; e < s.graph.Indptr[v+1]; e++ {
			u := s.graph.Indices[e]
			at, ok := t.find(u)
			if !ok {
				continue
			}
			x.Indices = append(x.Indices, at)
			if s.graph.EdgeDim > 0 {
				x.Places = append(x.Places, e)
			}
			switch {
			case weigh != nil:
				x.Weights = append(x.Weights, float32(weigh(u, v, e)*weight(s.graph, e)))
			case s.graph.Weights != nil:
				x.Weights = append(x.Weights, s.graph.Weights[e])
			}
		}
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
}
