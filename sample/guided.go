package sample

import (
	"math"

	"starling/rng"
)

// Guide has a vertex prefer some of its in-neighbours, as DGS does (Wan, Chen and Zhang, "DGS:
// Communication-Efficient Graph Sampling for Distributed GNN Training", ICNP 2022, §3.2.3): those
// that the worker which asks owns count 1, each remote one u its mask m_u in (0, 1].
// A vertex of d in-edges, of which R are remote, draws the same number as without a guide:
//
//	q = Σ_remote m_u / (d - R + Σ_remote m_u)    the share of remote weight
//	q' = min(q + ε, R/d)                         with the deviation, at most the even share
//
// The weights of remote edges are multiplied by the one factor that makes their share q', and
// edges are drawn by weight without replacement, one after the other; each counts d/fanout, as
// in Neighbour. Where all weights are equal the draw is Neighbour's own.
type Guide struct {
	// Mask is a source's, as the graph numbers it; remote is false of those that the worker owns.
	Mask func(source uint32) (m float64, remote bool)
	// Deviation is ε.
	Deviation float64
}

// guided is what a draw by a guide needs; memory is reused.
type guided struct {
	of      *Guide
	weights []float64
	remote  []bool
}

// pickGuided draws fanout < degree edges of v by the guide, and reports whether it did: equal
// weights draw as without one.
func (s *neighbours) pickGuided(key rng.Key, v uint32, first int64, degree, fanout int) bool {
	if s.guided.of == nil || !s.weigh(first, degree) {
		return false
	}
	c := &s.choose
	c.best = c.best[:0]
	key = key.Fold(uint64(v))
	for i, w := range s.guided.weights {
		// The k largest of w/E, with E exponential, are k successive draws by weight.
		c.offer(priority{w / -math.Log(1-key.Float64(uint64(i))), uint32(i)}, fanout)
	}
	for _, p := range c.best {
		s.picked = append(s.picked, first+int64(p.at))
	}
	return true
}

// weigh fills the weights of a vertex's edges by position, and reports whether any two differ.
func (s *neighbours) weigh(first int64, degree int) bool {
	g := &s.guided
	g.weights, g.remote = g.weights[:0], g.remote[:0]
	local, remote, sum := 0, 0, 0.0
	for i := range int64(degree) {
		at := first + i
		if s.of.Order != nil {
			at = first + int64(s.of.Order.At(at))
		}
		m, is := g.of.Mask(s.of.Graph.Indices[at])
		if g.weights, g.remote = append(g.weights, m), append(g.remote, is); is {
			remote++
			sum += m
		} else {
			local++
		}
	}
	if local > 0 && remote > 0 {
		g.deviate(float64(local), float64(remote), sum)
	}
	for _, w := range g.weights {
		if w != g.weights[0] {
			return true
		}
	}
	return false
}

// deviate multiplies the weights of remote edges by what makes their share q'.
func (g *guided) deviate(local, remote, sum float64) {
	even := remote / (local + remote)
	share := math.Min(sum/(local+sum)+g.of.Deviation, even)
	factor := share / (1 - share) * local / sum
	if share == even { // exactly, so that masks of one draw as without a guide
		factor = remote / sum
	}
	for i := range g.weights {
		if g.remote[i] {
			g.weights[i] *= factor
		}
	}
}
