package sample

import (
	"math"
	"slices"
	"testing"

	"starling/graph"
)

// walksOf is the dumb twin of saintWalks: the probabilities that one walk visits a vertex, and both ends of an edge, by
// going through all walks.
func walksOf(g *graph.CSR, length int) (one, both []float64) {
	one, both = make([]float64, g.Nodes()), make([]float64, g.Edges())
	var visit func(path []uint32, p float64)
	visit = func(path []uint32, p float64) {
		row := g.Neighbors(path[len(path)-1])
		if len(path) <= length && len(row) > 0 {
			for _, u := range row {
				visit(append(slices.Clone(path), u), p/float64(len(row)))
			}
			return
		}
		for v := range uint32(g.Nodes()) {
			if !slices.Contains(path, v) {
				continue
			}
			one[v] += p
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				if slices.Contains(path, g.Indices[e]) {
					both[e] += p
				}
			}
		}
	}
	for v := range uint32(g.Nodes()) {
		visit([]uint32{v}, 1/float64(g.Nodes()))
	}
	return one, both
}

// TestWalkProbabilities: what GraphSAINT's walks are weighted by, found before training, is within a few percent of
// the truth.
func TestWalkProbabilities(t *testing.T) {
	const size = 5
	g := odd(t, 60, 240, false)
	for _, length := range []int{1, 2, 3} {
		s, err := NewSAINTWalks(g, nil, size, length, 3)
		if err != nil {
			t.Fatal(err)
		}
		one, two := walksOf(g, length)
		var squares, edges, worst float64
		for v := range uint32(g.Nodes()) {
			pv := 1 - never(one[v], size)
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				u := g.Indices[e]
				if u == v {
					continue
				}
				want := pv / both(one[u], one[v], two[e], size)
				miss := s.draw.Vertex(v)/s.draw.Edge(u, v, e)/want - 1
				squares, edges, worst = squares+miss*miss, edges+1, max(worst, math.Abs(miss))
			}
		}
		rms := math.Sqrt(squares / edges)
		t.Logf("length %d: weights of edges are off by %.3f, at most %.3f", length, rms, worst)
		if rms > 0.06 {
			t.Errorf("length %d: weights of edges are off by %.3f, at most %.3f", length, rms, worst)
		}
	}
}

// TestEdgesDrawLoneSeeds: a training vertex without edges is drawn, and as often as its loss is weighted for.
func TestEdgesDrawLoneSeeds(t *testing.T) {
	g, err := graph.FromEdges(6, []uint32{0, 1, 2}, []uint32{1, 2, 0}, nil, graph.BuildOptions{Symmetrize: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSAINTEdges(g, []uint32{0, 4}, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	const draws = 20000
	var seen [6]int
	var b Batch
	sampler := s.Sampler()
	for i := range draws {
		sampler.Sample(&b, i, 0)
		for _, v := range b.Vertices {
			seen[v]++
		}
	}
	for v, n := range seen {
		want := s.draw.Vertex(uint32(v))
		if got := float64(n) / draws; math.Abs(got-want) > 0.02 {
			t.Errorf("vertex %d is in %.3f of batches, want %.3f", v, got, want)
		}
	}
	if seen[4] == 0 || seen[3] != 0 || seen[5] != 0 {
		t.Errorf("drawn %v times: 4 is a seed without edges, 3 and 5 are no seeds", seen)
	}
}
