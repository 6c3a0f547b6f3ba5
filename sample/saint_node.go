package sample

import (
	"math"

	"starling/graph"
	"starling/rng"
)

// saintNodes is GraphSAINT's node sampler: n independent draws with q(u) ∝ ‖Â(:,u)‖².
// With n draws
//
//	p_v  = 1 - (1-q_v)^n
//	p_uv = 1 - (1-q_u)^n - (1-q_v)^n + (1-q_u-q_v)^n
type saintNodes struct {
	q *distribution
	n int
}

// NewSAINTNodes draws size vertices a batch.
func NewSAINTNodes(g *graph.CSR, roots []uint32, size int, seed uint64) (*SAINT, error) {
	if err := nonNegative(g); err != nil {
		return nil, err
	}
	d := &saintNodes{q: newDistribution(columnNorms(g, degrees(g))), n: size}
	return newSAINT(g, roots, d, size, seed), nil
}

// nonNegative checks the weights, if there are any.
func nonNegative(g *graph.CSR) error {
	if g.Weights == nil {
		return nil
	}
	return checkWeights(g)
}

func (s *saintNodes) vertices(key rng.Key, take func(uint32)) {
	for i := range s.n {
		take(s.q.draw(key, uint64(i)))
	}
}

func (s *saintNodes) vertex(v uint32) float64 { return 1 - never(s.q.probability(v), s.n) }

func (s *saintNodes) edge(u, v uint32, _ int64) float64 {
	return both(s.q.probability(u), s.q.probability(v), 0, s.n)
}

// never is the probability that none of n draws is of something with probability q.
func never(q float64, n int) float64 { return math.Exp(float64(n) * math.Log1p(-min(q, 1))) }

// both is the probability that n draws have one of u's outcomes, of probability qu,
// and one of v's; qboth is of the outcomes that are both's.
func both(qu, qv, qboth float64, n int) float64 {
	return 1 - never(qu, n) - never(qv, n) + never(qu+qv-qboth, n)
}
