package multilevel

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/partition/graphtest"
	"starling/rng"
)

// contracted is a small graph at a coarse level: contracted once from a random one.
func contracted(t *testing.T, seed uint64) (r *run, fine, coarse *levelGraph, to []uint32) {
	draw := rand.New(rand.NewPCG(seed, 6))
	g := graphtest.Blocks(t, draw, 300, 10, 8)
	r = newRun(context.Background(), rng.New(seed), 2, &memory{})
	degrees := make([]uint32, g.Nodes())
	for v := range degrees {
		degrees[v] = uint32(g.Degree(uint32(v)))
	}
	fine = r.finestGraph(&Problem{Graph: g, Constraints: []Constraint{{}, {Weight: degrees}}})
	label := r.cluster(fine, []int64{8, 60}, 2, false, r.key)
	load := map[uint32][2]int64{}
	for v, l := range label {
		s := load[l]
		load[l] = [2]int64{s[0] + 1, s[1] + fine.load(uint32(v), 1)}
		if c := load[l]; c[0] > 8 || c[1] > 60 && c[0] > 1 {
			t.Fatalf("a cluster of %v", c)
		}
	}
	coarse, l := r.contract(fine, label, false)
	return r, fine, coarse, l.to
}

// A contracted graph, against sums in a map; the mesh is contracted in several ranges.
func TestContractSumsEdges(t *testing.T) {
	for seed := range uint64(10) {
		_, fine, coarse, to := contracted(t, seed)
		checkContracted(t, fine, coarse, to)
	}
	for _, threads := range []int{1, 3} {
		r := newRun(context.Background(), rng.New(1), threads, &memory{})
		r.startPool(threads)
		fine := r.finestGraph(unweighted(graphtest.Mesh(t, 90, 80)))
		coarse, level := r.contract(fine, r.cluster(fine, []int64{8}, 0, true, r.key), false)
		checkContracted(t, fine, coarse, level.to)
		r.stopPool()
		r.mem.freeAll()
	}
}

func checkContracted(t *testing.T, fine, coarse *levelGraph, to []uint32) {
	want := map[[2]uint32]uint32{}
	for v := range uint32(fine.n) {
		for _, u := range fine.adj[fine.off[v]:fine.off[v+1]] {
			if to[u] != to[v] {
				want[[2]uint32{to[v], to[u]}]++
			}
		}
	}
	for v := range uint32(coarse.n) {
		for e := coarse.off[v]; e < coarse.off[v+1]; e++ {
			pair := [2]uint32{v, coarse.adj[e]}
			if want[pair] != coarse.w[e] {
				t.Fatalf("edge %v weighs %d, want %d", pair, coarse.w[e], want[pair])
			}
			delete(want, pair)
		}
	}
	if len(want) > 0 {
		t.Fatalf("missing: %v", want)
	}
	if !slices.Equal(fine.totals(), coarse.totals()) {
		t.Fatalf("loads %v became %v", fine.totals(), coarse.totals())
	}
}
