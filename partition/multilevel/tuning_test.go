package multilevel

import (
	"context"
	"math/rand/v2"
	"testing"

	"starling/graph"
	"starling/partition/graphtest"
)

func TestTuningFollowsDegrees(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 12))
	star := &graph.CSR{Indptr: []int64{0, 99}}
	for v := range uint32(99) {
		star.Indices = append(star.Indices, v+1)
	}
	for v := range uint32(99) {
		star.Indices = append(star.Indices, 0)
		star.Indptr = append(star.Indptr, int64(100+v))
	}
	edges := Constraint{Weight: make([]uint32, 60*60)}
	for _, x := range []struct {
		name   string
		g      *graph.CSR
		k      int
		also   []Constraint
		tuning tuning
	}{
		{"mesh, large parts", graphtest.Mesh(t, 60, 60), 7, nil, tunedMeshLargeParts},
		{"mesh, small parts", graphtest.Mesh(t, 60, 60), 8, nil, tunedMesh},
		{"mesh, two constraints", graphtest.Mesh(t, 60, 60), 4, []Constraint{edges}, tunedGeneral},
		{"mesh, many edges", graphtest.Mesh(t, 220, 220), 4, nil, tunedGeneral},
		{"random degrees", graphtest.Blocks(t, draw, 2000, 10, 8), 4, nil, tunedGeneral},
		{"star", star, 4, nil, tunedSkewedSmall},
		{"star, dense", denseStar(star), 4, nil, tunedDense},
		{"star, many edges", repeated(star, 6000), 4, nil, tunedSkewed},
		{"no edges", &graph.CSR{Indptr: make([]int64, 101)}, 4, nil, tunedGeneral},
	} {
		r := newRun(context.Background(), 0, 1, &memory{})
		g := r.finestGraph(&Problem{Graph: x.g, Constraints: append([]Constraint{{}}, x.also...)})
		if got := g.tuningFor(x.k); got != x.tuning {
			t.Errorf("%s: %+v", x.name, got)
		}
		r.mem.freeAll()
	}
}

// denseStar is a star of which each leaf has 39 self-loops too, and the hub as many edges as before.
func denseStar(star *graph.CSR) *graph.CSR {
	g := &graph.CSR{Indptr: []int64{0}}
	for v := range uint32(star.Nodes()) {
		g.Indices = append(g.Indices, star.Neighbors(v)...)
		for range 39 {
			g.Indices = append(g.Indices, v)
		}
		if v == 0 {
			for range 400 {
				g.Indices = append(g.Indices, v)
			}
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

// repeated returns copies of a graph side by side.
func repeated(one *graph.CSR, copies int) *graph.CSR {
	g := &graph.CSR{Indptr: []int64{0}}
	for c := range uint32(copies) {
		for v := range uint32(one.Nodes()) {
			for _, u := range one.Neighbors(v) {
				g.Indices = append(g.Indices, u+c*uint32(one.Nodes()))
			}
			g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		}
	}
	return g
}
