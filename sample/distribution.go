package sample

import (
	"sort"

	"starling/graph"
	"starling/rng"
)

// distribution draws numbers with given probabilities: it keeps their sums.
type distribution struct{ sums []float64 }

// newDistribution is of weights, which need not add up to one. It takes them over.
func newDistribution(weights []float64) *distribution {
	total := 0.0
	for i, w := range weights {
		total += w
		weights[i] = total
	}
	return &distribution{weights}
}

func (d *distribution) total() float64 {
	if len(d.sums) == 0 {
		return 0
	}
	return d.sums[len(d.sums)-1]
}

// probability is that of number i.
func (d *distribution) probability(i uint32) float64 {
	w := d.sums[i]
	if i > 0 {
		w -= d.sums[i-1]
	}
	return w / d.total()
}

// draw is draw i of a key.
func (d *distribution) draw(key rng.Key, i uint64) uint32 {
	return uint32(below(d.sums, key.Float64(i)*d.total()))
}

// below is the first place whose sum is over x. Rounding may put x at the total,
// which is in the last place that weighs anything.
func below(sums []float64, x float64) int {
	at := sort.Search(len(sums), func(i int) bool { return sums[i] > x })
	if at == len(sums) {
		at = sort.SearchFloat64s(sums, sums[len(sums)-1])
	}
	return at
}

// columnNorms are the squared norms of the columns of GCN's normalised adjacency
// Â = D^-1/2 (A+I) D^-1/2, by which FastGCN and GraphSAINT draw vertices:
//
//	‖Â(:,u)‖² = Σ over v with u in N(v), and u itself, of w_vu² / ((d_v+1)(d_u+1))
func columnNorms(g *graph.CSR, degrees []float64) []float64 {
	norms := make([]float64, g.Nodes())
	for v := range norms {
		norms[v] += 1 / (degrees[v] + 1)
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if u := g.Indices[e]; u != uint32(v) {
				w := weight(g, e)
				norms[u] += w * w / (degrees[v] + 1)
			}
		}
	}
	for u := range norms {
		norms[u] /= degrees[u] + 1
	}
	return norms
}

// degrees are sums of the weights of in-edges, without loops.
func degrees(g *graph.CSR) []float64 {
	d := make([]float64, g.Nodes())
	for v := range d {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if g.Indices[e] != uint32(v) {
				d[v] += weight(g, e)
			}
		}
	}
	return d
}

func weight(g *graph.CSR, edge int64) float64 {
	if g.Weights == nil {
		return 1
	}
	return float64(g.Weights[edge])
}
