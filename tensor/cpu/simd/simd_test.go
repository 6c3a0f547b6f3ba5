package simd

import "testing"

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
