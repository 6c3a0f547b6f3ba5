package innet

import (
	"math"
	"testing"

	"starling/internal/testseed"
)

// TestFixedPoint: instructions for four numbers give the bits of the formulas, whatever the length and the exponent.
func TestFixedPoint(t *testing.T) {
	r := testseed.Rand(t)
	for range 3000 {
		n, e := r.IntN(80), r.IntN(60)-30
		if r.IntN(10) == 0 {
			e *= 33 // more than one power of two
		}
		x, most := make([]float64, n), 0.0
		for i := range x {
			x[i] = math.Ldexp(r.Float64()*2-1, e)
			if r.IntN(4) == 0 { // halves, which go to even
				x[i] = math.Ldexp(float64(r.IntN(2001)-1000)+0.5, e-20)
			}
			most = max(most, math.Abs(x[i]))
		}
		shift := shiftOf(exponentOf(most), 1+r.IntN(200))
		lanes, wide := make([]int32, n+r.IntN(9)), make([]int64, n)
		for i := range lanes {
			lanes[i] = 7
		}
		quantise(lanes, x, shift)
		scale, more := powers(shift)
		for i, got := range lanes {
			want := int32(0)
			if i < n {
				want = int32(math.RoundToEven(x[i] * scale * more))
				wide[i] = int64(got)
			}
			if got != want {
				t.Fatalf("lane %d of %d: %d, want %d", i, n, got, want)
			}
		}
		back, want := make([]float64, n), make([]float64, n)
		dequantiseLanes(back, lanes, shift)
		dequantise(want, wide, shift)
		for i := range back {
			if back[i] != want[i] {
				t.Fatalf("number %d of %d: %g, want %g", i, n, back[i], want[i])
			}
		}
	}
}
