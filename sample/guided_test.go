package sample

import (
	"math"
	"slices"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
	"starling/rng"
)

// oneVertex is a graph whose vertex 0 has degree in-edges, from vertices 1 on.
func oneVertex(degree int) *graph.CSR {
	g := &graph.CSR{Indptr: make([]int64, degree+2)}
	for u := range degree {
		g.Indices = append(g.Indices, uint32(u+1))
	}
	for v := 1; v < len(g.Indptr); v++ {
		g.Indptr[v] = int64(degree)
	}
	return g
}

// TestGuidedDraws counts how often each of ten neighbours is drawn, of which the last five are
// remote. With one draw its probability is its weight over the sum of weights.
func TestGuidedDraws(t *testing.T) {
	key := rng.New(testseed.New(t))
	const draws = 40000
	for _, c := range []struct {
		deviation float64
		masks     [5]float64
		want      [5]float64 // probabilities of the remote ones, by hand
	}{
		{0, [5]float64{1, 1, 1, 1, 1}, [5]float64{0.1, 0.1, 0.1, 0.1, 0.1}},
		// Weights 5·1 + 1: q = 1/6.
		{0, [5]float64{0.4, 0.3, 0.1, 0.1, 0.1}, [5]float64{0.4 / 6, 0.3 / 6, 0.1 / 6, 0.1 / 6, 0.1 / 6}},
		// q' = 1/6 + 0.1 = 4/15, divided in the same proportions.
		{0.1, [5]float64{0.4, 0.3, 0.1, 0.1, 0.1}, [5]float64{0.4 * 4 / 15, 0.3 * 4 / 15, 0.1 * 4 / 15, 0.1 * 4 / 15,
			0.1 * 4 / 15}},
		// q' is the even share at most: 1/2.
		{0.9, [5]float64{0.4, 0.3, 0.1, 0.1, 0.1}, [5]float64{0.2, 0.15, 0.05, 0.05, 0.05}},
	} {
		n := &Neighbour{Graph: oneVertex(10)}
		guide := &Guide{Deviation: c.deviation, Mask: func(u uint32) (float64, bool) {
			if u <= 5 {
				return 1, false
			}
			return c.masks[u-6], true
		}}
		var x Block
		counts := make([]float64, 11)
		d := n.Drawer()
		for i := range uint64(draws) {
			d.Draw(&x, []uint32{0}, 1, key.Fold(i), nil, guide)
			counts[x.Indices[0]]++
			if x.RowWeights[0] != 10 {
				t.Fatalf("an edge counts %g", x.RowWeights[0])
			}
		}
		for u, want := range c.want {
			got := counts[6+u] / draws
			if sigma := math.Sqrt(want * (1 - want) / draws); math.Abs(got-want) > 5*sigma {
				t.Errorf("deviation %g: remote neighbour %d is drawn with probability %.4f, want %.4f", c.deviation, u, got,
					want)
			}
		}
	}
}

// TestGuidedDrawsAreDistinct: as many as without a guide, none twice; and with masks of one the same.
func TestGuidedDrawsAreDistinct(t *testing.T) {
	key := rng.New(testseed.New(t))
	n := &Neighbour{Graph: oneVertex(90)}
	var plain, x Block
	for i := range uint64(200) {
		k := key.Fold(i)
		fanout := 1 + k.IntN(0, 95)
		ones := &Guide{Deviation: k.Float64(1), Mask: func(u uint32) (float64, bool) { return 1, u%3 == 0 }}
		d := n.Drawer()
		d.Draw(&plain, []uint32{0}, fanout, k, nil, nil)
		if d.Draw(&x, []uint32{0}, fanout, k, nil, ones); !slices.Equal(x.Indices, plain.Indices) {
			t.Fatalf("masks of one draw %v, none %v", x.Indices, plain.Indices)
		}
		some := &Guide{Deviation: k.Float64(1), Mask: func(u uint32) (float64, bool) {
			return k.Float64(uint64(u)) + 1e-3, u%3 == 0
		}}
		d.Draw(&x, []uint32{0}, fanout, k, nil, some)
		got := slices.Clone(x.Indices)
		slices.Sort(got)
		if len(slices.Compact(got)) != len(plain.Indices) || !slices.Equal(x.RowWeights, plain.RowWeights) {
			t.Fatalf("fanout %d: %v, which count %v; %d without a guide", fanout, x.Indices, x.RowWeights,
				len(plain.Indices))
		}
	}
}
