package collective

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAdders compares with one addition after the other, bit for bit, and that nothing
// beside the numbers is touched.
func TestAdders(t *testing.T) {
	t.Run("float32", testAdder[float32])
	t.Run("float64", testAdder[float64])
	if !canStep {
		t.Log("this processor has no wide additions: only the plain loop was tested")
	}
}

func testAdder[T Number](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	draw := func(n int) []T {
		x := make([]T, n)
		for i := range x {
			x[i] = T(rng.NormFloat64())
		}
		return x
	}
	for n := range 300 {
		at := rng.IntN(4)
		dst, src := draw(n+8), draw(n+8)
		want := slices.Clone(dst)
		for i := range n {
			want[at+i] += src[i]
		}
		adder[T]()(Bytes(dst[at:at+n]), Bytes(src[:n]))
		if !slices.Equal(dst, want) {
			t.Fatalf("%d numbers at %d: other sums than one by one", n, at)
		}
	}
}

// TestCopyBytes around the size from which it uses non-temporal stores.
func TestCopyBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	for _, n := range []int{0, 1, pastCache - 1, pastCache, pastCache + 1, pastCache + 3*stepBytes + 7} {
		at := rng.IntN(70)
		src, dst := randomBytes(rng, n+100), randomBytes(rng, n+100)
		want := slices.Concat(dst[:at], src[5:5+n], dst[at+n:])
		copyBytes(dst[at:at+n], src[5:5+n])
		if !slices.Equal(dst, want) {
			t.Errorf("%d bytes to %d: other bytes than copy's", n, at)
		}
	}
}
