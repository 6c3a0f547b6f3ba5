package llm

import (
	"math"

	"starling/rng"
)

// tokens of one all-to-all: who sends how much to whom, and how busy experts are with it.
type tokens struct {
	sizes [][]int64 // bytes from member to member; the diagonal is 0
	back  [][]int64 // transposed: the way back
	load  []float64 // of a member's experts, relative to the mean
}

// variants is how many different all-to-alls of a model there are. The layer and the
// microbatch choose one at random.
const variants = 16

// drawTokens makes the all-to-alls of expert-parallel groups. The popularity of an expert is
// log-normal with the given deviation, a draw per expert.
func drawTokens(m *Model, skew float64, seed uint64) []*tokens {
	all := make([]*tokens, variants)
	sent := 2 * m.tokens() * float64(max(1, m.Top)) * float64(m.Hidden) // bytes per member
	for v := range all {
		key := rng.New(seed).Fold(uint64(v))
		shares := make([]float64, m.EP) // of the experts of each member
		var sum float64
		for e := range m.Experts {
			x := math.Exp(skew * key.Normal(uint64(e)))
			shares[e*m.EP/m.Experts] += x
			sum += x
		}
		all[v] = newTokens(shares, sum, sent)
	}
	return all
}

func newTokens(shares []float64, sum, sent float64) *tokens {
	n := len(shares)
	t := &tokens{sizes: square(n), back: square(n), load: make([]float64, n)}
	for i := range n {
		t.load[i] = shares[i] / sum * float64(n)
		for j := range n {
			if i != j {
				t.sizes[i][j] = int64(sent * shares[j] / sum)
				t.back[j][i] = t.sizes[i][j]
			}
		}
	}
	return t
}

func square(n int) [][]int64 {
	a := make([][]int64, n)
	for i := range a {
		a[i] = make([]int64, n)
	}
	return a
}

func (t *tokens) matrix(back int) [][]int64 {
	if back == 1 {
		return t.back
	}
	return t.sizes
}
