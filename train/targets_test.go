package train

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
)

// TestScaleOfTargets: mean and deviation equal sums in wide arithmetic, for numbers of all sizes, and the same
// bits however the vertices are divided and ordered.
func TestScaleOfTargets(t *testing.T) {
	draw := testseed.Rand(t)
	for _, size := range []float64{1e-44, 1e-30, 1, 1e4, 1e30} {
		n := 2 + draw.IntN(300)
		l := &graph.Labels{Classes: 3}
		var list []uint32
		for v := range n {
			y := float32(size * (1 + draw.NormFloat64()))
			l.Values = append(l.Values, y, float32(10000)+float32(draw.NormFloat64()), -7.25)
			list = append(list, uint32(v))
		}
		got := scaleOf(targetSums(l, list), n)
		for k := range 2 {
			mean, deviation := widely(l, k, n)
			if math.Abs(got.Mean[k]-mean) > 1e-15*math.Abs(mean) ||
				math.Abs(got.Deviation[k]-deviation) > 1e-14*deviation {
				t.Errorf("size %g, target %d: %v and %v, want %v and %v", size, k, got.Mean[k], got.Deviation[k], mean,
					deviation)
			}
		}
		if got.Mean[2] != -7.25 || got.Deviation[2] != 1 {
			t.Errorf("equal targets have mean %g and deviation %g", got.Mean[2], got.Deviation[2])
		}
		for workers := 1; workers <= 5; workers++ {
			draw.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
			sums := make([]float64, 3*targetDigits)
			for w := range workers {
				for i, x := range targetSums(l, list[w*n/workers:(w+1)*n/workers]) {
					sums[i] += x
				}
			}
			other := scaleOf(sums, n)
			if !slices.Equal(other.Mean, got.Mean) || !slices.Equal(other.Deviation, got.Deviation) {
				t.Fatalf("%d workers: %v, want %v", workers, other, got)
			}
		}
	}
}

// widely are a target's mean and deviation, by sums of 2,000 bits.
func widely(l *graph.Labels, k, n int) (mean, deviation float64) {
	wide := func(x float64) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(x) }
	sum, squares := wide(0), wide(0)
	for v := range n {
		sum.Add(sum, wide(float64(l.Numbers(v)[k])))
	}
	middle := wide(0).Quo(sum, wide(float64(n)))
	for v := range n {
		apart := wide(0).Sub(wide(float64(l.Numbers(v)[k])), middle)
		squares.Add(squares, wide(0).Mul(apart, apart))
	}
	mean, _ = middle.Float64()
	deviation, _ = wide(0).Sqrt(squares.Quo(squares, wide(float64(n)))).Float64()
	return mean, deviation
}
