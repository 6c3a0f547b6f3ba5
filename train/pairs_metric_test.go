package train

import (
	"math"
	"testing"

	"starling/internal/testseed"
)

// TestPairsMetric: average precision equals the mean, over positives, of the precision at their scores.
func TestPairsMetric(t *testing.T) {
	draw := testseed.Rand(t)
	for range 50 {
		pos, neg := make([]float64, 1+draw.IntN(20)), make([]float64, 1+draw.IntN(20))
		for _, list := range [][]float64{pos, neg} {
			for i := range list {
				list[i] = float64(draw.IntN(12))
			}
		}
		want := 0.0
		for _, s := range pos {
			above := func(list []float64) (n float64) {
				for _, x := range list {
					if x >= s {
						n++
					}
				}
				return n
			}
			want += above(pos) / (above(pos) + above(neg)) / float64(len(pos))
		}
		if got := PairsMetric("average_precision", pos, neg); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v and %v: %g, want %g", pos, neg, got, want)
		}
		if PairsMetric("auc", pos, neg) != AreaUnderCurve(pos, neg) {
			t.Error("auc is another than the area under the curve")
		}
	}
	if x := PairsMetric("average_precision", []float64{math.NaN()}, []float64{1}); !math.IsNaN(x) {
		t.Errorf("of a score that is no number: %g", x)
	}
}
