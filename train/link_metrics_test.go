package train

import (
	"math"
	"testing"

	"starling/internal/testseed"
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

// TestSharedRanks: ranks and hits@k among negatives that all share are what counting gives, and scores that are no
// number win nothing.
func TestSharedRanks(t *testing.T) {
	draw := testseed.Rand(t)
	for range 30 {
		pos, neg := make([]float64, 1+draw.IntN(20)), make([]float64, 1+draw.IntN(120))
		for _, list := range [][]float64{pos, neg} {
			for i := range list {
				list[i] = float64(draw.IntN(40))
			}
		}
		ranks, m := SharedRanks(pos, neg)
		mrr, hits := 0.0, 0.0
		for i, s := range pos {
			more, same := 0.0, 0.0
			for _, other := range neg {
				if other > s {
					more++
				} else if other == s {
					same++
				}
			}
			if ranks[i] != 1+more+same/2 {
				t.Errorf("rank %g of %g among %v", ranks[i], s, neg)
			}
			if mrr += 1 / ranks[i] / float64(len(pos)); more+same < 20 {
				hits += 1 / float64(len(pos))
			}
		}
		if math.Abs(m["mrr"]-mrr) > 1e-12 || math.Abs(m["hits@20"]-hits) > 1e-12 {
			t.Errorf("%v, want MRR %g, hits@20 %g", m, mrr, hits)
		}
	}
	nan := math.NaN()
	if _, m := SharedRanks([]float64{1, nan}, []float64{2}); !math.IsNaN(m["mrr"]) {
		t.Error("a pair without a score is ranked:", m)
	}
	if m := RankMeasures(Ranks([]float64{nan}, []float64{1, 2}, 2), 2); !math.IsNaN(m["mrr"]) || m["hits@1"] != 0 {
		t.Error("a pair without a score is ranked:", m)
	}
}
