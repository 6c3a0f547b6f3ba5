package partition

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/graph"
	"starling/partition/graphtest"
)

func TestMultilevelOnAllShapes(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		for name, g := range graphtest.Shapes(t, r) {
			for _, k := range []int{1, 2, 3, 8, 33} {
				if k > g.Nodes() {
					continue
				}
				p := &Problem{Graph: g, Parts: k, Seed: seed,
					Constraints: []Constraint{{Name: "vertices", Tolerance: 0.03}}}
				t.Run(fmt.Sprintf("%s/%d/%d", name, k, seed), func(t *testing.T) { checkMultilevel(t, p) })
			}
		}
	}
}

// checkMultilevel partitions with several numbers of threads and checks the result.
func checkMultilevel(t *testing.T, p *Problem) []uint32 {
	var first []uint32
	for _, p.Threads = range []int{1, 2, 3} {
		parts, err := Multilevel(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = parts
		}
		if !slices.Equal(parts, first) {
			t.Fatalf("another partition on %d threads", p.Threads)
		}
	}
	if len(first) != p.Graph.Nodes() {
		t.Fatalf("%d vertices of %d", len(first), p.Graph.Nodes())
	}
	for v, k := range first {
		if int(k) >= p.Parts {
			t.Fatalf("vertex %d in part %d of %d", v, k, p.Parts)
		}
	}
	if err := newLoads(p).of(first).unbalanced(first); err != nil {
		t.Fatal(err)
	}
	return first
}

func TestMultilevelKeepsSeveralConstraints(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := graphtest.Blocks(t, r, 2000, 20, 10)
		train := make([]uint32, g.Nodes())
		for v := range train {
			if r.IntN(10) == 0 || v < 150 {
				train[v] = 1
			}
		}
		for _, k := range []int{2, 5, 16} {
			p := &Problem{Graph: g, Parts: k, Seed: seed, Constraints: []Constraint{
				{Name: "vertices", Tolerance: 0.05},
				{Name: "edges", Weight: degreeWeights(g), Tolerance: 0.1},
				{Name: "train", Weight: train, Tolerance: 0.1},
			}}
			checkMultilevel(t, p)
		}
	}
}

// Communities that fit exactly are found.
func TestMultilevelFindsCommunities(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	g := graphtest.Blocks(t, r, 4000, 8, 20)
	parts := checkMultilevel(t, &Problem{Graph: g, Parts: 8, Seed: 1,
		Constraints: []Constraint{{Name: "vertices", Tolerance: 0.03}}})
	cut := graphtest.Between(g, func(v uint32) uint32 { return parts[v] })
	between := graphtest.Between(g, func(v uint32) uint32 { return v % 8 })
	if float64(cut) > 1.02*float64(between) {
		t.Fatalf("cut %d, between communities %d", cut/2, between/2)
	}
}

func TestMultilevelReportsImpossibleConstraints(t *testing.T) {
	g := graphtest.Blocks(t, rand.New(rand.NewPCG(1, 4)), 200, 4, 6)
	heavy := make([]uint32, 200)
	heavy[7], heavy[8] = 100, 1
	p := &Problem{Graph: g, Parts: 4, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.1},
		{Name: "gold", Weight: heavy, Tolerance: 0.1}}}
	parts, err := Multilevel(context.Background(), p)
	var u *Unbalanced
	if !errors.As(err, &u) || u.Constraint != "gold" || len(u.Parts) != 200 {
		t.Fatalf("got %v, want an error about gold", err)
	}
	if !slices.Equal(parts, u.Parts) {
		t.Fatal("the best partition found is missing")
	}
	for _, k := range []int{0, -1, 201} {
		if _, err := Multilevel(context.Background(), &Problem{Graph: g, Parts: k}); !errors.Is(err, graph.ErrInput) {
			t.Errorf("%d parts of 200 vertices: got %v, want a user's mistake", k, err)
		}
	}
	if parts, err := Multilevel(context.Background(),
		&Problem{Graph: &graph.CSR{Indptr: []int64{0}}, Parts: 4}); err != nil || len(parts) != 0 {
		t.Errorf("no vertices: %v, %v", parts, err)
	}
}

func TestMultilevelStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g := graphtest.Blocks(t, rand.New(rand.NewPCG(1, 5)), 5000, 10, 8)
	if _, err := Multilevel(ctx, &Problem{Graph: g, Parts: 4}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

// A mesh is partitioned with less effort; what that loses is bounded.
func TestMultilevelMeshTuning(t *testing.T) {
	g := graphtest.Mesh(t, 90, 80)
	cut := func(parts []uint32) int64 {
		return graphtest.Between(g, func(v uint32) uint32 { return parts[v] }) / 2
	}
	for _, k := range []int{4, 32} {
		var less, full int64
		for seed := range uint64(2) {
			p := &Problem{Graph: g, Parts: k, Seed: seed,
				Constraints: []Constraint{{Name: "vertices", Tolerance: 0.03}}}
			less += cut(checkMultilevel(t, p))
			// Two constraints, even equal ones, select the full effort.
			p.Constraints = append(p.Constraints, p.Constraints[0])
			full += cut(checkMultilevel(t, p))
		}
		if float64(less) > 1.1*float64(full) {
			t.Errorf("%d parts: a cut of %d with less effort, of %d with full effort", k, less, full)
		}
	}
}

// A graph declared symmetric is partitioned as one that is found to be.
func TestMultilevelTrustsSymmetric(t *testing.T) {
	g := graphtest.Mesh(t, 40, 30)
	p := &Problem{Graph: g, Parts: 5, Seed: 3}
	want := checkMultilevel(t, p)
	p.Symmetric = true
	if !slices.Equal(checkMultilevel(t, p), want) {
		t.Error("another partition")
	}
}

func TestMultilevelLowersVolume(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 11))
	g := graphtest.Blocks(t, r, 600, 12, 40) // degrees large enough for a table
	p := &Problem{Graph: g, Parts: 6, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.05}}}
	cut := volumeOf(g, checkMultilevel(t, p))
	p.Objective = Volume
	parts := checkMultilevel(t, p)
	if volume := volumeOf(g, parts); volume >= cut {
		t.Errorf("volume %d as the objective, %d without", volume, cut)
	}
}

func volumeOf(g *graph.CSR, parts []uint32) (sum int) {
	for v := range uint32(g.Nodes()) {
		seen := map[uint32]bool{parts[v]: true}
		for _, u := range g.Neighbors(v) {
			if !seen[parts[u]] {
				seen[parts[u]] = true
				sum++
			}
		}
	}
	return sum
}
