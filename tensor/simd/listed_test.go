package simd

import (
	"slices"
	"testing"
)

// TestListed: one number out of place is found wherever it is, also by vectors, and numbers have no sign.
func TestListed(t *testing.T) {
	const most = 200
	for l := Generic; l <= Supported(); l++ {
		for n := range most {
			list := make([]uint32, n)
			for i := range list {
				list[i] = uint32(3*i) + 1<<31 - most
			}
			end := uint32(3*n) + 1<<31 - most
			if !Ascending(l, list) {
				t.Fatalf("%v: %d numbers are not ascending", l, n)
			}
			for i := range list {
				bad := slices.Clone(list)
				bad[i] = end
				if Ascending(l, bad) != (i == n-1) {
					t.Fatalf("%v: number %d of %d is %d: ascending %v", l, i, n, end, Ascending(l, bad))
				}
				bad[i] = list[max(i-1, 0)]
				if Ascending(l, bad) != (i == 0) {
					t.Fatalf("%v: number %d of %d is that before: ascending %v", l, i, n, Ascending(l, bad))
				}
			}
		}
	}
}
