package nn

import (
	"math"
	"slices"
)

// Scored are the scores of vertices for one class, and which of them are of it. Metrics of them depend on their
// order alone, not on how they are listed, so that they are the same on any number of workers.
type Scored struct {
	scores   []float64
	positive []bool
	ordered  bool
}

// NewScored takes the scores of vertices and whether each is positive.
func NewScored(scores []float64, positive []bool) *Scored {
	return &Scored{scores: scores, positive: positive}
}

// order sorts by falling score.
func (s *Scored) order() {
	if s.ordered {
		return
	}
	s.ordered = true
	at := make([]int32, len(s.scores))
	for i := range at {
		at[i] = int32(i)
	}
	slices.SortFunc(at, func(a, b int32) int {
		switch x, y := s.scores[a], s.scores[b]; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	scores, positive := make([]float64, len(at)), make([]bool, len(at))
	for i, k := range at {
		scores[i], positive[i] = s.scores[k], s.positive[k]
	}
	s.scores, s.positive = scores, positive
}

// cut is what is predicted positive where scores of at least Score are.
type cut struct{ score, right, predicted float64 }

// cuts calls f for every distinct score, the highest first, with the cut there and the one before.
func (s *Scored) cuts(f func(here, before cut)) {
	s.order()
	here := cut{score: math.Inf(1)}
	for i := 0; i < len(s.scores); {
		before := here
		for here.score = s.scores[i]; i < len(s.scores) && s.scores[i] == here.score; i++ {
			here.predicted++
			if s.positive[i] {
				here.right++
			}
		}
		f(here, before)
	}
}

// known is how many are positive. ok: there are positives and scores are numbers.
func (s *Scored) known() (known float64, ok bool) {
	for i, p := range s.positive {
		if p {
			known++
		}
		if math.IsNaN(s.scores[i]) {
			return 0, false
		}
	}
	return known, known > 0
}

// AUC is the area under the curve of true over false positive rates: the probability that a positive scores higher than
// a negative, ties counting half. It is NaN without positives or without negatives.
func (s *Scored) AUC() float64 {
	known, ok := s.known()
	negatives := float64(len(s.scores)) - known
	if !ok || negatives == 0 {
		return math.NaN()
	}
	area := 0.0
	s.cuts(func(here, before cut) {
		wrong := (here.predicted - here.right) - (before.predicted - before.right)
		area += wrong * (here.right + before.right) / 2
	})
	return area / known / negatives
}

// AveragePrecision is Σ (R_n - R_(n-1)) P_n over the distinct scores, as scikit-learn has it: precision at each
// of them, weighted by what recall gains there. It is NaN without positives.
func (s *Scored) AveragePrecision() float64 {
	known, ok := s.known()
	if !ok {
		return math.NaN()
	}
	sum := 0.0
	s.cuts(func(here, before cut) { sum += (here.right - before.right) * here.right / here.predicted })
	return sum / known
}

// Metric is auc or average_precision.
func (s *Scored) Metric(name string) float64 {
	if name == "auc" {
		return s.AUC()
	}
	return s.AveragePrecision()
}

// MeanOf is the mean of a metric over classes, those for which it is not defined left out; NaN where all are.
func MeanOf(values []float64) float64 {
	sum, n := 0.0, 0.0
	for _, x := range values {
		if !math.IsNaN(x) {
			sum, n = sum+x, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / n
}

// LogOdds is log(p/(1-p)) of a class, from logits of which the softmax is taken. It orders vertices as the
// probability does, but does not round to 0 or 1.
func LogOdds(logits []float64, class int) float64 {
	most := math.Inf(-1)
	for c, x := range logits {
		if c != class {
			most = max(most, x)
		}
	}
	if len(logits) == 2 {
		return logits[class] - most
	}
	sum := 0.0
	for c, x := range logits {
		if c != class {
			sum += math.Exp(x - most)
		}
	}
	return logits[class] - most - math.Log(sum)
}
