package report

import (
	"fmt"
	"math"
	"slices"
)

// Difference is what a comparison can say of the times of two rows. A ratio is claimed only where it is told: the same
// run twice differs too, by what other load leaves of the machine.
type Difference string

const (
	Told     Difference = "told"
	Equal    Difference = "within the spread"
	OneRound Difference = "not told by one round"
)

// enoughEpochs of each row, all of them slower than all of the other's, are chance in less than 1 of 100 cases.
const enoughEpochs = 5

// differs is what can be said of a row beside another: over several rounds, that means are further apart than both
// spreads; of one round, that all epochs of one are slower than all of the other.
func (r *CompareRow) differs(o *CompareRow) Difference {
	if r == o {
		return Told
	}
	if min(r.Rounds, o.Rounds) > 1 {
		if math.Abs(float64(r.MeanSeconds-o.MeanSeconds)) <= r.noise()+o.noise() {
			return Equal
		}
		return Told
	}
	if min(r.timed, o.timed) >= enoughEpochs && (r.Spread.Max < o.Spread.Min || o.Spread.Max < r.Spread.Min) {
		return Told
	}
	return OneRound
}

// noise is by how much a row's mean may be off: half the distance of the quartiles, or of the rounds.
func (r *CompareRow) noise() float64 {
	rounds := slices.Max(r.RoundSeconds) - slices.Min(r.RoundSeconds)
	return float64(max(rounds, r.Spread.Q3-r.Spread.Q1)) / 2
}

// speedup is the cell of the table.
func (r *CompareRow) speedup() string {
	switch r.Difference {
	case Equal:
		return "about equal"
	case OneRound:
		return "unclear"
	}
	return times(r.Speedup)
}

// over is how fast a row is beside another, in words.
func (r *CompareRow) over(o *CompareRow) string {
	switch r.differs(o) {
	case Equal:
		return "about as fast as " + o.Strategy
	case OneRound:
		return "one round does not tell it from " + o.Strategy
	}
	return fmt.Sprintf("%s over %s", times(o.MeanSeconds/r.MeanSeconds), o.Strategy)
}

// needsRounds says what tells rows apart that one round does not; "": all are told.
func (c *Comparison) needsRounds() string {
	if !slices.ContainsFunc(c.Rows, func(r CompareRow) bool { return r.Difference == OneRound }) {
		return ""
	}
	return "one round: no spread between rounds is measured, and unclear differences may be chance; use --rounds 3"
}
