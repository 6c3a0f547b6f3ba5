package innet

import (
	"math"
	"slices"
	"testing"

	"starling/internal/testseed"
)

// TestAddLanes: instructions for units add as lane by lane does, whatever the length and wherever a lane overflows.
func TestAddLanes(t *testing.T) {
	if !canAddUnits {
		t.Skip("this processor has no instructions for units")
	}
	r := testseed.Rand(t)
	overflows := 0
	for range 2000 {
		n := r.IntN(9 * UnitLanes)
		a, b := make([]int32, n), make([]int32, n)
		for i := range a {
			a[i], b[i] = int32(r.Uint32())>>1, int32(r.Uint32())>>1
		}
		if n > 0 && r.IntN(2) == 0 {
			i := r.IntN(n)
			a[i], b[i] = math.MaxInt32-int32(r.IntN(3)), int32(r.IntN(5))
			if r.IntN(2) == 0 {
				a[i], b[i] = ^a[i], -b[i]
			}
		}
		want := slices.Clone(a)
		over := addEach(want, b)
		if over {
			overflows++
		}
		if got := addLanes(a, b); got != over || !slices.Equal(a, want) {
			t.Fatalf("%d lanes: overflow %v, want %v", n, got, over)
		}
	}
	if overflows == 0 || overflows == 2000 {
		t.Errorf("%d of 2000 overflowed", overflows)
	}
}
