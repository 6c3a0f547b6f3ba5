package sample

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"starling/graph"
	"starling/internal/testdeadline"
)

// TestNegativesDistribution: vertices are drawn as often as the formula says.
func TestNegativesDistribution(t *testing.T) {
	const draws = 40000
	g := odd(t, 40, 300, false)
	for _, power := range []float64{0, 0.75, 1} {
		n, err := NewNegatives(g, power, false, 2)
		if err != nil {
			t.Fatal(err)
		}
		want, total := make([]float64, g.Nodes()), 0.0
		for v := range want {
			want[v] = 1
			if d := g.Degree(uint32(v)); power > 0 {
				want[v] = math.Pow(float64(d), power)
			}
			total += want[v]
		}
		count := make([]float64, g.Nodes())
		for i := range draws {
			count[n.Draw(i%3, i%7, i, i%2, 5)]++
		}
		for v := range count {
			within(t, fmt.Sprintf("power %g, vertex %d", power, v), count[v], count[v], want[v]/total, draws)
		}
	}
}

// TestNegativesAvoid: a vertex linked with u in either direction is not drawn, nor u
// itself, and the others are drawn alike.
func TestNegativesAvoid(t *testing.T) {
	const draws = 20000
	g := odd(t, 40, 120, false)
	n, err := NewNegatives(g, 0, true, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []uint32{0, 1, 9, 20} {
		free := 0.0
		for w := range uint32(g.Nodes()) {
			if !n.taken(u, w) {
				free++
			}
		}
		count := make([]float64, g.Nodes())
		for i := range draws {
			count[n.Draw(0, 0, i, 0, u)]++
		}
		for w := range uint32(g.Nodes()) {
			want := 1 / free
			if u == w || linked(g, u, w) || linked(g, w, u) {
				if want = 0; count[w] > 0 {
					t.Fatalf("%d was drawn against %d", w, u)
				}
			}
			within(t, fmt.Sprintf("%d against %d", w, u), count[w], count[w], want, draws)
		}
	}
}

// TestNegativesOfHubs: one free vertex is found, and none is no endless loop.
func TestNegativesOfHubs(t *testing.T) {
	var src, dst []uint32
	for v := uint32(1); v < 1000; v++ {
		if v != 700 {
			src, dst = append(src, v), append(dst, 0)
		}
	}
	g, err := graph.FromEdges(1000, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, power := range []float64{0, 0.75} {
		n, err := NewNegatives(g, power, true, 2)
		if err != nil {
			t.Fatal(err)
		}
		testdeadline.Do(t, time.Minute, "drawing the only free vertex", func() {
			if w := n.Draw(0, 0, 0, 0, 0); w != 700 {
				t.Errorf("power %g: drew %d, only 700 is free", power, w)
			}
		})
	}
	pair := &graph.CSR{Indptr: []int64{0, 1, 2}, Indices: []uint32{1, 0}}
	n, err := NewNegatives(pair, 0.75, true, 2)
	if err != nil {
		t.Fatal(err)
	}
	testdeadline.Do(t, time.Minute, "drawing where no vertex is free", func() { n.Draw(0, 0, 0, 0, 1) })
}

// TestRanked: nothing to be ranked against is an edge, and another seed gives others.
func TestRanked(t *testing.T) {
	g := odd(t, 300, 900, false)
	s, err := HoldOut(t.Context(), g, 0, 0.2, 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRanked(t.Context(), g, s.Test, 5, 1, "test")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Ends) != 5*r.Len() || r.Against.Len() != r.Len() || len(r.Kept) != r.Len() {
		t.Fatalf("%d ends, %d pairs against %d", len(r.Ends), r.Against.Len(), r.Len())
	}
	edges, first := unordered(g), 0
	bad := func(u, v uint32) bool { return u == v || edges[[2]uint32{min(u, v), max(u, v)}] }
	for i := range r.U {
		if bad(r.Against.U[i], r.Against.V[i]) {
			t.Fatalf("pair %d is an edge", i)
		}
		if min(r.Kept[i], r.Other[i]) != r.U[i] || max(r.Kept[i], r.Other[i]) != r.V[i] {
			t.Fatalf("pair %d has other ends", i)
		}
		if r.Kept[i] == r.U[i] {
			first++
		}
		for _, w := range r.Ends[5*i : 5*i+5] {
			if bad(r.Kept[i], w) {
				t.Fatalf("an end of pair %d is an edge", i)
			}
		}
	}
	if first == 0 || first == r.Len() {
		t.Error("the same end is always kept")
	}
	other, err := NewRanked(t.Context(), g, s.Test, 5, 1, "val")
	if err != nil || fmt.Sprint(other.Ends) == fmt.Sprint(r.Ends) {
		t.Errorf("two sets have the same negatives (%v)", err)
	}
}

// TestNegativesOfHubsAreUniform: a vertex linked with all but five others, to which all draws fall that
// tries do not find, gets each of the five equally often, or by degree. χ² of 4 degrees of freedom is above 18.5
// once in 1000 seeds; this seed is fixed.
func TestNegativesOfHubsAreUniform(t *testing.T) {
	const nodes, draws = 200, 20000
	free := []uint32{3, 4, 50, 120, 199}
	var src, dst []uint32
	for v := uint32(1); v < nodes; v++ {
		if !slices.Contains(free, v) {
			src, dst = append(src, v), append(dst, 0)
		}
	}
	for i, v := range free { // in-degrees 1 to 5
		for k := range uint32(i + 1) {
			src, dst = append(src, 10+k), append(dst, v)
		}
	}
	g, err := graph.FromEdges(nodes, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, power := range []float64{0, 1} {
		n, err := NewNegatives(g, power, true, 2)
		if err != nil {
			t.Fatal(err)
		}
		count, chi := map[uint32]float64{}, 0.0
		for i := range draws {
			count[n.Draw(0, 0, i, 0, 0)]++
		}
		for i, v := range free {
			want := draws / 5.0
			if power == 1 {
				want = draws * float64(i+1) / 15
			}
			chi += (count[v] - want) * (count[v] - want) / want
		}
		if chi > 18.5 {
			t.Errorf("power %g: χ² is %.1f: %v", power, chi, count)
		}
	}
}

// TestNegativesFoundByTriesAreTheirs: the list of free vertices is looked at only where all tries hit edges.
func TestNegativesFoundByTriesAreTheirs(t *testing.T) {
	g := odd(t, 40, 120, false)
	negatives, err := NewNegatives(g, 0, true, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		key, u := negatives.key.Fold(uint64(i)), uint32(i%40)
		k := uint64(0)
		for k < tries && negatives.taken(u, negatives.any(key, k)) {
			k++
		}
		if got := negatives.ByKey(key, u); k < tries && got != negatives.any(key, k) {
			t.Fatalf("draw %d for %d: %d, want try %d: %d", i, u, got, k, negatives.any(key, k))
		}
	}
	whole, err := graph.FromEdges(2, []uint32{0}, []uint32{1}, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if negatives, err = NewNegatives(whole, 0, true, 3); err != nil || negatives.ByKey(negatives.key, 0) > 1 {
		t.Error("no vertex is free, and yet one is drawn", err)
	}
}
