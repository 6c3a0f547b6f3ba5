package graph

import "sort"

// Reciprocity is the share of edges that have their reverse, self-loops left out: 1 of a
// symmetric graph, and of one without edges. Of large graphs about samples edges are looked
// at, evenly spaced. Neighbours must be in ascending order.
func (g *CSR) Reciprocity(samples int64) float64 {
	step := max(1, g.Edges()/max(samples, 1))
	all, both := 0, 0
	v := 0
	for e := int64(0); e < g.Edges(); e += step {
		for g.Indptr[v+1] <= e {
			v++
		}
		u := g.Indices[e]
		if int(u) == v {
			continue
		}
		all++
		list := g.Neighbors(u)
		if i := sort.Search(len(list), func(i int) bool { return list[i] >= uint32(v) }); i < len(list) &&
			list[i] == uint32(v) {
			both++
		}
	}
	if all == 0 {
		return 1
	}
	return float64(both) / float64(all)
}

// LeastWeight is the smallest weight of an edge, 0 of a graph without weights.
func (g *CSR) LeastWeight() float32 {
	least := float32(0)
	for i, w := range g.Weights {
		if i == 0 || w < least {
			least = w
		}
	}
	return least
}
