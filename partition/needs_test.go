package partition

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestNeeds compares bits and lists with a set, and counts how often a list of nearly distinct vertices is sorted.
func TestNeeds(t *testing.T) {
	defer func(least int) { leastSorted = least }(leastSorted)
	leastSorted = 16
	for _, k := range []int{1, 3, fewParts, fewParts + 1, 200} {
		const nodes, adds = 500, 5000
		r, n, seen := rand.New(rand.NewPCG(1, uint64(k))), newNeeds(k, nodes), map[uint64]bool{}
		sorted, last := 0, n.most
		for range adds {
			part, v := uint32(r.IntN(k)), uint32(r.IntN(nodes))
			n.add(part, v)
			seen[uint64(part)<<32|uint64(v)] = true
			if n.most != last {
				sorted, last = sorted+1, n.most
			}
		}
		if k > fewParts && (sorted == 0 || sorted > 20) {
			t.Errorf("%d parts: sorted %d times", k, sorted)
		}
		var want []uint64
		for x := range seen {
			want = append(want, x)
		}
		slices.Sort(want)
		list, first := n.byPart()
		var got []uint64
		for p := range k {
			for _, v := range list[first[p]:first[p+1]] {
				got = append(got, uint64(p)<<32|uint64(v))
			}
		}
		if !slices.Equal(got, want) || len(first) != k+1 {
			t.Errorf("%d parts: %d vertices, want %d", k, len(got), len(want))
		}
	}
}
