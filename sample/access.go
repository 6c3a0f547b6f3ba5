package sample

import (
	"math"

	"starling/partition"
)

// Access is how probable it is that the batches of a worker need vertices: neighbourhood expansion computed instead
// of drawn (Kaler et al., "Communication-Efficient Graph Neural Networks with Probabilistic Neighborhood Expansion
// Analysis and Caching", MLSys 2023, §3). With p_0 that a vertex is a seed, d(v) in-edges and a fanout f,
//
//	p_h+1(u) = 1 − (1 − p_h(u)) · Π_{u → v} (1 − p_h(v) · a(v)),   a(v) = min(1, f_h / d(v))
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

// NewAccess is the access to vertices for seeds which a batch has with given probabilities, by fanouts from the seeds on
// (below 0: all neighbours), for the first batches of an epoch. parts are all of a partition.
func NewAccess(parts []*partition.Part, seed []float32, fanouts []int, batches int) *Access {
	n := float64(batches)
	a := &Access{Batch: seed, Counts: make([]float32, len(seed))}
	// Logarithms of the probabilities that a vertex is not needed.
	without := [2][]float32{make([]float32, len(seed)), make([]float32, len(seed))}
	for v, p := range seed {
		a.Counts[v] = float32(min(1, n*float64(p)))
		without[0][v], without[1][v] = log1p(-p), log1p(-a.Counts[v])
	}
	for _, f := range fanouts {
		for _, p := range parts {
			a.spread(p, f, n, without)
		}
		next := &Access{make([]float32, len(seed)), make([]float32, len(seed))}
		for v := range seed {
			next.Batch[v], next.Counts[v] = chance(without[0][v]), chance(without[1][v])
		}
		a = next
	}
	return a
}

// chance is the probability of what is left out with one of a logarithm.
func chance(without float32) float32 {
	if without == 0 {
		return 0
	}
	return float32(-math.Expm1(float64(without)))
}

func log1p(x float32) float32 {
	if x == 0 {
		return 0
	}
	return float32(math.Log1p(float64(x)))
}

// spread adds what the draws of a part's vertices leave out.
func (a *Access) spread(p *partition.Part, fanout int, batches float64, without [2][]float32) {
	first, core := uint32(p.Book.Offsets[p.Meta.Part]), uint32(p.Core())
	for v := range core {
		list := p.In.Neighbors(v)
		once, counts := float64(a.Batch[first+v]), float64(a.Counts[first+v])
		if once == 0 || len(list) == 0 || fanout == 0 {
			continue
		}
		share := 1.0
		if fanout > 0 {
			share = min(1, float64(fanout)/float64(len(list)))
		}
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
