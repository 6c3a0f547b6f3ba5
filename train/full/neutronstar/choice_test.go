package neutronstar

import (
	"maps"
	"slices"
	"testing"

	"starling/cost"
	"starling/rng"
)

// chain is a graph 0 ← 1 ← 2 ← 3 ← 4 with 0 our own, and 5 beside 2: 1 ← 5 too.
func chain(c *cost.Epoch, budget int64) *dependencies {
	d := newDependencies(c, func(v uint32) bool { return v == 0 }, budget)
	d.in = map[uint32][]uint32{1: {2, 5}, 2: {3}, 3: {4}, 4: nil, 5: {0}}
	d.degree = map[uint32]int64{1: 2, 2: 1, 3: 1, 4: 0, 5: 1}
	return d
}

// TestCosts: hand-computed. A row costs 10, an edge 1, a feature 5 bytes, a
// kept row 7 bytes.
func TestCosts(t *testing.T) {
	at := cost.Layer{Row: 10, Edge: 1, Traffic: 4, Kept: 7}
	c := &cost.Epoch{Layers: []cost.Layer{at, at, at}, Feature: 5}
	for depth, want := range []raised{
		{depth: map[uint32]int{1: 0}, bytes: 5},
		{depth: map[uint32]int{1: 1, 2: 0, 5: 0}, seconds: 12, bytes: 3*5 + 7 + 2*cost.EdgeBytes},
		{depth: map[uint32]int{1: 2, 2: 1, 5: 1, 3: 0}, seconds: 24 + 11 + 11,
			bytes: 4*5 + 4*7 + (4+1+1)*cost.EdgeBytes},
	} {
		got := chain(c, 0).raise(1, depth)
		if !maps.Equal(got.depth, want.depth) || got.seconds != want.seconds || got.bytes != want.bytes ||
			got.missing != nil {
			t.Errorf("vertex 1 at depth %d: %+v, want %+v", depth, got, want)
		}
	}
	d := chain(c, 0)
	delete(d.in, 2)
	if r := d.raise(1, 2); !slices.Equal(r.missing, []uint32{2}) {
		t.Errorf("missing %v, want 2", r.missing)
	}
	d = chain(c, 0)
	maps.Copy(d.depth, d.raise(1, 1).depth)
	if r := d.raise(1, 2); r.seconds != 12+11+11 { // one layer more each
		t.Errorf("one layer more of vertex 1 takes %g s, want 34", r.seconds)
	}
	c.Layers[0].TransformFirst = true
	// Three rows are transformed in layer 0, and one row's edges summed.
	if r := chain(c, 0).raise(1, 1); r.seconds != 30+2 {
		t.Errorf("transformed first: %g s, want 32", r.seconds)
	}
}

// TestGreedy: the cheapest first; what it brings is free for the next; dear
// ones and those without memory are received.
func TestGreedy(t *testing.T) {
	at := cost.Layer{Row: 10, Edge: 1, Traffic: 1, Kept: 7}
	both := func(price float64) []candidate { return []candidate{{1, price}, {2, price}} }
	for _, c := range []struct {
		price  float64
		budget int64
		want   map[uint32]int
	}{
		{11.5, 0, map[uint32]int{2: 1, 3: 0}}, // 2 costs 11, 1 costs 12
		{12.5, 0, map[uint32]int{1: 1, 2: 1, 5: 0, 3: 0}},
		{10, 0, map[uint32]int{}},
		{12.5, 10 + 7 + cost.EdgeBytes, map[uint32]int{2: 1, 3: 0}},
		{12.5, 1, map[uint32]int{}},
	} {
		d := chain(&cost.Epoch{Layers: []cost.Layer{{Row: 10, Edge: 1}, at}, Feature: 5}, c.budget)
		d.costs.Layers[0].Kept = 7
		if d.greedy(both(c.price), 1); !maps.Equal(d.depth, c.want) {
			t.Errorf("price %g, budget %d: %v, want %v", c.price, c.budget, d.depth, c.want)
		}
	}
}

// TestIsComplete: on random graphs what is at a depth has all that it depends
// on at one less, and bytes and seconds are the sums over all steps.
func TestIsComplete(t *testing.T) {
	at := cost.Layer{Row: 3, Edge: 1, Traffic: 1, Kept: 2}
	for seed := range uint64(30) {
		key := rng.New(seed)
		d := newDependencies(&cost.Epoch{Layers: []cost.Layer{at, at, at, at}, Feature: 1},
			func(v uint32) bool { return v < 10 }, 0)
		for v := range uint32(40) {
			for i := range key.IntN(uint64(v), 4) {
				d.in[v] = append(d.in[v], uint32(key.Fold(uint64(v)).IntN(uint64(i), 40)))
			}
			if d.in[v] == nil {
				d.in[v] = []uint32{}
			}
			d.degree[v] = int64(len(d.in[v]))
		}
		for depth := range 4 {
			var all []candidate
			for v := uint32(10); v < 20; v++ {
				all = append(all, candidate{v, 12})
			}
			d.greedy(all, depth)
		}
		var bytes int64
		for v, depth := range d.depth {
			for j := range depth + 1 {
				_, b := d.step(j, d.degree[v])
				bytes += b
			}
			for _, u := range d.in[v] {
				if depth > 0 && !d.isOwn(u) && d.depthOf(u) < depth-1 {
					t.Fatalf("seed %d: vertex %d at depth %d needs %d, which is at %d", seed, v, depth, u, d.depthOf(u))
				}
			}
		}
		if bytes != d.bytes || len(d.depth) == 0 {
			t.Fatalf("seed %d: %d bytes counted for %d replicas, %d taken", seed, d.bytes, len(d.depth), bytes)
		}
	}
}
