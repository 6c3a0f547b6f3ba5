package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomRanges are some of n rows or columns, and a copy.
func randomRanges(r *rand.Rand, n int) (one, same Ranges) {
	one = make(Ranges, RangesSize(n))
	for i := range n {
		if r.IntN(3) == 0 {
			one.join(i, float32(r.NormFloat64()))
		}
	}
	return one, slices.Clone(one)
}

// TestRanges: a range has the smallest size that is not zero and the largest.
func TestRanges(t *testing.T) {
	ranges := make(Ranges, RangesSize(40))
	for _, x := range []float32{0, -3, 0.25, 0} {
		ranges.join(33, x)
	}
	low, high := ranges.Of(33)
	if math.Float32frombits(low) != 0.25 || math.Float32frombits(high) != 3 {
		t.Errorf("the range is from %g to %g", math.Float32frombits(low), math.Float32frombits(high))
	}
	if low, high := ranges.Of(32); low != 0 || high != 0 {
		t.Errorf("the range of no numbers is from %d to %d", low, high)
	}
}

// TestRangesAgreeWithTwins: vectors find the wide ranges and the numbers below limits that plain loops find.
func TestRangesAgreeWithTwins(t *testing.T) {
	if Supported() < AVX512 {
		t.Skip("this processor has no AVX-512")
	}
	r := rand.New(rand.NewPCG(3, 9))
	bounds := RangeBounds{Least: 41 << 23, Most: 180 << 23, Span: 20 << 23, Top: 200 << 23}
	wide := 0
	for range 2000 {
		n := 1 + r.IntN(100)
		ranges, _ := randomRanges(r, n)
		for range r.IntN(3) {
			ranges.join(r.IntN(n), float32(math.Exp(30*r.NormFloat64())))
		}
		got, want := ranges.AnyWide(AVX512, &bounds), ranges.AnyWide(Generic, &bounds)
		if got != want {
			t.Fatalf("%v: wide %v, want %v", ranges, got, want)
		}
		if want {
			wide++
		}
		x, limit := randomSingles(r, n), make([]float32, n)
		if r.IntN(2) == 0 {
			limit[r.IntN(n)] = 1e3 * float32(r.NormFloat64())
		}
		if r.IntN(9) == 0 {
			limit[r.IntN(n)] = float32(math.NaN())
		}
		if got, want := AnyBelow(AVX512, x, limit, 1e-3), AnyBelow(Generic, x, limit, 1e-3); got != want {
			t.Fatalf("%v below %v: %v, want %v", x, limit, got, want)
		}
	}
	if wide < 200 || wide > 1800 {
		t.Errorf("%d of 2000 were wide: nothing was tested", wide)
	}
}
