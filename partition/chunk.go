package partition

import (
	"context"
	"sort"
)

// Chunk divides the vertices, in the order of their numbers, into ranges of about
// equal numbers of in-edges (NeuGraph, ROC and NeutronStar partition so). It reads
// only the offsets, and is good if numbers follow a crawl or a mesh.
func Chunk(_ context.Context, p *Problem) ([]uint32, error) {
	g := p.Graph
	n := g.Nodes()
	parts := make([]uint32, n)
	lo := 0
	for k := range p.Parts {
		// A vertex counts a little, so that a graph without edges is divided too.
		weigh := func(v int) float64 { return float64(g.Indptr[v]) + float64(v)/float64(n) }
		want := weigh(n) * float64(k+1) / float64(p.Parts)
		hi := sort.Search(n, func(v int) bool { return weigh(v) >= want })
		if k == p.Parts-1 {
			hi = n
		}
		hi = min(max(hi, lo+1), n-(p.Parts-1-k)) // every part gets a vertex
		for v := lo; v < hi; v++ {
			parts[v] = uint32(k)
		}
		lo = hi
	}
	return parts, nil
}
