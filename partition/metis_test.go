package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/graph"
	"starling/partition/graphtest"
)

func metisOrSkip(t *testing.T, p *Problem) []uint32 {
	t.Helper()
	parts, err := Metis(context.Background(), p)
	if errors.Is(err, ErrNoMetis) {
		t.Skip(err)
	}
	var u *Unbalanced
	if err != nil && !errors.As(err, &u) {
		t.Fatal(err)
	}
	return parts
}

func TestMetisCutsBlocks(t *testing.T) {
	g := graphtest.Blocks(t, rand.New(rand.NewPCG(1, 9)), 2000, 8, 20)
	p := &Problem{Graph: g, Parts: 8, Seed: 3, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.03}}}
	parts := metisOrSkip(t, p)
	if again := metisOrSkip(t, p); !slices.Equal(parts, again) {
		t.Fatal("another partition from the same seed")
	}
	cut := graphtest.Between(g, func(v uint32) uint32 { return parts[v] })
	between := graphtest.Between(g, func(v uint32) uint32 { return v % 8 })
	if cut > 2*between {
		t.Fatalf("cut %d, between communities %d", cut/2, between/2)
	}
}

func TestMetisBalancesSeveralConstraints(t *testing.T) {
	g := graphtest.Blocks(t, rand.New(rand.NewPCG(1, 10)), 2000, 20, 10)
	train := make([]uint32, g.Nodes())
	for v := range 300 {
		train[v] = 1
	}
	p := &Problem{Graph: g, Parts: 4, Objective: Volume, Constraints: []Constraint{
		{Name: "vertices", Tolerance: 0.05}, {Name: "train", Weight: train, Tolerance: 0.3}, {Name: "edges",
			Weight: degreeWeights(g), Tolerance: 0.2}}}
	parts := metisOrSkip(t, p)
	l := newLoads(p).of(parts)
	for k := range l.weight {
		for c, limit := range l.limit {
			if float64(l.weight[k][c]) > 1.2*float64(limit) {
				t.Errorf("part %d has %d of %s, far above %d", k, l.weight[k][c], p.Constraints[c].Name, limit)
			}
		}
	}
}

// What METIS is given, against a map of pairs.
func TestMetisGraphIsUndirectedAndSimple(t *testing.T) {
	seeds(t, 30, func(t *testing.T, r *rand.Rand) {
		g := randomGraph(t, r, 1+r.IntN(60))
		off, adj, w, err := metisGraph[int32](g, g.Symmetric())
		if err != nil {
			t.Fatal(err)
		}
		want := map[[2]int32]int32{}
		for v := range uint32(g.Nodes()) {
			for _, u := range g.Neighbors(v) {
				if u != v {
					want[[2]int32{int32(v), int32(u)}]++
					if !g.Symmetric() {
						want[[2]int32{int32(u), int32(v)}]++
					}
				}
			}
		}
		for v := range int32(g.Nodes()) {
			for e := off[v]; e < off[v+1]; e++ {
				weight := int32(1)
				if w != nil {
					weight = w[e]
				}
				if pair := [2]int32{v, adj[e]}; want[pair] != weight {
					t.Fatalf("edge %v weighs %d, want %d", pair, weight, want[pair])
				}
				delete(want, [2]int32{v, adj[e]})
			}
		}
		if len(want) > 0 {
			t.Fatalf("missing: %v", want)
		}
	})
}

func TestMetisEdgeCases(t *testing.T) {
	none := &graph.CSR{Indptr: make([]int64, 9)}
	for _, k := range []int{1, 2, 8} {
		if parts := metisOrSkip(t, &Problem{Graph: none, Parts: k}); len(parts) != 8 {
			t.Errorf("%d vertices without edges in %d parts: %v", 8, k, parts)
		}
	}
	if _, err := Metis(context.Background(), &Problem{Graph: none, Parts: 9}); !errors.Is(err, graph.ErrInput) {
		t.Errorf("more parts than vertices: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Metis(ctx, &Problem{Graph: none, Parts: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
