package simd

import (
	"math"
	"testing"
)

func TestBF16RoundsToNearestEven(t *testing.T) {
	for _, c := range []struct{ in, want float32 }{
		{1, 1}, {-2.5, -2.5}, {0, 0},
		{1 + 1./256, 1},           // half way, even below
		{1 + 3./256, 1 + 4./256},  // half way, even above
		{1 + 1.5/256, 1 + 2./256}, // over half
		{float32(math.Inf(1)), float32(math.Inf(1))},
		{math.MaxFloat32, float32(math.Inf(1))},
	} {
		if got := FromBF16(ToBF16(c.in)); got != c.want {
			t.Errorf("%g rounds to %g, want %g", c.in, got, c.want)
		}
	}
	if nan := FromBF16(ToBF16(float32(math.NaN()))); nan == nan {
		t.Error("NaN was lost")
	}
}

func TestLevelNamesRoundTrip(t *testing.T) {
	for l := Generic; l <= AMXFP16; l++ {
		if got, err := ParseLevel(l.String()); err != nil || got != l {
			t.Errorf("ParseLevel(%q) = %v, %v", l, got, err)
		}
	}
	if _, err := ParseLevel("sse9"); err == nil {
		t.Error("an unknown instruction set was accepted")
	}
	t.Logf("this processor: %v", Supported())
}
