package multilevel

import (
	"slices"
	"testing"
)

// One side of a graph, against a look at all vertices and edges; some have self-loops only.
func TestSubgraphIsOneSide(t *testing.T) {
	for seed := range uint64(20) {
		r, fine, coarse, _ := contracted(t, seed)
		loops := &levelGraph{n: 40, con: 1, off: make([]int64, 1)}
		for v := range uint32(40) {
			for range v % 3 {
				loops.adj = append(loops.adj, v)
			}
			if v < 20 {
				loops.adj = append(loops.adj, v^1)
			}
			loops.off = append(loops.off, int64(len(loops.adj)))
		}
		for _, g := range []*levelGraph{fine, coarse, loops} {
			side := make([]uint16, g.n)
			for v := range side {
				side[v] = uint16(r.key.IntN(uint64(v), 2))
			}
			sub, members, isolated := r.subgraph(g, side, 1)
			var alone []uint32
			at := 0
			for v := range uint32(g.n) {
				var row, weight []uint32
				for e := g.off[v]; e < g.off[v+1]; e++ {
					if u := g.adj[e]; side[u] == 1 {
						row, weight = append(row, u), append(weight, g.edgeWeight(e))
					}
				}
				switch {
				case side[v] != 1:
				case !slices.ContainsFunc(row, func(u uint32) bool { return u != v }):
					alone = append(alone, v)
				default:
					lo, hi := sub.off[at], sub.off[at+1]
					var got []uint32
					for _, u := range sub.adj[lo:hi] {
						got = append(got, members[u])
					}
					if members[at] != v || !slices.Equal(got, row) || !slices.Equal(sub.w[lo:hi], weight) ||
						sub.load(uint32(at), 0) != g.load(v, 0) {
						t.Fatalf("vertex %d has neighbours %v, weights %v, want %v, %v", v, got, sub.w[lo:hi], row,
							weight)
					}
					at++
				}
			}
			if at != sub.n || at != len(members) || !slices.Equal(isolated, alone) {
				t.Fatalf("%d vertices and %v set aside, want %d and %v", sub.n, isolated, at, alone)
			}
		}
	}
}
