package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"starling/nn"
)

// hitsOf are the k of hits@k among others; 100 only where there are as many.
func hitsOf(others int) []int {
	if others < 100 {
		return []int{1, 3, 10}
	}
	return []int{1, 3, 10, 100}
}

// RankNames are the metrics of ranks among k others; k = 0: among those that all pairs share.
func RankNames(k int) []string {
	names, hits := []string{"mrr"}, sharedHits
	if k > 0 {
		hits = hitsOf(k)
	}
	for _, at := range hits {
		names = append(names, hitsName(at))
	}
	return names
}

// AreaUnderCurve is the probability that a positive scores higher than a negative,
// ties counting half: Mann and Whitney's rank statistic, exactly. It is NaN without
// either of them.
func AreaUnderCurve(pos, neg []float64) float64 {
	if len(pos) == 0 || len(neg) == 0 {
		return math.NaN()
	}
	type scored struct {
		score float64
		pos   bool
	}
	all := make([]scored, 0, len(pos)+len(neg))
	for _, s := range pos {
		all = append(all, scored{s, true})
	}
	for _, s := range neg {
		all = append(all, scored{s, false})
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	wins, below := 0.0, 0.0
	for lo := 0; lo < len(all); {
		hi, positives := lo, 0.0
		for ; hi < len(all) && all[hi].score == all[lo].score; hi++ {
			if all[hi].pos {
				positives++
			}
		}
		if hi == lo {
			return math.NaN() // a score that is no number
		}
		negatives := float64(hi-lo) - positives
		wins += positives * (below + negatives/2)
		below += negatives
		lo = hi
	}
	return wins / float64(len(pos)) / float64(len(neg))
}

// PairsMetric is auc, or average_precision as nn.Scored has it, of positives and negatives; NaN without either of them,
// or with a score that is no number.
func PairsMetric(name string, pos, neg []float64) float64 {
	area := AreaUnderCurve(pos, neg)
	if name != "average_precision" || math.IsNaN(area) {
		return area
	}
	is := make([]bool, len(pos)+len(neg))
	for i := range pos {
		is[i] = true
	}
	return nn.NewScored(slices.Concat(pos, neg), is).AveragePrecision()
}

// OfRanks reports whether a metric is of ranks: mrr, or hits@k.
func OfRanks(metric string) bool { return metric == "mrr" || strings.HasPrefix(metric, "hits@") }

// Ranks gives every positive its rank among its k negatives. The rank of a tie is in the middle. Beside a score that is
// no number a rank is none.
func Ranks(pos, neg []float64, k int) []float64 {
	ranks := make([]float64, len(pos))
	for i, s := range pos {
		ranks[i] = 1
		for _, other := range neg[i*k : (i+1)*k] {
			switch {
			case math.IsNaN(other), math.IsNaN(s):
				ranks[i] = math.NaN()
			case other > s:
				ranks[i]++
			case other == s:
				ranks[i] += 0.5
			}
		}
	}
	return ranks
}

// sharedHits are the k of hits@k among shared negatives: ogbl-ddi has 20, ogbl-collab 50, ogbl-ppa 100.
var sharedHits = []int{10, 20, 50, 100}

// SharedRanks gives every positive its rank among all negatives, a tie in the middle, and measures them: the mean of
// 1/rank, and as hits@k how many score higher than the k-th best of all negatives, as OGB's evaluator has it. With a
// score that is no number the measures are none.
func SharedRanks(pos, neg []float64) (ranks []float64, m map[string]float64) {
	neg = slices.Clone(neg)
	slices.Sort(neg)
	ranks, m = make([]float64, len(pos)), map[string]float64{"mrr": 0}
	for _, k := range sharedHits {
		m[hitsName(k)] = 0
	}
	for i, score := range pos {
		atLeast := len(neg) - sort.Search(len(neg), func(k int) bool { return neg[k] >= score })
		more := len(neg) - sort.Search(len(neg), func(k int) bool { return neg[k] > score })
		ranks[i] = 1 + float64(atLeast+more)/2
		m["mrr"] += 1 / ranks[i] / float64(len(pos))
		for _, k := range sharedHits {
			if atLeast < k {
				m[hitsName(k)] += 1 / float64(len(pos))
			}
		}
	}
	if slices.ContainsFunc(pos, math.IsNaN) || len(neg) > 0 && math.IsNaN(neg[0]) {
		for name := range m {
			m[name] = math.NaN()
		}
	}
	return ranks, m
}

// RankMeasures are the mean of 1/rank, and how many ranks are at most 1, 3, 10 and 100, of ranks among k others.
func RankMeasures(ranks []float64, k int) map[string]float64 {
	m := map[string]float64{"mrr": math.NaN()}
	hits := hitsOf(k)
	for _, at := range hits {
		m[hitsName(at)] = math.NaN()
	}
	if len(ranks) == 0 || k == 0 {
		return m
	}
	for name := range m {
		m[name] = 0
	}
	for _, rank := range ranks {
		m["mrr"] += 1 / rank / float64(len(ranks))
		for _, at := range hits {
			if rank <= float64(at) {
				m[hitsName(at)] += 1 / float64(len(ranks))
			}
		}
	}
	return m
}

func hitsName(k int) string { return fmt.Sprintf("hits@%d", k) }
