package partition

import (
	"context"
	"math"
)

// Fennel is the streaming heuristic of Tsourakakis et al. (WSDM 2014): a
// vertex goes to
//
//	argmax over k of |N(v) ∩ P_k| - α·γ·|P_k|^(γ-1),   γ = 1.5, α = √K · m / n^1.5
//
// for n vertices and m undirected edges: neighbours attract, size repels, and a
// part never weighs more than its limit. With several constraints |P_k| is the
// mean size times how full the part is under the fullest.
func Fennel(ctx context.Context, p *Problem) ([]uint32, error) {
	return fennel(p).run(ctx, "fennel", p.passes())
}

func fennel(p *Problem) *stream {
	const gamma = 1.5
	n, m, k := float64(p.Graph.Nodes()), float64(p.Graph.Edges())/2, float64(p.Parts)
	alpha := math.Sqrt(k) * m / math.Pow(n, 1.5)
	mean := n / k
	return newStream(p, func(neighbours int, fill float64) float64 {
		return float64(neighbours) - alpha*gamma*math.Sqrt(fill*mean)
	})
}
