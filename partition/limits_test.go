package partition

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestEngineGraph: rows made from the graph as it is mapped equal METIS's arrays.
func TestEngineGraph(t *testing.T) {
	seeds(t, 40, func(t *testing.T, r *rand.Rand) {
		g := randomGraph(t, r, 1+r.IntN(80))
		off, adj, w, err := metisGraph[int64](g, g.Symmetric())
		must(t, err)
		x := newEngineGraph(&Problem{Graph: g}, nil)
		if x.arcs != int64(len(adj)) || x.weighted != (w != nil) {
			t.Fatalf("%d arcs, weighted %t; want %d, %t", x.arcs, x.weighted, len(adj), w != nil)
		}
		for v := range g.Nodes() {
			neighbours, weights := x.row(v)
			if len(neighbours) != int(off[v+1]-off[v]) {
				t.Fatal(len(neighbours))
			}
			for i, u := range neighbours {
				e := off[v] + int64(i)
				if int64(u) != adj[e] || w != nil && int64(weights[i]) != w[e] {
					t.Fatalf("vertex %d: %d", v, neighbours)
				}
			}
		}
	})
}

// TestPresets: a preset of KaMinPar is part of the method's name.
func TestPresets(t *testing.T) {
	for _, name := range []string{"kaminpar:", "ptscotch:x", "fennel:strong"} {
		if _, err := find(name); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if !IsEngine("kaminpar:strong") || !slices.Contains(Names(), WithoutPreset("kaminpar:strong")) {
		t.Error("kaminpar:strong is not known")
	}
	g := blocks(rand.New(rand.NewPCG(1, 2)), 400, 4, 8, 0.8)
	p := &Problem{Graph: g, Parts: 4, Seed: 1, Threads: 1}
	for _, preset := range []string{"strong", "terapart"} {
		e, err := find("kaminpar:" + preset)
		must(t, err)
		engineOrSkip(t, e.method, p)
		by(t, e.name, p)
	}
	_, err := By(t.Context(), "kaminpar:strongest", p)
	if err == nil || !strings.Contains(err.Error(), "largek-strong") || !strings.Contains(err.Error(), "terapart") {
		t.Error(err)
	}
}

// TestReportsLimits: the report says whether constraints were folded and how many vertices were moved afterwards.
func TestReportsLimits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	g := randomGraph(t, r, 200)
	p := &Problem{Graph: g, Parts: 4, Limits: &Limits{}, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.05}}}
	parts := make([]uint32, g.Nodes()) // all in the first
	must(t, rebalance(t.Context(), p, parts, newLoads(p).of(parts)))
	moved := int64(0)
	for _, k := range parts {
		if k != 0 {
			moved++
		}
	}
	if p.Limits.Repaired != moved || moved < 140 {
		t.Errorf("%d moved, %d reported", moved, p.Limits.Repaired)
	}
	dir := saved(t, 500, 2000, false, false)
	for method, folded := range map[string]bool{"hash": false, "fennel": false, "kaminpar": true, "ptscotch": true} {
		report, err := Run(t.Context(), dir, Options{Method: method, Parts: 3, Seed: 1, Threads: 1})
		switch {
		case err != nil && strings.Contains(err.Error(), ErrNoEngine.Error()):
			t.Log(err)
		case err != nil:
			t.Error(err)
		case method == "hash" && report.Limits != nil:
			t.Error("hash has limits")
		case method != "hash" && report.Limits.Folded != folded:
			t.Errorf("%s: folded %t", method, report.Limits.Folded)
		}
	}
}
