package partition

import "context"

// LDG is linear deterministic greedy streaming (Stanton and Kliot, KDD 2012):
// a vertex goes to
//
//	argmax over k of |N(v) ∩ P_k| · (1 - |P_k| / C)
//
// with C the limit of a part. One pass reads the edges once, in order;
// restreaming passes come close to the best possible without coarsening.
func LDG(ctx context.Context, p *Problem) ([]uint32, error) {
	return ldg(p).run(ctx, "ldg", p.passes())
}

func ldg(p *Problem) *stream {
	return newStream(p, func(neighbours int, fill float64) float64 { return float64(neighbours) * (1 - fill) })
}

// passes of a streaming method by default: after five, restreaming
// gains little.
func (p *Problem) passes() int {
	if p.Passes > 0 {
		return p.Passes
	}
	return 5
}
