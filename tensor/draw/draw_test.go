package draw

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestAttentionDrawsAreIndependent: whether a coefficient is kept says nothing about that of another head, another
// source, or the edge the other way.
func TestAttentionDrawsAreIndependent(t *testing.T) {
	const n, share = 200_000, 0.4
	const threshold = (1 - share) * (1 << 16)
	kept := func(key uint64, dst, source uint32, head int) float64 {
		if float64(Attention(RowKey(key, dst), source, head)) >= threshold {
			return 1 - share
		}
		return -share
	}
	others := map[string]func(key uint64, dst, source uint32) float64{
		"head 1":       func(key uint64, dst, source uint32) float64 { return kept(key, dst, source, 1) },
		"head 7":       func(key uint64, dst, source uint32) float64 { return kept(key, dst, source, 7) },
		"next source":  func(key uint64, dst, source uint32) float64 { return kept(key, dst, source+1, 0) },
		"next vertex":  func(key uint64, dst, source uint32) float64 { return kept(key, dst+1, source, 0) },
		"the way back": func(key uint64, dst, source uint32) float64 { return kept(key, source, dst, 0) },
	}
	for name, other := range others {
		r := rand.New(rand.NewPCG(1, 2))
		sum, product := 0.0, 0.0
		for range n {
			key, dst, source := r.Uint64(), r.Uint32N(3000), 3000+r.Uint32N(3000)
			x := kept(key, dst, source, 0)
			sum, product = sum+x, product+x*other(key, dst, source)
		}
		deviation := share * (1 - share) / math.Sqrt(n)
		if math.Abs(product/n) > 5*deviation || math.Abs(sum/n) > 5*math.Sqrt(share*(1-share)/n) {
			t.Errorf("%s: mean %g, covariance %g, want 0 up to %g", name, sum/n, product/n, 5*deviation)
		}
	}
}
