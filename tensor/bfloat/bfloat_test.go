package bfloat

import (
	"math"
	"testing"
)

func TestRoundsToNearestEven(t *testing.T) {
	for _, c := range []struct{ in, want float32 }{
		{1, 1}, {-2.5, -2.5}, {0, 0},
		{1 + 1./256, 1},           // half way, even below
		{1 + 3./256, 1 + 4./256},  // half way, even above
		{1 + 1.5/256, 1 + 2./256}, // over half
		{float32(math.Inf(1)), float32(math.Inf(1))},
		{math.MaxFloat32, float32(math.Inf(1))},
	} {
		if got := Widen(Round(c.in)); got != c.want {
			t.Errorf("%g rounds to %g, want %g", c.in, got, c.want)
		}
	}
	if nan := Widen(Round(float32(math.NaN()))); nan == nan {
		t.Error("NaN was lost")
	}
}

// TestRoundingCostsUpToAnEighthBit: a number of 8 bits is off by up to half of its last, 2^-8 of the smallest
// number of that size.
func TestRoundingCostsUpToAnEighthBit(t *testing.T) {
	worst := 0.0
	for bits := math.Float32bits(1); bits < math.Float32bits(2); bits += 1 << 8 {
		x := math.Float32frombits(bits)
		worst = max(worst, math.Abs(float64(Widen(Round(x))-x)/float64(x)))
	}
	if !(worst <= 1.0/256 && worst > 0.99/256) {
		t.Errorf("rounding costs up to %g of a number, want nearly 2^-8", worst)
	}
}
