package multilevel

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/partition/graphtest"
	"starling/rng"
)

// Balls of vertices without weights, and what they contract to, against those of vertices
// of weight one.
func TestEqualBallsAreBalls(t *testing.T) {
	for seed := range uint64(5) {
		graphs := graphtest.Shapes(t, rand.New(rand.NewPCG(seed, 13)))
		graphs["mesh"] = graphtest.Mesh(t, 30, 20)
		for name, csr := range graphs {
			if !csr.Symmetric() {
				continue
			}
			for _, most := range []int64{1, 3, 8, 1000} {
				labels, weights := make([][]uint32, 2), make([][]int64, 2)
				for i, weight := range [][]uint32{nil, slices.Repeat([]uint32{1}, csr.Nodes())} {
					r := newRun(context.Background(), rng.New(seed), 1, &memory{})
					g := r.finestGraph(&Problem{Graph: csr, Constraints: []Constraint{{Weight: weight}}})
					coarse, level := r.contract(g, r.cluster(g, []int64{most}, 0, true, r.key), false)
					labels[i], weights[i] = slices.Clone(level.to), slices.Clone(coarse.vw)
					r.mem.freeAll()
				}
				if !slices.Equal(labels[0], labels[1]) || !slices.Equal(weights[0], weights[1]) {
					t.Fatalf("%s, seed %d, at most %d: other clusters", name, seed, most)
				}
			}
		}
	}
}

// The favourite cluster as the code for small graphs finds it, against that for large ones.
func TestFavouritesOfSmallGraphs(t *testing.T) {
	for seed := range uint64(5) {
		r, fine, coarse, _ := contracted(t, seed)
		draw := rand.New(rand.NewPCG(seed, 14))
		graphs := []*levelGraph{fine, coarse}
		for _, g := range graphtest.Shapes(t, draw) {
			graphs = append(graphs, r.finestGraph(unweighted(g)))
		}
		for _, g := range graphs {
			c := &labelPropagation{r: r, g: g, key: rng.New(seed)}
			c.start()
			for v := range c.label {
				if draw.IntN(3) > 0 {
					c.label[v] = uint32(draw.IntN(g.n))
				}
			}
			sum := make([]uint32, g.n)
			for v := range uint32(g.n) {
				if got, want := c.favouriteSmall(v, sum), c.favourite(r.scratch[0], v); got != want {
					t.Fatalf("vertex %d of %d: %d instead of %d", v, g.n, got, want)
				}
			}
			if slices.ContainsFunc(sum, func(n uint32) bool { return n != 0 }) {
				t.Fatal("sums are not zero")
			}
		}
		r.mem.freeAll()
	}
}
