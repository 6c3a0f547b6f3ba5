package generate

import (
	"fmt"
	"math"
)

// Random draws repeat edges, and repeats are dropped. To store as many edges as were asked
// for, more must be drawn.
//
// If a pair of vertices is drawn λ times on average, it occurs at all with probability
// 1-exp(-λ). Summed over pairs, M draws give about
//
//	M · mean over draws of (1-exp(-λ))/λ
//
// distinct edges. A pilot sample of draws gives the λ's; the mean over it is a function
// of M, which is solved for M.

// pilotDraws is the size of the pilot sample: its error in M is well below a percent.
const pilotDraws = 1 << 16

// selfLoop marks a draw that is always dropped.
var selfLoop = math.Inf(1)

// drawsFor finds how many draws give want distinct edges. rates[i] is how often
// the pair of pilot draw i would be drawn in want draws.
func drawsFor(want int64, rates []float64) (int64, error) {
	kept := func(factor float64) float64 {
		var sum float64
		for _, r := range rates {
			switch x := r * factor; {
			case math.IsInf(r, 1):
			case x < 1e-9:
				sum++
			default:
				sum += -math.Expm1(-x) / x
			}
		}
		return factor * sum / float64(len(rates))
	}
	const most = 16
	if len(rates) == 0 || want == 0 {
		return want, nil
	}
	if kept(most) < 1 {
		return 0, badParam("edges", fmt.Sprintf("more than the model can hold (%d draws give about %.0f different ones)", most*want, float64(want)*kept(most)),
			"fewer edges, more vertices, fewer communities or a milder power law")
	}
	lo, hi := 1.0, float64(most)
	for range 60 {
		if math.Round(lo*float64(want)) == math.Round(hi*float64(want)) {
			break // closer bounds would not change the number
		}
		if mid := (lo + hi) / 2; kept(mid) < 1 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return int64(math.Round(hi * float64(want))), nil
}

// drawn is how many distinct draws are wanted: half the stored edges if each is stored twice.
func (p Params) drawn() int64 {
	if p.Directed {
		return p.Edges
	}
	return p.Edges / 2
}
