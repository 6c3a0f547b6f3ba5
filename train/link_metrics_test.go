package train

import (
	"math"
	"testing"

	"starling/rng"
)

// TestAreaUnderCurve compares with every positive against every negative, with ties.
func TestAreaUnderCurve(t *testing.T) {
	key := rng.New(4)
	for size := range uint64(30) {
		var pos, neg []float64
		for i := range size {
			pos = append(pos, float64(key.IntN(100*size+2*i, 6))+0.5)
			if i%3 > 0 {
				neg = append(neg, float64(key.IntN(100*size+2*i+1, 6))+0.5*float64(i%2))
			}
		}
		wins := 0.0
		for _, p := range pos {
			for _, n := range neg {
				if p > n {
					wins++
				} else if p == n {
					wins += 0.5
				}
			}
		}
		want := wins / float64(len(pos)*len(neg))
		if got := AreaUnderCurve(pos, neg); math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
			t.Fatalf("%d positives, %d negatives: %g, want %g", len(pos), len(neg), got, want)
		}
	}
	if a := AreaUnderCurve([]float64{math.NaN()}, []float64{1}); !math.IsNaN(a) {
		t.Errorf("a score that is no number gives %g", a)
	}
}

func TestRankMeasures(t *testing.T) {
	// Ranks: 1, 2.5 (one above, one tie), 4, 5.
	pos := []float64{9, 5, 1, 0}
	neg := []float64{1, 2, 3, 4, 6, 5, 1, 0, 2, 3, 4, 0, 1, 2, 3, 4}
	m := RankMeasures(Ranks(pos, neg, 4), 4)
	for name, want := range map[string]float64{"mrr": (1 + 1/2.5 + 1./4 + 1./5) / 4, "hits@1": 0.25, "hits@3": 0.5,
		"hits@10": 1} {
		if math.Abs(m[name]-want) > 1e-12 {
			t.Errorf("%s is %g, want %g", name, m[name], want)
		}
	}
	if m := RankMeasures(Ranks(nil, nil, 4), 4); !math.IsNaN(m["mrr"]) || !math.IsNaN(m["hits@1"]) {
		t.Errorf("nothing to rank: %v", m)
	}
}
