package partition

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/graph"
	"starling/rng"
)

// mlGrid is a grid with one diagonal a square: a mesh.
func mlGrid(t testing.TB, wide, high int) *graph.CSR {
	var src, dst []uint32
	for v := range wide * high {
		right, up := v%wide+1 < wide, v/wide+1 < high
		for _, step := range []struct {
			ok bool
			to int
		}{{right, v + 1}, {up, v + wide}, {right && up, v + wide + 1}} {
			if step.ok {
				src, dst = append(src, uint32(v)), append(dst, uint32(step.to))
			}
		}
	}
	g, err := graph.FromEdges(wide*high, src, dst, nil, graph.BuildOptions{Symmetrise: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestStyleFollowsTheDegrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	star := &graph.CSR{Indptr: []int64{0, 99}}
	for v := range uint32(99) {
		star.Indices = append(star.Indices, v+1)
	}
	for v := range uint32(99) {
		star.Indices = append(star.Indices, 0)
		star.Indptr = append(star.Indptr, int64(100+v))
	}
	edges := Constraint{Name: "edges", Weight: make([]uint32, 60*60)}
	for _, x := range []struct {
		name  string
		g     *graph.CSR
		k     int
		also  []Constraint
		style mlStyle
	}{
		{"mesh, large parts", mlGrid(t, 60, 60), 7, nil, mlCoarse},
		{"mesh, small parts", mlGrid(t, 60, 60), 8, nil, mlMesh},
		{"mesh, two constraints", mlGrid(t, 60, 60), 4, []Constraint{edges}, mlGentle},
		{"mesh, many edges", mlGrid(t, 220, 220), 4, nil, mlGentle},
		{"degrees as chance has them", mlBlocks(t, r, 2000, 10, 8), 4, nil, mlGentle},
		{"star", star, 4, nil, mlBold},
		{"no edges", &graph.CSR{Indptr: make([]int64, 101)}, 4, nil, mlGentle},
	} {
		run := newMLRun(context.Background(), 0, 1, &mlMemory{})
		g := run.newMLGraph(&Problem{Graph: x.g}, append([]Constraint{{Name: "vertices"}}, x.also...))
		if got := g.style(x.k); got != x.style {
			t.Errorf("%s: %+v", x.name, got)
		}
		run.mem.freeAll()
	}
}

// A mesh is cut with less effort; what that loses is bounded.
func TestMeshIsCutNearlyAsWell(t *testing.T) {
	for _, k := range []int{4, 32} {
		var less, all int64
		for seed := range uint64(2) {
			p := &Problem{Graph: mlGrid(t, 90, 80), Parts: k, Seed: seed, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.03}}}
			less += mlCutOf(p, mlCheckRun(t, p))
			// A constraint that says the same again asks for all of it.
			p.Constraints = append(p.Constraints, p.Constraints[0])
			all += mlCutOf(p, mlCheckRun(t, p))
		}
		if float64(less) > 1.1*float64(all) {
			t.Errorf("%d parts: cuts of %d with less effort, of %d with all of it", k, less, all)
		}
	}
}

func mlCutOf(p *Problem, parts []uint32) (cut int64) {
	for v, own := range parts {
		for _, u := range p.Graph.Neighbors(uint32(v)) {
			if parts[u] != own {
				cut++
			}
		}
	}
	return cut / 2
}

// Balls of vertices that weigh one, and what becomes of them, against those of vertices that are said to.
func TestEqualBallsAreBalls(t *testing.T) {
	for seed := range uint64(5) {
		graphs := mlShapes(t, rand.New(rand.NewPCG(seed, 13)))
		graphs["mesh"] = mlGrid(t, 30, 20)
		for name, csr := range graphs {
			if !csr.Symmetric() {
				continue
			}
			for _, most := range []int64{1, 3, 8, 1000} {
				labels, weights := make([][]uint32, 2), make([][]int64, 2)
				for i, weight := range [][]uint32{nil, slices.Repeat([]uint32{1}, csr.Nodes())} {
					r := newMLRun(context.Background(), rng.New(seed), 1, &mlMemory{})
					g := r.newMLGraph(&Problem{Graph: csr}, []Constraint{{Name: "vertices", Weight: weight}})
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

// A graph known to be symmetric is cut as one that is found to be.
func TestMultilevelTakesTheWordForSymmetric(t *testing.T) {
	g := mlGrid(t, 40, 30)
	p := &Problem{Graph: g, Parts: 5, Seed: 3}
	want := mlCheckRun(t, p)
	p.Symmetric = true
	if !slices.Equal(mlCheckRun(t, p), want) {
		t.Error("another partition")
	}
}
