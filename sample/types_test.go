package sample

import (
	"slices"
	"testing"

	"starling/graph"
)

// typedRing has two types of 50 vertices; relation 0 leads from the first to the second, 1 and 2 within the second, and 3
// from the second to the first. A vertex has 6 edges of relation 0, 3 of 1, none of 2 if it is even, and 4 of 3.
func typedRing(t *testing.T) (*graph.Schema, *graph.CSR) {
	t.Helper()
	s := &graph.Schema{Types: []graph.VertexType{{Name: "a", Count: 50}, {Name: "b", First: 50, Count: 50}},
		Relations: []graph.Relation{{Source: 1, Name: "back", Target: 0}, {Source: 0, Name: "to", Target: 1}, {Source: 1, Name: "in", Target: 1},
			{Source: 1, Name: "odd", Target: 1}}}
	var src, dst []uint32
	var kind []uint16
	add := func(u, v int, r uint16) {
		src, dst, kind = append(src, uint32(u)), append(dst, uint32(v)), append(kind, r)
	}
	for v := range 50 {
		for i := range 6 {
			add((v+7*i)%50, 50+v, 1)
		}
		for i := range 3 {
			add(50+(v+11*i+1)%50, 50+v, 2)
		}
		for i := range v % 2 * 5 {
			add(50+(v+3*i+2)%50, 50+v, 3)
		}
		for i := range 4 {
			add(50+(v+13*i)%50, v, 0)
		}
	}
	g, err := graph.FromTypedEdges(100, src, dst, kind)
	if err != nil {
		t.Fatal(err)
	}
	return s, g
}

// TestTypedFanoutsAreByRelation: every destination draws the fanout of each relation, or all it has; a relation may have
// its own; rows of a batch are by type within what a layer adds.
func TestTypedFanoutsAreByRelation(t *testing.T) {
	s, g := typedRing(t)
	n := &Neighbour{Graph: g, SeedVertices: []uint32{50, 51, 61, 72, 99}, Size: 5, Fanouts: []int{2, 3}, Seed: 5,
		Types: &Types{Schema: s, TypeOf: func(v uint32) int { return s.TypeOf(v) }, Fanouts: [][]int{{0, 5, 0, All}, nil}}}
	m, err := n.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	m.Sampler().Sample(&b, 0, 0)
	for layer, want := range map[int][]int{1: {2, 5, 2, 9}, 0: {3, 3, 3, 3}} {
		x := &b.Blocks[layer]
		if len(x.Relations) != len(x.Indices) || len(x.RowWeights) > 0 {
			t.Fatalf("%d relations of %d edges", len(x.Relations), len(x.Indices))
		}
		for i := range x.Dst {
			v := b.Vertices[i]
			drawn, edges := map[uint16]int{}, map[[2]uint32]bool{}
			for e := x.Indptr[i]; e < x.Indptr[i+1]; e++ {
				r, u := x.Relations[e], b.Vertices[x.Indices[e]]
				lo, hi := g.Relation(v, int(r))
				if !slices.Contains(g.Indices[lo:hi], u) || edges[[2]uint32{u, uint32(r)}] {
					t.Fatalf("%d draws %d by relation %d", v, u, r)
				}
				edges[[2]uint32{u, uint32(r)}] = true
				drawn[r]++
			}
			for r := range s.Relations {
				lo, hi := g.Relation(v, r)
				if got, most := drawn[uint16(r)], min(want[r], int(hi-lo)); got != most {
					t.Fatalf("layer %d: vertex %d draws %d of relation %d, wants %d", layer, v, got, r, most)
				}
			}
		}
		if runs := s.Runs(b.Vertices[x.Dst:x.Src]); len(runs) > 2 {
			t.Fatalf("layer %d adds runs %v", layer, runs)
		}
	}
	if seen := map[uint32]bool{}; true {
		for _, v := range b.Vertices {
			if seen[v] {
				t.Fatalf("vertex %d has two rows", v)
			}
			seen[v] = true
		}
	}
}
