package multilevel

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/rng"
)

// An edge stays if it is among the heaviest edges that one of its ends keeps.
func TestSparsifyKeepsTheHeaviest(t *testing.T) {
	type edge struct{ v, u, w uint32 }
	for seed := range uint64(20) {
		draw := rand.New(rand.NewPCG(seed, 11))
		n := 2 + draw.IntN(60)
		rows := make([][]edge, n)
		for v := range uint32(n) {
			for u := range v {
				if draw.IntN(3) > 0 {
					w := 1 + draw.Uint32N(4)
					rows[v], rows[u] = append(rows[v], edge{v, u, w}), append(rows[u], edge{u, v, w})
				}
			}
		}
		c := &levelGraph{n: n, off: make([]int64, 1)}
		bound, first := make([]int64, 1), make([]uint32, 1)
		keep := make([]int, n)
		for v, row := range rows {
			for _, e := range row {
				c.adj, c.w = append(c.adj, e.u), append(c.w, e.w)
			}
			c.off = append(c.off, int64(len(c.adj)))
			members, degrees := 1+draw.IntN(3), draw.IntN(20)
			first, bound = append(first, first[v]+uint32(members)), append(bound, bound[v]+int64(degrees))
			keep[v] = sparsifyFactor*degrees/members + 1
		}
		rank := func(e edge) uint64 { return (&levelGraph{adj: []uint32{e.u}, w: []uint32{e.w}}).rank(e.v, 0) }
		wanted := func(v uint32, e edge) bool {
			before := 0
			for _, o := range rows[v] {
				if rank(o) > rank(e) {
					before++
				}
			}
			return before < keep[v]
		}
		var want []edge
		for v, row := range rows {
			for _, e := range row {
				if wanted(uint32(v), e) || wanted(e.u, e) {
					want = append(want, e)
				}
			}
		}
		newRun(context.Background(), rng.New(seed), 2, &memory{}).sparsify(c, bound, first)
		var got []edge
		for v := range uint32(n) {
			for e := c.off[v]; e < c.off[v+1]; e++ {
				got = append(got, edge{v, c.adj[e], c.w[e]})
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}
