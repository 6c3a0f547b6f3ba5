package train

import (
	"cmp"
	"slices"

	"starling/sample"
	"starling/tensor"
)

// NegativeOptions say what negatives a pair has, other than some that are drawn for it.
type NegativeOptions struct {
	// Hard draws as many candidates for each negative. A step scores them at its weights and learns from those with the
	// highest scores, since most others a model tells from edges by itself (as in PinSage, Ying et al., KDD 2018, §3.3,
	// with candidates by score, not by rank); 0: none.
	Hard int
	// Shared are negatives that the pairs of a batch share; nil: none. Its Each is PerPair.
	Shared *sample.Shared
}

// candidates is how many vertices are drawn for a pair that learns from some negatives.
func (o *NegativeOptions) candidates(negatives int) int { return negatives * max(1, o.Hard) }

// Candidates is how many vertices are drawn for a pair.
func (o *LinkOptions) Candidates() int { return o.candidates(o.PerPair) }

// Candidates is how many vertices are drawn for a pair.
func (o *PairOptions) Candidates() int { return o.candidates(o.PerPair) }

// hardest are pairs of rows z with the PerPair negatives of every positive that have the highest scores. The first
// pairs are positives, then come the candidates of each. Of equal scores the first drawn are taken.
func (l *Links) hardest(z tensor.Matrix, left, right []uint32, positives int) (hardLeft, hardRight []uint32) {
	each := l.link.Candidates()
	if each == l.link.PerPair || positives == 0 {
		return left, right
	}
	scores := l.Scores(z, left[positives:], right[positives:])
	hardLeft, hardRight = slices.Clone(left[:positives]), slices.Clone(right[:positives])
	order := make([]int, each)
	for i := range positives {
		own := scores[i*each : (i+1)*each]
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(own[b], own[a]) })
		for _, k := range order[:l.link.PerPair] {
			at := positives + i*each + k
			hardLeft, hardRight = append(hardLeft, left[at]), append(hardRight, right[at])
		}
	}
	return hardLeft, hardRight
}
