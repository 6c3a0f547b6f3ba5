package coflow

import (
	"math/rand/v2"
	"testing"
)

// randomSizes are some of many kinds: full, sparse, skewed, with empty rows.
func randomSizes(r *rand.Rand) [][]int64 {
	n := 1 + r.IntN(9)
	a := make([][]int64, n)
	some, top := r.Float64(), int64(1)<<r.IntN(40)
	for i := range a {
		a[i] = make([]int64, n)
		for j := range a[i] {
			if i != j && r.Float64() < some {
				a[i][j] = r.Int64N(top + 1)
			}
		}
	}
	return a
}

// drains fails unless the phases send exactly the sizes, one receiver per sender and back.
func drains(t *testing.T, sizes [][]int64, phases []Matching) {
	t.Helper()
	left := clone(sizes)
	for _, m := range phases {
		taken := make([]bool, len(sizes))
		for i, j := range m.To {
			if j < 0 {
				continue
			}
			if taken[j] || m.Bytes[i] > m.Length || m.Bytes[i] <= 0 {
				t.Fatalf("%v: phase %v", sizes, m)
			}
			taken[j] = true
			left[i][j] -= m.Bytes[i]
		}
	}
	for i := range left {
		for j, x := range left[i] {
			if x != 0 {
				t.Fatalf("%v: %d to %d has %d left", sizes, i, j, x)
			}
		}
	}
}

func TestMatchingsDrain(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	var worst, sum float64
	const rounds = 3000
	for range rounds {
		sizes := randomSizes(r)
		exact, greedy := exactMatchings(sizes), GreedyMatchings(sizes)
		drains(t, sizes, exact)
		drains(t, sizes, greedy)
		least := bottleneck(sizes)
		if got := length(exact); got != least {
			t.Fatalf("%v: exact takes %d, want the bottleneck %d", sizes, got, least)
		}
		if got := length(greedy); got < least {
			t.Fatalf("%v: greedy takes %d, less than the bottleneck %d", sizes, got, least)
		} else if least > 0 {
			gap := float64(got)/float64(least) - 1
			worst, sum = max(worst, gap), sum+gap
		}
	}
	t.Logf("greedy over exact: %.1f%% longer on average, %.0f%% at worst", 100*sum/rounds, 100*worst)
}

// assign agrees with trying all permutations.
func TestAssign(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2))
	for range 500 {
		sizes := randomSizes(r)
		if len(sizes) > 6 {
			continue
		}
		var got int64
		for i, j := range assign(sizes) {
			got += sizes[i][j]
		}
		if want := largest(sizes, 0, 0); got != want {
			t.Fatalf("%v: an assignment of %d, want %d", sizes, got, want)
		}
	}
}

// largest is the largest sum from row i on without the columns in used.
func largest(a [][]int64, i int, used uint) (most int64) {
	for j := range a {
		if i < len(a) && used>>j&1 == 0 {
			most = max(most, a[i][j]+largest(a, i+1, used|1<<j))
		}
	}
	return most
}
