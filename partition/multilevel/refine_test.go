package multilevel

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/partition/graphtest"
	"starling/rng"
)

// Cut and loads as the refinements keep them, against a recount.
func TestRefinementKeepsCount(t *testing.T) {
	for seed := range uint64(10) {
		r, fine, coarse, _ := contracted(t, seed)
		r.tuning.hubs = seed%2 == 1 // with a table
		for _, g := range []*levelGraph{fine, coarse} {
			const k = 5
			part := make([]uint16, g.n)
			for v := range part {
				part[v] = uint16(r.key.IntN(uint64(v), k))
			}
			limit := g.totals()
			for c := range limit {
				limit[c] = limit[c]/k*11/10 + 10
			}
			a := newAssignment(g, k, part, repeatLimits(limit, k))
			before := a.cut()
			f := r.newKwayFM(a, nil)
			gained := f.refine(3, 50)
			checkCount(t, a, before-gained)
			for v := range uint32(g.n) {
				if in, out := f.sums(v); f.cached[v] && (in != f.in[v] || out != f.out[v]) {
					t.Fatalf("vertex %d has weights %d and %d, kept %d and %d", v, in, out, f.in[v], f.out[v])
				}
			}
			j := r.newJet(a, 0.5)
			for i := range uint8(6) {
				j.evaluate()
				checkCount(t, a, j.cut2/2)
				if j.step(i+1) == 0 {
					break
				}
			}
			j.evaluate()
			if j.rebalance(7) > 0 {
				j.evaluate()
			}
			checkCount(t, a, j.cut2/2)
			j.free()
		}
	}
}

// Passes follow one another while they gain at all, or gain enough per boundary vertex.
func TestRefinementEndsWhenPassesGainLittle(t *testing.T) {
	refine := func(gainPerPass int64, passes int) (cut int64) {
		r := newRun(context.Background(), rng.New(1), 1, &memory{})
		defer r.mem.freeAll()
		r.tuning.gainPerPass = gainPerPass
		g := r.finestGraph(unweighted(graphtest.Mesh(t, 40, 40)))
		const k = 4
		part := make([]uint16, g.n)
		for v := range part {
			part[v] = uint16(r.key.IntN(uint64(v), k))
		}
		a := newAssignment(g, k, part, repeatLimits([]int64{420}, k))
		r.newKwayFM(a, nil).refine(passes, 50)
		return a.cut()
	}
	two, all := refine(0, 2), refine(0, 16)
	if all >= two {
		t.Fatalf("cuts of %d after two passes, of %d after all: this test needs a difference", two, all)
	}
	if cut := refine(1, 16); cut != two { // the second gains less than the boundary has vertices
		t.Errorf("a cut of %d, of %d after two passes", cut, two)
	}
	if some := refine(16, 16); some <= all || some >= two {
		t.Errorf("a cut of %d, of %d after two passes, of %d after all", some, two, all)
	}
	if cut := refine(1<<20, 16); cut != all {
		t.Errorf("a cut of %d, of %d after all passes", cut, all)
	}
}

// The same of bisections: grown ones, which start from scratch each time, and refined ones.
func TestTwoWayFMKeepsCount(t *testing.T) {
	eachGrown(t, func(r *run, a *assignment, _ int, cut int64) {
		checkCount(t, a, cut)
		h := r.newTwoWayFM(a)
		for excess := a.excess(); h.pass(50); cut, excess = a.cut(), a.excess() {
			if !better(a.excess(), a.cut(), excess, cut) {
				t.Fatalf("a pass led from excess %g, cut %d to %g, %d", excess, cut, a.excess(), a.cut())
			}
			checkSides(t, h)
		}
	})
}

// eachGrown calls check with bisections grown from three vertices each, in the memory of the
// one before.
func eachGrown(t *testing.T, check func(r *run, a *assignment, start int, cut int64)) {
	for seed := range uint64(10) {
		r, fine, coarse, _ := contracted(t, seed)
		for _, g := range []*levelGraph{fine, coarse} {
			limit := g.totals()
			for c := range limit {
				limit[c] = limit[c]/2*21/20 + 1
			}
			a := newAssignment(g, 2, make([]uint16, g.n), repeatLimits(limit, 2))
			w := r.newGrowing(a)
			for i := range uint64(3) {
				start := r.key.IntN(i, g.n)
				check(r, a, start, w.grow(start))
			}
		}
	}
}

// checkSides recounts edges within and between the sides.
func checkSides(t *testing.T, h *twoWayFM) {
	t.Helper()
	out := slices.Clone(h.out)
	h = (&run{mem: &memory{}}).newTwoWayFM(h.a)
	if !slices.Equal(out, h.out) {
		t.Fatal("weights between the sides differ from a recount")
	}
	checkCount(t, h.a, h.a.cut())
}

// cut is the weight of edges between parts.
func (a *assignment) cut() int64 {
	var sum int64
	for v := range uint32(a.g.n) {
		for e := a.g.off[v]; e < a.g.off[v+1]; e++ {
			if a.part[a.g.adj[e]] != a.part[v] {
				sum += int64(a.g.edgeWeight(e))
			}
		}
	}
	return sum / 2
}

func checkCount(t *testing.T, a *assignment, kept int64) {
	t.Helper()
	if cut := a.cut(); cut != kept {
		t.Fatalf("cut %d, kept %d", cut, kept)
	}
	load := slices.Clone(a.load)
	a.recount()
	if !slices.Equal(load, a.load) {
		t.Fatalf("loads %v, kept %v", a.load, load)
	}
}

// The stopping rule, against the formula of the paper.
func TestStoppingRule(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 12))
	seen := map[bool]int{}
	for range 2000 {
		steps := 1 + r.IntN(200)
		down, noise := r.Float64(), 3*r.Float64()
		var sum, squares float64
		for range steps {
			gain := math.Round(noise*r.NormFloat64() - down)
			sum, squares = sum+gain, squares+gain*gain
		}
		n := float64(steps)
		mean := sum / n
		left, right := n*mean*mean, 10*(squares/n-mean*mean)+2
		if math.Abs(left-right) < 1e-9 {
			continue
		}
		want := n > 20 && sum < 0 && left > right
		seen[want]++
		if descends(sum, squares, n) != want {
			t.Fatalf("%d steps, sum %g, squares %g: want %v", steps, sum, squares, want)
		}
	}
	if seen[true] < 100 || seen[false] < 100 {
		t.Fatalf("cases are one-sided: %v", seen)
	}
}
