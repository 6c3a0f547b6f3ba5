package train

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"starling/nn"
	"starling/rng"
	"starling/tensor"
)

// withCosts makes a strategy of that name that counts with given costs, so that no
// clock decides.
func withCosts(t *testing.T, name string, row, edge, byteSeconds float64) {
	t.Helper()
	strategies[name] = func(s *site) (planned, error) {
		model := nn.New(s.dev, s.opt.Model, s.opt.Seed)
		rows, edges := slices.Repeat([]float64{row}, model.Convs()), slices.Repeat([]float64{edge}, model.Convs())
		l := newLookup(s)
		return newHybrid(l, l.costs(model, rows, edges, byteSeconds, byteSeconds))
	}
	t.Cleanup(func() { delete(strategies, name) })
}

// TestNeutronStarIsExact, whether little, some or everything is recomputed.
func TestNeutronStarIsExact(t *testing.T) {
	withCosts(t, "all received", 1, 1, 1e-9)
	withCosts(t, "some of each", 100, 10, 1)
	withCosts(t, "all recomputed", 1e-9, 1e-9, 1)
	for i, model := range nn.Models {
		if model == "mlp" {
			continue
		}
		d := communities(t, 100, i%2 == 1)
		o := modelOptions(model)
		want := mustTrain(t, tensor.NewRef(), d, o)
		workers := []int{1, 2, 3, 5}[i%4]
		parts := cut(t, d, "fennel", max(workers, 2))
		for _, name := range []string{"all received", "some of each", "all recomputed"} {
			o.Strategy.Name, o.Strategy.Budget = name, 1<<40
			run := trainServers(t, parts, onRef, o)
			for _, r := range run.results {
				sameCurve(t, model+", "+name, r.Loss, want.Loss, 1e-9)
				sameCurve(t, model+", "+name+", validation", r.Val, want.Val, 1e-9)
			}
			if sent := rowsSent(run); name == "all recomputed" && sent > 0 {
				t.Errorf("%s: %d bytes of rows sent, with %q", model, sent, run.notes)
			}
			t.Log(model, run.notes)
		}
		o.Strategy.Name, o.Strategy.Budget = "all recomputed", 1
		if sent := rowsSent(trainServers(t, parts, onRef, o)); sent == 0 {
			t.Errorf("%s: everything recomputed without memory", model)
		}
	}
}

// rowsSent are the bytes of rows of hidden layers and their gradients.
func rowsSent(r *trained) (bytes int64) {
	for _, c := range r.counted {
		for s, b := range c {
			if s.Layer >= 0 {
				bytes += b
			}
		}
	}
	return bytes
}

// TestNeutronStarMeasures: with rates of this machine it is exact too.
func TestNeutronStarMeasures(t *testing.T) {
	for _, model := range []string{"gcn", "mlp", "ressage+"} {
		d := oddities(t, 80, model == "gcn")
		o := modelOptions(model)
		o.Strategy = DefaultChoice("neutronstar")
		want := mustTrain(t, tensor.NewRef(), d, o)
		for _, workers := range []int{1, 3} {
			for _, r := range trainServers(t, cut(t, d, "random", workers), onRef, o).results {
				sameCurve(t, fmt.Sprint(model, " on ", workers), r.Loss, want.Loss, 1e-9)
			}
		}
	}
}

// chain is a graph 0 ← 1 ← 2 ← 3 ← 4 with 0 our own, and 5 beside 2: 1 ← 5 too.
func chain(c *costs, budget int64) *dependencies {
	d := newDependencies(c, func(v uint32) bool { return v == 0 }, budget)
	d.in = map[uint32][]uint32{1: {2, 5}, 2: {3}, 3: {4}, 4: nil, 5: {0}}
	d.degree = map[uint32]int64{1: 2, 2: 1, 3: 1, 4: 0, 5: 1}
	return d
}

// TestNeutronStarCosts: hand-computed. A row costs 10, an edge 1, a feature 5 bytes, a
// kept row 7 bytes.
func TestNeutronStarCosts(t *testing.T) {
	at := layerCost{row: 10, edge: 1, traffic: 4, kept: 7}
	c := &costs{layers: []layerCost{at, at, at}, feature: 5}
	for depth, want := range []raised{
		{depth: map[uint32]int{1: 0}, bytes: 5},
		{depth: map[uint32]int{1: 1, 2: 0, 5: 0}, seconds: 12, bytes: 3*5 + 7 + 2*edgeBytes},
		{depth: map[uint32]int{1: 2, 2: 1, 5: 1, 3: 0}, seconds: 24 + 11 + 11, bytes: 4*5 + 4*7 + (4+1+1)*edgeBytes},
	} {
		got := chain(c, 0).raise(1, depth)
		if !maps.Equal(got.depth, want.depth) || got.seconds != want.seconds || got.bytes != want.bytes || got.missing != nil {
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
	c.layers[0].transformFirst = true
	if r := chain(c, 0).raise(1, 1); r.seconds != 30+2 { // three rows are transformed in layer 0, one row's edges added up
		t.Errorf("transformed first: %g s, want 32", r.seconds)
	}
}

// TestNeutronStarGreedy: the cheapest first; what it brings is free for the next; dear
// ones and those without room are received.
func TestNeutronStarGreedy(t *testing.T) {
	at := layerCost{row: 10, edge: 1, traffic: 1, kept: 7}
	both := func(price float64) []candidate { return []candidate{{1, price}, {2, price}} }
	for _, c := range []struct {
		price  float64
		budget int64
		want   map[uint32]int
	}{
		{11.5, 0, map[uint32]int{2: 1, 3: 0}}, // 2 costs 11, 1 costs 12
		{12.5, 0, map[uint32]int{1: 1, 2: 1, 5: 0, 3: 0}},
		{10, 0, map[uint32]int{}},
		{12.5, 10 + 7 + edgeBytes, map[uint32]int{2: 1, 3: 0}},
		{12.5, 1, map[uint32]int{}},
	} {
		d := chain(&costs{layers: []layerCost{{row: 10, edge: 1}, at}, feature: 5}, c.budget)
		d.layers[0].kept = 7
		if d.greedy(both(c.price), 1); !maps.Equal(d.depth, c.want) {
			t.Errorf("price %g, budget %d: %v, want %v", c.price, c.budget, d.depth, c.want)
		}
	}
}

// TestNeutronStarIsComplete: on random graphs what is at a depth has all that it depends
// on at one less, and bytes and seconds are those of all steps together.
func TestNeutronStarIsComplete(t *testing.T) {
	at := layerCost{row: 3, edge: 1, traffic: 1, kept: 2}
	for seed := range uint64(30) {
		key := rng.New(seed)
		d := newDependencies(&costs{layers: []layerCost{at, at, at, at}, feature: 1}, func(v uint32) bool { return v < 10 }, 0)
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
			t.Fatalf("seed %d: %d bytes counted for %d copies, %d taken", seed, d.bytes, len(d.depth), bytes)
		}
	}
}

// TestNeutronStarRelayed: whatever is chosen where rows are shared, losses are one worker's.
func TestNeutronStarRelayed(t *testing.T) {
	withCosts(t, "some of each", 100, 10, 1)
	withCosts(t, "most recomputed", 10, 1, 1)
	for i, model := range familyModels {
		d := communities(t, 100, i%2 == 1)
		o := modelOptions(model)
		want := mustTrain(t, tensor.NewRef(), d, o)
		o.Strategy.Relay, o.Strategy.Budget = true, 1<<40
		parts := cutForServers(t, d, "fennel", 4, 2)
		for _, o.Strategy.Name = range []string{"some of each", "most recomputed"} {
			for _, r := range trainServers(t, parts, onRef, o).results {
				sameCurve(t, model+", "+o.Strategy.Name, r.Loss, want.Loss, 1e-9)
			}
		}
	}
}

func TestNeutronStarOnOddParts(t *testing.T)    { exactOnOddParts(t, DefaultChoice("neutronstar")) }
func TestNeutronStarStopsTogether(t *testing.T) { allStop(t, DefaultChoice("neutronstar")) }
