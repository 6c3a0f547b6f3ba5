package sample

import (
	"math"

	"starling/graph"
	"starling/partition"
)

// Access is how probable it is that the batches of a worker need vertices: neighbourhood expansion computed instead
// of drawn (Kaler et al., "Communication-Efficient Graph Neural Networks with Probabilistic Neighborhood Expansion
// Analysis and Caching", MLSys 2023, §3). With p_0 that a vertex is a seed, d(v) in-edges and a fanout f,
//
//	p_h+1(u) = 1 − (1 − p_h(u)) · Π_{u → v} (1 − p_h(v) · a(v)),   a(v) = min(1, f_h / d(v))
//
// and with replacement a(v) = 1 − (1 − 1/d(v))^f_h.
//
// Of several batches of one epoch together, in which a seed comes once, c stands for p: v is there at all with
// probability c(v), then m/c times with m the sum of p over the batches, and its draws miss u in all of them with
//
//	1 − c(v) + c(v) · (1 − a(v))^(m/c)
//
// Vertices are taken for independent, so these are estimates. They go by number in the partition.
type Access struct {
	Batch  []float32 // that a batch needs a vertex
	Counts []float32 // that one of the first batches of an epoch does
}

// NewAccess returns the access of batches whose seeds have the given probabilities, by fanouts from the seeds on
// (below 0: all neighbours), for the first batches of an epoch. parts are all of a partition.
func NewAccess(parts []*partition.Part, seed []float32, fanouts []int, replace bool, batches int) *Access {
	n := float64(batches)
	a := &Access{Batch: seed, Counts: make([]float32, len(seed))}
	// Logarithms of the probabilities that a vertex is not needed.
	without := [2][]float32{make([]float32, len(seed)), make([]float32, len(seed))}
	for v, p := range seed {
		a.Counts[v] = float32(min(1, n*float64(p)))
		without[0][v], without[1][v] = Without(p), Without(a.Counts[v])
	}
	for _, f := range fanouts {
		for _, p := range parts {
			a.spread(p, f, replace, n, without)
		}
		next := &Access{make([]float32, len(seed)), make([]float32, len(seed))}
		for v := range seed {
			next.Batch[v], next.Counts[v] = Needed(without[0][v]), Needed(without[1][v])
		}
		a = next
	}
	return a
}

// Needed is the probability of what is left out with one of a logarithm.
func Needed(without float32) float32 {
	if without == 0 {
		return 0
	}
	return float32(-math.Expm1(float64(without)))
}

// Without is the logarithm of the probability that something does not happen.
func Without(p float32) float32 {
	if p == 0 {
		return 0
	}
	return float32(math.Log1p(-float64(p)))
}

// drawn is the probability that a draw by a fanout has one of some edges; below 0 it has all.
func drawn(fanout, edges int, replace bool) float64 {
	switch {
	case fanout < 0:
		return 1
	case replace:
		return 1 - math.Pow(1-1/float64(edges), float64(fanout))
	}
	return min(1, float64(fanout)/float64(edges))
}

// Reach adds to logarithms of the probabilities that vertices are not needed, which go by g's numbers, what draws of
// its vertices leave out that are needed with given probabilities: one hop of Access in one part.
func Reach(g *graph.CSR, need []float32, fanout int, replace bool, without []float32) {
	for v, p := range need {
		list := g.Neighbors(uint32(v))
		if p == 0 || len(list) == 0 || fanout == 0 {
			continue
		}
		one := float32(math.Log1p(-float64(p) * drawn(fanout, len(list), replace)))
		for _, u := range list {
			without[u] += one
		}
	}
}

// spread adds what the draws of a part's vertices leave out.
func (a *Access) spread(p *partition.Part, fanout int, replace bool, batches float64, without [2][]float32) {
	first, core := uint32(p.Book.Offsets[p.Meta.Part]), uint32(p.Core())
	for v := range core {
		list := p.In.Neighbors(v)
		once, counts := float64(a.Batch[first+v]), float64(a.Counts[first+v])
		if once == 0 || len(list) == 0 || fanout == 0 {
			continue
		}
		share := drawn(fanout, len(list), replace)
		one := float32(math.Log1p(-once * share))
		all := float32(math.Log1p(counts * (math.Pow(1-share, batches*once/counts) - 1)))
		for _, u := range list {
			if u >= core {
				u = p.Halo[u-core]
			} else {
				u += first
			}
			without[0][u] += one
			without[1][u] += all
		}
	}
}
