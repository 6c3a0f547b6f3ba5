package table

import (
	"math"
	"testing"
)

func TestFromHalf(t *testing.T) {
	for h, want := range map[uint16]float32{0: 0, 1: 1.0 / (1 << 24), 0x3ff: 1023.0 / (1 << 24),
		0x400: 1.0 / (1 << 14), 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x3555: 0.33325195} {
		if got := fromHalf(h); got != want {
			t.Errorf("%#x is %g, want %g", h, got, want)
		}
	}
	if x := fromHalf(0xfc00); !math.IsInf(float64(x), -1) {
		t.Errorf("0xfc00 is %g", x)
	}
	if x := fromHalf(0x7e00); x == x {
		t.Errorf("0x7e00 is %g", x)
	}
}
