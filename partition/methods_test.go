package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/graph"
)

// Every method gives every vertex one part, every part a vertex, the same answer
// for the same seed on any number of threads, and keeps its limits or says which
// it could not keep.
func TestMethodsOnRandomGraphs(t *testing.T) {
	seeds(t, 40, func(t *testing.T, r *rand.Rand) {
		g := randomGraph(t, r, 2+r.IntN(150))
		p := &Problem{Graph: g, Parts: 1 + r.IntN(min(8, g.Nodes())), Seed: r.Uint64(),
			Splits: randomSplits(r, g.Nodes())}
		if r.IntN(2) == 0 {
			p.Constraints = []Constraint{{Name: "vertices", Tolerance: 0.1},
				{Name: "edges", Weight: degreeWeights(g), Tolerance: 0.5}}
		}
		for _, name := range Names() {
			if IsEngine(name) { // engines_test.go has them
				continue
			}
			parts := by(t, name, p)
			p.Threads = 1
			again := by(t, name, p)
			p.Threads = 0
			if !slices.Equal(parts, again) {
				t.Fatalf("%s: another partition on one thread", name)
			}
		}
	})
}

// by runs a method and checks what must hold of any partition.
func by(t *testing.T, name string, p *Problem) []uint32 {
	t.Helper()
	parts, err := By(context.Background(), name, p)
	var u *Unbalanced
	if err != nil && !errors.As(err, &u) {
		if name == "metis" {
			t.Log("metis is left out:", err)
			return nil
		}
		t.Fatalf("%s: %v", name, err)
	}
	if len(parts) != p.Graph.Nodes() {
		t.Fatalf("%s: %d vertices of %d", name, len(parts), p.Graph.Nodes())
	}
	size := make([]int, p.Parts)
	for v, k := range parts {
		if int(k) >= p.Parts {
			t.Fatalf("%s: vertex %d in part %d of %d", name, v, k, p.Parts)
		}
		size[k]++
	}
	if slices.Contains(size, 0) {
		t.Fatalf("%s: a part without vertices: %v", name, size)
	}
	if keeps := map[string]bool{"ldg": true, "fennel": true, "bytegnn": true, "multilevel": true,
		"g3": true}; keeps[name] && err == nil {
		if err := newLoads(p).of(parts).unbalanced(parts); err != nil && u == nil {
			t.Fatalf("%s says all is well: %v", name, err)
		}
	}
	return parts
}

func randomSplits(r *rand.Rand, n int) (s graph.Splits) {
	for v := range n {
		switch r.IntN(6) {
		case 0, 1:
			s.Train = append(s.Train, uint32(v))
		case 2:
			s.Val = append(s.Val, uint32(v))
		case 3:
			s.Test = append(s.Test, uint32(v))
		}
	}
	if s.Empty() {
		s.Train = []uint32{0}
	}
	return s
}

// Vertices alone can always be balanced.
func TestVerticesAreAlwaysBalanced(t *testing.T) {
	seeds(t, 40, func(t *testing.T, r *rand.Rand) {
		g := randomGraph(t, r, 2+r.IntN(300))
		p := &Problem{Graph: g, Parts: 1 + r.IntN(min(16, g.Nodes())),
			Constraints: []Constraint{{Name: "vertices", Tolerance: 0.05}}}
		for _, name := range []string{"random", "ldg", "fennel"} {
			parts, err := By(context.Background(), name, p)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := newLoads(p).of(parts).unbalanced(parts); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

func TestByteGNNBalancesTheSplits(t *testing.T) {
	seeds(t, 40, func(t *testing.T, r *rand.Rand) {
		n := 50 + r.IntN(400)
		g := randomGraph(t, r, n)
		p := &Problem{Graph: g, Parts: 2 + r.IntN(7), Splits: randomSplits(r, n), Hops: 1 + r.IntN(3), Passes: 1 +
			r.IntN(3)}
		parts, err := By(context.Background(), "bytegnn", p)
		if err != nil {
			t.Fatal(err)
		}
		for _, ids := range [][]uint32{p.Splits.Train, p.Splits.Val, p.Splits.Test} {
			c := Constraint{Tolerance: DefaultTolerance}
			count := make([]int64, p.Parts)
			for _, v := range ids {
				count[parts[v]]++
			}
			if limit := c.Limit(int64(len(ids)), p.Parts); slices.Max(count) > limit {
				t.Fatalf("%d of a split of %d in one part of %d; at most %d", slices.Max(count), len(ids), p.Parts,
					limit)
			}
		}
	})
}

// Blocks, against a search from every centre by hand.
func TestByteGNNBlocksAreTheNearestCentres(t *testing.T) {
	seeds(t, 20, func(t *testing.T, r *rand.Rand) {
		n := 2 + r.IntN(60)
		g := randomGraph(t, r, n)
		p := &Problem{Graph: g, Parts: 1, Splits: randomSplits(r, n), Hops: 2}
		b := &byteGNN{p: p}
		p.Graph = g
		if err := b.grow(context.Background()); err != nil {
			t.Fatal(err)
		}
		distance := make([]int, n) // to the nearest centre, along in-edges
		for v := range distance {
			distance[v] = 99
		}
		for _, c := range b.centres {
			distance[c] = 0
		}
		for range 2 {
			for v := range n {
				for _, u := range g.Neighbors(uint32(v)) {
					distance[u] = min(distance[u], distance[v]+1)
				}
			}
		}
		room := max(1, n/32)
		for v := range n {
			if got := b.block[v] != unassigned; got && distance[v] > 2 {
				t.Fatalf("vertex %d is in a block but %d hops away", v, distance[v])
			} else if !got && distance[v] <= 2 && room > n {
				t.Fatalf("vertex %d is in no block but %d hops away", v, distance[v])
			}
		}
		for i, c := range b.centres {
			if b.block[c] != uint32(i) {
				t.Fatalf("centre %d lost its block", c)
			}
		}
	})
}

func TestG3NeverWorsensRemoteBalance(t *testing.T) {
	seeds(t, 40, func(t *testing.T, r *rand.Rand) {
		g := randomGraph(t, r, 20+r.IntN(300))
		p := &Problem{Graph: g, Parts: 2 + r.IntN(6), Seed: r.Uint64(),
			Constraints: []Constraint{{Name: "vertices", Tolerance: 0.05},
				{Name: "edges", Weight: degreeWeights(g), Tolerance: 0.2}}}
		parts, _ := By(context.Background(), []string{"random", "chunk", "fennel", "hash"}[r.IntN(4)], p)
		before := Measure(g, parts, p.Parts, p.Constraints, false, 1)
		loads := newLoads(p).of(parts)
		excess := loads.excess()
		if err := evenRemote(context.Background(), p, parts); err != nil {
			t.Fatal(err)
		}
		after := Measure(g, parts, p.Parts, p.Constraints, false, 1)
		if slices.Max(after.Remote) > slices.Max(before.Remote) ||
			after.RemoteMaxOverMin() > before.RemoteMaxOverMin()+1e-12 {
			t.Fatalf("remote %v became %v", before.Remote, after.Remote)
		}
		if now := newLoads(p).of(parts).excess(); now > excess+1e-12 {
			t.Fatalf("excess over the limits %g became %g", excess, now)
		}
	})
}

// The counts that swaps keep in O(degree) equal a recount, after any moves.
func TestG3CountsStayExact(t *testing.T) {
	seeds(t, 30, func(t *testing.T, r *rand.Rand) {
		g := randomGraph(t, r, 5+r.IntN(60))
		p := &Problem{Graph: g, Parts: 3}
		parts := make([]uint32, g.Nodes())
		for v := range parts {
			parts[v] = uint32(r.IntN(3))
		}
		s := &swapper{p: p, parts: parts, loads: newLoads(p).of(parts), mark: newBits(g.Nodes()), side: [2]uint32{2, 0}}
		s.remote = Measure(g, parts, 3, nil, false, 1).Remote
		s.need[0], s.need[1] = make([]uint32, g.Nodes()), make([]uint32, g.Nodes())
		s.count()
		for range 40 {
			v := uint32(r.IntN(g.Nodes()))
			side := slices.Index(s.side[:], parts[v])
			if side < 0 {
				continue
			}
			from, to := s.cost(v, side)
			was := slices.Clone(s.remote)
			s.move(v, side)
			if want := Measure(g, parts, 3, nil, false, 1).Remote; !slices.Equal(s.remote, want) {
				t.Fatalf("remote %v, recounted %v", s.remote, want)
			}
			here, there := s.remote[s.side[side]]-was[s.side[side]], s.remote[s.side[1-side]]-was[s.side[1-side]]
			if there != int64(to) || here > int64(from) { // repeated edges make leaving look dearer than it is
				t.Fatalf("cost returned %d, %d; it was %d, %d", from, to, here, there)
			}
		}
	})
}

func TestStreamingFindsCommunities(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := blocks(r, 4000, 40, 16, 0.9)
	p := &Problem{Graph: g, Parts: 8, Seed: 1}
	chance, _ := By(context.Background(), "random", p)
	base := Measure(g, chance, 8, nil, true, 0).EdgeCut
	for name, most := range map[string]float64{"ldg": 0.6, "fennel": 0.6, "multilevel": 0.4} {
		parts, err := By(context.Background(), name, p)
		if err != nil {
			t.Fatal(name, err)
		}
		cut := Measure(g, parts, 8, nil, true, 0).EdgeCut
		t.Logf("%s cuts %.3f of what chance does", name, float64(cut)/float64(base))
		if float64(cut) > most*float64(base) {
			t.Errorf("%s cuts %d edges, random %d", name, cut, base)
		}
	}
}

func TestHierarchical(t *testing.T) {
	seeds(t, 20, func(t *testing.T, r *rand.Rand) {
		g := blocks(r, 200+r.IntN(400), 12, 10, 0.8)
		servers, workers := 1+r.IntN(3), 1+r.IntN(4)
		p := &Problem{Graph: g, Parts: servers * workers, Seed: 3,
			Constraints: []Constraint{{Name: "vertices", Tolerance: 0.1}}}
		for _, name := range []string{"random", "fennel", "multilevel"} {
			parts, err := Hierarchical(context.Background(), name, p, servers)
			if err != nil {
				t.Fatal(name, err)
			}
			if err := newLoads(p).of(parts).unbalanced(parts); err != nil {
				t.Fatal(name, err)
			}
		}
	})
}

func TestBadProblems(t *testing.T) {
	g, _ := graph.FromEdges(3, []uint32{0, 1}, []uint32{1, 2}, nil, graph.BuildOptions{Symmetrize: true})
	ctx := context.Background()
	for _, k := range []int{0, -1, 4, 1 << 20} {
		if _, err := By(ctx, "fennel", &Problem{Graph: g, Parts: k}); !errors.Is(err, graph.ErrInput) {
			t.Errorf("%d parts of 3 vertices: %v", k, err)
		}
	}
	if _, err := By(ctx, "magic", &Problem{Graph: g, Parts: 2}); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
	if _, err := By(ctx, "bytegnn", &Problem{Graph: g, Parts: 2}); !errors.Is(err, graph.ErrInput) {
		t.Error("bytegnn without splits:", err)
	}
	for _, name := range Names() {
		p := &Problem{Graph: g, Parts: 3, Splits: graph.Splits{Train: []uint32{0}}}
		if parts, err := By(ctx, name, p); name != "metis" && !IsEngine(name) && (err != nil || len(parts) != 3) {
			t.Error(name, parts, err)
		}
	}
}

// A hub that alone is heavier than a part may be: the error says so, and has the
// best partition there is.
func TestImpossibleConstraint(t *testing.T) {
	var src, dst []uint32
	for v := uint32(1); v < 200; v++ {
		src, dst = append(src, v), append(dst, 0)
	}
	g, _ := graph.FromEdges(200, src, dst, nil, graph.BuildOptions{})
	p := &Problem{Graph: g, Parts: 4, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.05},
		{Name: "edges", Weight: degreeWeights(g), Tolerance: 0.05}}}
	for _, name := range []string{"fennel", "ldg"} {
		parts, err := By(context.Background(), name, p)
		var u *Unbalanced
		if !errors.As(err, &u) || u.Constraint != "edges" || len(parts) != 200 || u.Heaviest != 4 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Shapes that trip partitioners: a hub with very many leaves, no edges at all, only
// self-loops, many components, as many parts as vertices.
func TestOddShapes(t *testing.T) {
	star := func(n int) (src, dst []uint32) {
		for v := 1; v < n; v++ {
			src, dst = append(src, uint32(v)), append(dst, 0)
		}
		return src, dst
	}
	for name, shape := range map[string]func() (n, parts int, src, dst []uint32){
		"hub":      func() (int, int, []uint32, []uint32) { s, d := star(200_000); return 200_000, 8, s, d },
		"no edges": func() (int, int, []uint32, []uint32) { return 100, 7, nil, nil },
		"loops":    func() (int, int, []uint32, []uint32) { return 9, 4, []uint32{3, 3, 5}, []uint32{3, 3, 5} },
		"components": func() (int, int, []uint32, []uint32) {
			return 100, 5, []uint32{0, 2, 4, 6}, []uint32{1, 3, 5, 7}
		},
		"all apart": func() (int, int, []uint32, []uint32) { s, d := star(16); return 16, 16, s, d },
		"one":       func() (int, int, []uint32, []uint32) { return 1, 1, nil, nil },
	} {
		n, parts, src, dst := shape()
		g, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{Symmetrize: true})
		if err != nil {
			t.Fatal(err)
		}
		p := &Problem{Graph: g, Parts: parts, Seed: 1, Splits: graph.Splits{Train: []uint32{0}},
			Constraints: []Constraint{{Name: "vertices", Tolerance: 0.05}}}
		for _, method := range Names() {
			if IsEngine(method) {
				continue
			}
			t.Run(name+"/"+method, func(t *testing.T) { by(t, method, p) })
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g := blocks(rand.New(rand.NewPCG(1, 1)), 500, 5, 8, 0.8)
	for _, name := range []string{"ldg", "fennel", "bytegnn"} {
		if _, err := By(ctx, name, &Problem{Graph: g, Parts: 3,
			Splits: graph.Splits{Train: []uint32{1}}}); !errors.Is(err, context.Canceled) {
			t.Error(name, err)
		}
	}
}
