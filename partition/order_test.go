package partition

import (
	"slices"
	"testing"

	"starling/graph"
	"starling/rng"
)

// TestOrder: each part's vertices once, in a part those with an edge to or from
// another part first, and each next to an earlier one where it has one.
func TestOrder(t *testing.T) {
	key := rng.New(5)
	for trial := range uint64(60) {
		key := key.Fold(trial)
		n, k := 1+key.IntN(0, 60), 1+key.IntN(1, 5)
		var src, dst []uint32
		for i := range uint64(key.IntN(2, 3*n)) {
			src, dst = append(src, uint32(key.Fold(3).IntN(i, n))), append(dst, uint32(key.Fold(4).IntN(i, n)))
		}
		g, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{Symmetrize: trial%2 == 0})
		if err != nil {
			t.Fatal(err)
		}
		parts := make([]uint32, n)
		for v := range parts {
			parts[v] = uint32(key.Fold(5).IntN(uint64(v), k))
		}
		boundary := make([]bool, n)
		for i := range src {
			if parts[src[i]] != parts[dst[i]] {
				boundary[src[i]], boundary[dst[i]] = true, true
			}
		}
		start, list := order(&graph.Dataset{Graph: g}, parts, k)
		sorted := slices.Sorted(slices.Values(list))
		for v, u := range sorted {
			if uint32(v) != u {
				t.Fatalf("vertex %d is missing or twice: %v", v, list)
			}
		}
		for p := range k {
			interior := false
			for _, v := range list[start[p]:start[p+1]] {
				if parts[v] != uint32(p) {
					t.Fatalf("vertex %d of part %d is in part %d", v, parts[v], p)
				}
				if interior = interior || !boundary[v]; interior && boundary[v] {
					t.Fatalf("boundary vertex %d after an interior one in %v", v, list[start[p]:start[p+1]])
				}
			}
		}
		if trial%2 == 0 && k == 1 {
			breadth(t, g, list)
		}
	}
}

// breadth checks the order of one part of a symmetric graph against distances.
func breadth(t *testing.T, g *graph.CSR, list []uint32) {
	at := make([]int, len(list))
	for i, v := range list {
		at[v] = i
	}
	last := -1
	for i, v := range list {
		first := i // the earliest neighbour, or itself where a component begins
		for _, u := range g.Neighbors(v) {
			first = min(first, at[u])
		}
		if first < last {
			t.Fatalf("vertex %d is met from place %d, the one before it from %d", v, first, last)
		}
		last = first
	}
}
