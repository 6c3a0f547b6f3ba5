package multilevel

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/graph"
	"starling/partition/graphtest"
	"starling/rng"
)

// unweighted is a problem with one constraint, on vertices.
func unweighted(g *graph.CSR) *Problem { return &Problem{Graph: g, Constraints: make([]Constraint, 1)} }

// Vertices and loads are returned as they are, with limits that are met and limits that cannot be.
func TestPartitionReportsLoads(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		for name, g := range graphtest.Shapes(t, r) {
			n, k := g.Nodes(), 1+min(1+r.IntN(8), g.Nodes()-1)
			edges := make([]uint32, n)
			for v := range edges {
				edges[v] = uint32(g.Degree(uint32(v)))
			}
			p := &Problem{Graph: g, Parts: k, Seed: seed, Constraints: []Constraint{
				{Limit: int64(n/k + 1)}, {Weight: edges, Limit: g.Edges() / int64(2*k)}}}
			parts, load, err := Partition(context.Background(), p)
			if err != nil || len(parts) != n {
				t.Fatalf("%s: %d parts, %v", name, len(parts), err)
			}
			want := make([]int64, 2*k)
			for v, part := range parts {
				want[2*part]++
				want[2*part+1] += int64(edges[v])
			}
			if !slices.Equal(load, want) {
				t.Errorf("%s: loads %v, want %v", name, load, want)
			}
		}
	}
}

// Coarsening that was cancelled must not hand a graph that is still large to bisection.
func TestCancelledPartitionStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p := &Problem{Graph: graphtest.Blocks(t, rand.New(rand.NewPCG(1, 5)), 5000, 10, 8), Parts: 4,
		Constraints: []Constraint{{Limit: 2000}}}
	if _, _, err := Partition(ctx, p); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	r := newRun(ctx, 0, 1, &memory{})
	if a := newPartitioner(r, p).partition(r.finestGraph(p)); a != nil {
		t.Fatal("it was partitioned all the same")
	}
}

// What a level hands to the finer one, its loads and where its boundary can be, against a
// recount.
func TestUncoarseningKeepsCount(t *testing.T) {
	for seed := range uint64(3) {
		const k = 5
		p := &Problem{Graph: graphtest.Mesh(t, 60, 60), Parts: k, Constraints: []Constraint{{Limit: 756}}}
		r := newRun(context.Background(), rng.New(seed), 2, &memory{})
		m := newPartitioner(r, p)
		g := r.finestGraph(p)
		r.tuning = g.tuningFor(k)
		coarse, l, _ := m.coarsen(g, 0)
		a := newAssignment(coarse, k, r.initialPartition(coarse, k, m.limits(coarse)),
			repeatLimits(m.limits(coarse), k))
		m.refine(a, nil, false)
		var want []uint32
		for v, c := range l.to {
			row := coarse.adj[coarse.off[c]:coarse.off[c+1]]
			if slices.ContainsFunc(row, func(u uint32) bool { return a.part[u] != a.part[c] }) {
				want = append(want, uint32(v))
			}
		}
		if hint := m.boundaryHint(l); !slices.Equal(hint, want) {
			t.Fatalf("%d vertices can be on the boundary, want %d", len(hint), len(want))
		}
		cut := a.cut()
		m.uncoarsen(a, l)
		if a.g != g || !slices.Equal(a.limit, repeatLimits(m.limit, k)) {
			t.Fatal("it is not the finer level")
		}
		checkCount(t, a, cut)
		r.mem.freeAll()
	}
}
