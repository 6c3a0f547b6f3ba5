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
