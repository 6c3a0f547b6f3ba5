package sample

import (
	"math"

	"starling/graph"
	"starling/rng"
)

// SAINTNodeDraws is GraphSAINT's node sampler: n independent draws with q(u) ∝ ‖Â(:,u)‖².
// With n draws
//
//	p_v  = 1 - (1-q_v)^n
//	p_uv = 1 - (1-q_u)^n - (1-q_v)^n + (1-q_u-q_v)^n
type SAINTNodeDraws struct {
	q *Distribution
	n int
}

// NewSAINTNodeDraws draws n vertices with probabilities in proportion to norms, which it
// overwrites.
func NewSAINTNodeDraws(norms []float64, n int) *SAINTNodeDraws {
	return &SAINTNodeDraws{q: NewDistribution(norms), n: n}
}

// NewSAINTNodes draws size vertices per batch.
func NewSAINTNodes(g *graph.CSR, seeds []uint32, size int, seed uint64) (*SAINT, error) {
	if err := nonNegative(g); err != nil {
		return nil, err
	}
	d := NewSAINTNodeDraws(columnNorms(g, degrees(g)), size)
	return newSAINT(g, seeds, d, size, seed), nil
}

// nonNegative checks the weights, if there are any.
func nonNegative(g *graph.CSR) error {
	if g.Weights == nil {
		return nil
	}
	return CheckWeights(g)
}

// Vertices calls take for every vertex drawn.
func (s *SAINTNodeDraws) Vertices(key rng.Key, take func(uint32)) {
	for i := range s.n {
		take(s.q.Draw(key, uint64(i)))
	}
}

// Any reports whether a vertex is drawn that is one of some.
func (s *SAINTNodeDraws) Any(key rng.Key, is func(uint32) bool) bool {
	for i := range s.n {
		if is(s.q.Draw(key, uint64(i))) {
			return true
		}
	}
	return false
}

// Vertex is the probability that v is drawn.
func (s *SAINTNodeDraws) Vertex(v uint32) float64 { return 1 - never(s.q.Probability(v), s.n) }

// Edge is the probability that u and v both are.
func (s *SAINTNodeDraws) Edge(u, v uint32, _ int64) float64 {
	return both(s.q.Probability(u), s.q.Probability(v), 0, s.n)
}

// never is the probability that none of n draws is of something with probability q.
func never(q float64, n int) float64 { return math.Exp(float64(n) * math.Log1p(-min(q, 1))) }

// both is the probability that n draws have one of u's outcomes, of probability qu,
// and one of v's; qboth is of the outcomes that are both's.
func both(qu, qv, qboth float64, n int) float64 {
	return 1 - never(qu, n) - never(qv, n) + never(qu+qv-qboth, n)
}
