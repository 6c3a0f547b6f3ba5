package store

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAdamKernelIsTheFallback: the vector kernels have every bit of the loops in Go, for widths with a rest and for
// numbers of any size, zeros of both signs and infinities among them.
func TestAdamKernelIsTheFallback(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	number := func() float32 {
		switch r.IntN(20) {
		case 0:
			return 0
		case 1:
			return float32(math.Copysign(0, -1))
		case 2:
			return float32(math.Inf(1 - 2*r.IntN(2)))
		case 3:
			return math.SmallestNonzeroFloat32 * float32(r.IntN(9))
		}
		return float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(30)-15)))
	}
	k := newAdamFactors(0.01/(1-math.Pow(beta1, 3)), 1/(1-math.Pow(beta2, 3)))
	for width := range 40 {
		x, m, s, g := make([]float32, width), make([]float32, width), make([]float32, width), make([]float32, width)
		for c := range width {
			x[c], m[c], s[c], g[c] = number(), number(), float32(math.Abs(float64(number()))), number()
		}
		sum, other := make([]float64, width), make([]float64, width)
		for c := range sum {
			sum[c] = float64(number())
			other[c] = sum[c] + float64(g[c])
		}
		addRow(sum, g)
		sameBits(t, "sums", sum, other)
		rows := [2][3][]float32{{x, m, s}, {slices.Clone(x), slices.Clone(m), slices.Clone(s)}}
		adamRow(rows[0][0], rows[0][1], rows[0][2], sum, k)
		for c := range width { // rows of one number have no vectors
			adamRow(rows[1][0][c:c+1], rows[1][1][c:c+1], rows[1][2][c:c+1], sum[c:c+1], k)
		}
		for i, name := range []string{"rows", "first moments", "second moments"} {
			sameBits(t, name, rows[0][i], rows[1][i])
		}
	}
}

// sameBits compares numbers bit by bit; one that is not a number equals any other.
func sameBits[F float32 | float64](t *testing.T, name string, got, want []F) {
	t.Helper()
	for c := range want {
		a, b := float64(got[c]), float64(want[c])
		if math.Float64bits(a) != math.Float64bits(b) && !(math.IsNaN(a) && math.IsNaN(b)) {
			t.Fatalf("%s of %d numbers: %g at %d, expected %g", name, len(want), a, c, b)
		}
	}
}

func BenchmarkAdamRow(b *testing.B) {
	const width = 100
	x, m, s, g := make([]float32, width), make([]float32, width), make([]float32, width), make([]float64, width)
	for c := range g {
		g[c] = float64(c)
	}
	k := newAdamFactors(0.01, 2)
	for b.Loop() {
		adamRow(x, m, s, g, k)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/width, "ns/number")
}
