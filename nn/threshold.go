package nn

import (
	"math"
	"slices"
)

// Best is the probability from which on to predict positive: where a metric of the decisions is largest, or F1 of the
// positive class if the metric is none of decisions. It is in the middle between two scores, in log-odds, so that
// rounding changes no decision; of equally good ones it is the highest. ½ without positives.
func (s *Scored) Best(metric string) float64 {
	known, ok := s.known()
	if !ok {
		return 0.5
	}
	n := float64(len(s.scores))
	best, at, next := math.Inf(-1), 0.0, math.NaN()
	var last float64
	s.cuts(func(here, before cut) {
		if before.predicted > 0 && last == at && math.IsNaN(next) {
			next = here.score
		}
		last = here.score
		if value := cutMetric(metric, n, known, here); value > best {
			best, at, next = value, here.score, math.NaN()
		}
	})
	if math.IsNaN(next) { // all are positive
		next = at - 1
	}
	return sigmoid(at + (next-at)/2)
}

// decided are the metrics that a threshold is chosen by.
var decided = []string{"accuracy", "balanced_accuracy", "macro_f1", "mcc"}

// cutMetric is a metric of the decisions at a cut, of n vertices of which some are positive.
func cutMetric(name string, n, known float64, c cut) float64 {
	if !slices.Contains(decided, name) {
		return ratio(2*c.right, c.predicted+known)
	}
	wrong := c.predicted - c.right
	negative := n - known
	k := NewClassCounts(2)
	k[0], k[1] = n, c.right+negative-wrong
	copy(k.Right(), []float64{negative - wrong, c.right})
	copy(k.Predicted(), []float64{n - c.predicted, c.predicted})
	copy(k.Known(), []float64{negative, known})
	return k.Metric(name, TaskClassify)
}
