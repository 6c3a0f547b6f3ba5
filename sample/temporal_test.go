package sample

import (
	"maps"
	"math"
	"slices"
	"testing"

	"starling/graph"
	"starling/rng"
)

// timed gives the entries of a graph times, many of them equal, and its vertices.
func timed(g *graph.CSR) (edges, vertices []int64) {
	key := rng.New(3)
	for e := range g.Edges() {
		edges = append(edges, int64(key.IntN(uint64(e), 40))-5)
	}
	for v := range g.Nodes() {
		vertices = append(vertices, int64(key.IntN(1<<40+uint64(v), 50))-10)
	}
	return edges, vertices
}

// view is all that a row leads to: of each block its edges' sources, as of which time, and what they count.
func view(b *Batch, layer int, row uint32) (list []float64) {
	x := &b.Blocks[layer]
	list = append(list, float64(b.Vertices[row]), float64(b.Times[row]), b.Degrees[row])
	for e := x.Indptr[row]; e < x.Indptr[row+1]; e++ {
		w := 1.0
		if len(x.RowWeights) > 0 {
			w *= float64(x.RowWeights[row])
		}
		if len(x.Weights) > 0 {
			w *= float64(x.Weights[e])
		}
		list = append(list, w)
		if layer > 0 {
			list = append(list, view(b, layer-1, x.Indices[e])...)
		} else {
			list = append(list, float64(b.Vertices[x.Indices[e]]), float64(b.Times[x.Indices[e]]))
		}
	}
	return list
}

func TestTemporalShowsThePast(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		g := odd(t, 200, 3000, weighted)
		edges, vertices := timed(g)
		past := NewPast(g, edges, nil)
		for _, recent := range []bool{false, true} {
			n := &Temporal{Graph: g, Past: past, Times: vertices, SeedVertices: everyThird(200), Size: 20,
				Fanouts: []int{4, 3}, Recent: recent, Seed: 9}
			m, err := n.Prepare()
			if err != nil {
				t.Fatal(err)
			}
			s := m.Sampler()
			var b Batch
			drawn := 0
			for number := range m.Batches() {
				s.Sample(&b, 2, number)
				drawn += checkPast(t, g, edges, &b, n)
			}
			if drawn < 500 {
				t.Fatalf("only %d edges were drawn: the test shows little", drawn)
			}
		}
	}
}

// checkPast compares every row of a batch with a slow search of what it may see.
func checkPast(t *testing.T, g *graph.CSR, times []int64, b *Batch, n *Temporal) (drawn int) {
	t.Helper()
	for i, row := range b.Seeds {
		if int(row) != i || b.Times[row] != n.Times[b.Vertices[row]] {
			t.Fatalf("seed %d is row %d of time %d", i, row, b.Times[row])
		}
	}
	rows := map[moment]bool{}
	for i, v := range b.Vertices {
		rows[moment{v, b.Times[i]}] = true
	}
	if len(rows) != len(b.Vertices) {
		t.Fatalf("%d rows, %d different ones", len(b.Vertices), len(rows))
	}
	for layer := range b.Blocks {
		x, fanout := &b.Blocks[layer], n.Fanouts[len(n.Fanouts)-1-layer]
		for i := range x.Dst {
			v, at := b.Vertices[i], b.Times[i]
			seen, degree := map[uint32]int{}, 0.0
			var when []int64
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				if times[e] >= at {
					continue
				}
				seen[g.Indices[e]]++
				when = append(when, times[e])
				if g.Weights == nil {
					degree++
				} else {
					degree += float64(g.Weights[e])
				}
			}
			k := int(x.Indptr[i+1] - x.Indptr[i])
			if k != min(fanout, len(when)) {
				t.Fatalf("row %d drew %d edges of %d", i, k, len(when))
			}
			if math.Abs(b.Degrees[i]-degree) > 1e-9 {
				t.Fatalf("row %d has degree %g at its time, not %g", i, b.Degrees[i], degree)
			}
			if want := float32(max(len(when), 1)) / float32(max(k, 1)); x.RowWeights[i] != want {
				t.Fatalf("an edge of row %d counts %g, not %g", i, x.RowWeights[i], want)
			}
			drew := map[uint32]int{}
			for _, u := range x.Indices[x.Indptr[i]:x.Indptr[i+1]] {
				if b.Times[u] != at {
					t.Fatalf("a source of time %d for a row of time %d", b.Times[u], at)
				}
				drew[b.Vertices[u]]++
			}
			for u, c := range drew {
				if c > seen[u] {
					t.Fatalf("%d edges %d->%d drawn as of %d, there are %d", c, u, v, at, seen[u])
				}
			}
			if n.Recent && k > 0 { // sources that only later edges come from are never among the latest
				slices.Sort(when)
				late := map[uint32]int{}
				for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
					if times[e] < at && times[e] >= when[len(when)-k] {
						late[g.Indices[e]]++
					}
				}
				for u, c := range drew {
					if c > late[u] {
						t.Fatalf("edge %d->%d is not one of the %d latest", u, v, k)
					}
				}
			}
			drawn += k
		}
	}
	return drawn
}

// A seed's view does not depend on the others of its batch, nor on edges from its time on.
func TestTemporalViewsAreOfASeed(t *testing.T) {
	g := odd(t, 120, 2000, true)
	edges, vertices := timed(g)
	make := func(edges []int64) *TemporalSampler {
		n := &Temporal{Graph: g, Past: NewPast(g, edges, nil), Times: vertices, SeedVertices: everyThird(120),
			Size:    40,
			Fanouts: []int{3, 4}, Seed: 9}
		if _, err := n.Prepare(); err != nil {
			t.Fatal(err)
		}
		return n.TemporalSampler()
	}
	s := make(edges)
	var all, one, other Batch
	seeds := everyThird(120)
	at := func(list []uint32) (times []int64) {
		for _, v := range list {
			times = append(times, vertices[v])
		}
		return times
	}
	s.SampleAt(&all, seeds, at(seeds), 1, 7)
	for i, v := range seeds {
		s.SampleAt(&one, seeds[i:i+1], at(seeds[i:i+1]), 1, 7)
		if !slices.Equal(view(&all, 1, uint32(i)), view(&one, 1, 0)) {
			t.Fatalf("vertex %d sees something else alone than among others", v)
		}
		later := slices.Clone(edges)
		for e := range later {
			if later[e] >= vertices[v] { // any order of what comes later
				later[e] = vertices[v] + (later[e]*7919%31+31)%31
			}
		}
		if i < 12 {
			make(later).SampleAt(&other, seeds[i:i+1], at(seeds[i:i+1]), 1, 7)
			if !slices.Equal(view(&one, 1, 0), view(&other, 1, 0)) {
				t.Fatalf("vertex %d sees other edges when later ones are at other times", v)
			}
		}
	}
	distinct, place := all.Distinct(nil, nil)
	if len(distinct) == len(all.Vertices) {
		t.Fatal("no vertex has two rows: the test shows nothing")
	}
	for i, p := range place {
		if distinct[p] != all.Vertices[i] {
			t.Fatalf("row %d is of vertex %d, not %d", i, all.Vertices[i], vertices[p])
		}
	}
}

// Any set of the edges from before is equally likely.
func TestTemporalDrawsEvenly(t *testing.T) {
	g := star(12)
	times := make([]int64, g.Edges())
	for e := range times {
		times[e] = int64(e * 5 % 12)
	}
	hub := uint32(0)
	for v := range uint32(g.Nodes()) {
		if g.Degree(v) == 12 {
			hub = v
		}
	}
	d := &PastDrawer{Past: NewPast(g, times, nil)}
	count, draws := map[uint32]int{}, 6000
	var x Block
	for i := range draws {
		d.Draw(&x, nil, []uint32{hub}, []int64{8}, 2, rng.New(uint64(i)))
		for _, u := range x.Indices {
			count[u]++
		}
	}
	if len(count) != 8 {
		t.Fatalf("%d sources drawn, 8 have edges from before", len(count))
	}
	want := float64(draws) * 2 / 8
	for u := range maps.Keys(count) {
		if off := math.Abs(float64(count[u]) - want); off > 5*math.Sqrt(want) {
			t.Errorf("source %d drawn %d times, about %g expected", u, count[u], want)
		}
	}
}
