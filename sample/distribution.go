package sample

import (
	"sort"

	"starling/graph"
	"starling/rng"
)

// Distribution draws numbers with given probabilities: it keeps their sums.
type Distribution struct{ sums []float64 }

// NewDistribution has probabilities in proportion to weights. It overwrites them.
func NewDistribution(weights []float64) *Distribution {
	total := 0.0
	for i, w := range weights {
		total += w
		weights[i] = total
	}
	return &Distribution{weights}
}

// Total is the sum of all weights.
func (d *Distribution) Total() float64 {
	if len(d.sums) == 0 {
		return 0
	}
	return d.sums[len(d.sums)-1]
}

// Probability returns the probability of number i.
func (d *Distribution) Probability(i uint32) float64 {
	w := d.sums[i]
	if i > 0 {
		w -= d.sums[i-1]
	}
	return w / d.Total()
}

// Draw is draw i of a key.
func (d *Distribution) Draw(key rng.Key, i uint64) uint32 {
	return uint32(below(d.sums, key.Float64(i)*d.Total()))
}

// among has the probabilities of some numbers alone; nil: they have none.
func (d *Distribution) among(ids []uint32) *Distribution {
	weights := make([]float64, len(ids))
	for i, id := range ids {
		weights[i] = d.Probability(id)
	}
	if out := NewDistribution(weights); out.Total() > 0 {
		return out
	}
	return nil
}

// below is the first position whose sum is above x. Rounding may put x at the total,
// which belongs to the last position with a weight.
func below(sums []float64, x float64) int {
	at := sort.Search(len(sums), func(i int) bool { return sums[i] > x })
	if at == len(sums) {
		at = sort.SearchFloat64s(sums, sums[len(sums)-1])
	}
	return at
}

// columnNorms are the squared norms of the columns of GCN's normalized adjacency
// Â = D^-1/2 (A+I) D^-1/2, by which FastGCN and GraphSAINT draw vertices:
//
//	‖Â(:,u)‖² = Σ over v with u in N(v), and u itself, of w_vu² / ((d_v+1)(d_u+1))
func columnNorms(g *graph.CSR, degrees []float64) []float64 {
	sums, norms := ColumnSums(g, degrees), make([]float64, g.Nodes())
	for u := range norms {
		norms[u] = sums[u].Float64() / (degrees[u] + 1)
	}
	return norms
}

// ColumnSums are the norms without the factor 1/(d_u+1). Of a part of a graph, whose vertices
// after the rows that g has are in-neighbours only, they are the sums over these rows, to be
// added to those of other parts.
func ColumnSums(g *graph.CSR, degrees []float64) []Sum {
	sums := make([]Sum, len(degrees))
	for v := range g.Nodes() {
		sums[v].Add(1 / (degrees[v] + 1))
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if u := g.Indices[e]; u != uint32(v) {
				w := weight(g, e)
				sums[u].Add(w * w / (degrees[v] + 1))
			}
		}
	}
	return sums
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
