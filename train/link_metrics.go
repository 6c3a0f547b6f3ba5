package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// hitsAt are the k of hits@k.
var hitsAt = []int{1, 3, 10}

// areaUnderCurve is the probability that a positive scores higher than a negative,
// ties counting half: Mann and Whitney's rank statistic, exactly. It is NaN without
// either of them.
func areaUnderCurve(pos, neg []float64) float64 {
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

// rankMeasures are the mean of 1/rank of every positive among its k negatives, and
// how many ranks are at most 1, 3 and 10. The rank of a tie is in the middle.
func rankMeasures(pos, neg []float64, k int) map[string]float64 {
	m := map[string]float64{"mrr": math.NaN()}
	for _, at := range hitsAt {
		m[hitsName(at)] = math.NaN()
	}
	if len(pos) == 0 || k == 0 {
		return m
	}
	for name := range m {
		m[name] = 0
	}
	for i, s := range pos {
		rank := 1.0
		for _, other := range neg[i*k : (i+1)*k] {
			switch {
			case other > s:
				rank++
			case other == s:
				rank += 0.5
			}
		}
		m["mrr"] += 1 / rank / float64(len(pos))
		for _, at := range hitsAt {
			if rank <= float64(at) {
				m[hitsName(at)] += 1 / float64(len(pos))
			}
		}
	}
	return m
}

func hitsName(k int) string { return fmt.Sprintf("hits@%d", k) }
