package partition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/graph"
	"starling/rng"
)

// mlShapes are graphs with what usually goes wrong.
func mlShapes(t *testing.T, r *rand.Rand) map[string]*graph.CSR {
	n := 50 + r.IntN(400)
	build := func(edge func(i int) (int, int), m int, opt graph.BuildOptions) *graph.CSR {
		src, dst := make([]uint32, m), make([]uint32, m)
		for i := range m {
			u, v := edge(i)
			src[i], dst[i] = uint32(u), uint32(v)
		}
		g, err := graph.FromEdges(n, src, dst, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	anywhere := func(int) (int, int) { return r.IntN(n), r.IntN(n) }
	both := graph.BuildOptions{Symmetrise: true}
	return map[string]*graph.CSR{
		"symmetric":    build(anywhere, 4*n, both),
		"directed":     build(anywhere, 4*n, graph.BuildOptions{}),
		"no edges":     build(anywhere, 0, both),
		"sparse":       build(anywhere, n/4, both),
		"star":         build(func(i int) (int, int) { return 0, 1 + i%(n-1) }, n-1, both),
		"repeated":     build(func(i int) (int, int) { return i % 7, i % 11 }, 5*n, both),
		"path":         build(func(i int) (int, int) { return i, i + 1 }, n-1, both),
		"cliques":      build(func(i int) (int, int) { c := 10 * r.IntN(n/10); return c + r.IntN(10), c + r.IntN(10) }, 8*n, both),
		"skewed":       build(func(i int) (int, int) { return r.IntN(n), r.IntN(1 + r.IntN(1+r.IntN(n))) }, 6*n, both),
		"only loops":   build(func(i int) (int, int) { return i, i }, n, graph.BuildOptions{}),
		"two vertices": {Indptr: []int64{0, 1, 2}, Indices: []uint32{1, 0}},
	}
}

func TestMultilevelOnAllShapes(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		for name, g := range mlShapes(t, r) {
			for _, k := range []int{1, 2, 3, 8, 33} {
				if k > g.Nodes() {
					continue
				}
				p := &Problem{Graph: g, Parts: k, Seed: seed, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.03}}}
				t.Run(fmt.Sprintf("%s/%d/%d", name, k, seed), func(t *testing.T) { mlCheckRun(t, p) })
			}
		}
	}
}

// mlCheckRun partitions on several numbers of threads and checks what must hold.
func mlCheckRun(t *testing.T, p *Problem) []uint32 {
	var first []uint32
	for _, p.Threads = range []int{1, 2, 3} {
		parts, err := Multilevel(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = parts
		}
		if !slices.Equal(parts, first) {
			t.Fatalf("another partition on %d threads", p.Threads)
		}
	}
	if len(first) != p.Graph.Nodes() {
		t.Fatalf("%d vertices of %d", len(first), p.Graph.Nodes())
	}
	for v, k := range first {
		if int(k) >= p.Parts {
			t.Fatalf("vertex %d in part %d of %d", v, k, p.Parts)
		}
	}
	if err := newLoads(p).of(first).unbalanced(first); err != nil {
		t.Fatal(err)
	}
	return first
}

func TestMultilevelKeepsSeveralConstraints(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := mlBlocks(t, r, 2000, 20, 10)
		train := make([]uint32, g.Nodes())
		for v := range train {
			if r.IntN(10) == 0 || v < 150 {
				train[v] = 1
			}
		}
		for _, k := range []int{2, 5, 16} {
			p := &Problem{Graph: g, Parts: k, Seed: seed, Constraints: []Constraint{
				{Name: "vertices", Tolerance: 0.05},
				{Name: "edges", Weight: degreeWeights(g), Tolerance: 0.1},
				{Name: "train", Weight: train, Tolerance: 0.1},
			}}
			mlCheckRun(t, p)
		}
	}
}

// mlBlocks is a graph of equal communities, four fifths of the edges inside.
func mlBlocks(t *testing.T, r *rand.Rand, n, communities, degree int) *graph.CSR {
	m := n * degree / 2
	src, dst := make([]uint32, m), make([]uint32, m)
	for i := range m {
		v := r.IntN(n)
		src[i], dst[i] = uint32(v), uint32(r.IntN(n))
		if r.IntN(5) > 0 {
			dst[i] = uint32(v%communities + communities*r.IntN(n/communities))
		}
	}
	g, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{Symmetrise: true, DropDuplicates: true, DropSelfLoops: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Communities that fit exactly must be found.
func TestMultilevelFindsCommunities(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	g := mlBlocks(t, r, 4000, 8, 20)
	parts := mlCheckRun(t, &Problem{Graph: g, Parts: 8, Seed: 1, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.03}}})
	var cut, between int64
	for v := range uint32(g.Nodes()) {
		for _, u := range g.Neighbors(v) {
			if parts[u] != parts[v] {
				cut++
			}
			if u%8 != v%8 {
				between++
			}
		}
	}
	if float64(cut) > 1.02*float64(between) {
		t.Fatalf("cut %d, between communities %d", cut/2, between/2)
	}
}

func TestMultilevelSaysWhatCannotBe(t *testing.T) {
	g := mlBlocks(t, rand.New(rand.NewPCG(1, 4)), 200, 4, 6)
	heavy := make([]uint32, 200)
	heavy[7], heavy[8] = 100, 1
	p := &Problem{Graph: g, Parts: 4, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.1}, {Name: "gold", Weight: heavy, Tolerance: 0.1}}}
	parts, err := Multilevel(context.Background(), p)
	var u *Unbalanced
	if !errors.As(err, &u) || u.Constraint != "gold" || len(u.Parts) != 200 {
		t.Fatalf("got %v, want that gold cannot be balanced", err)
	}
	if !slices.Equal(parts, u.Parts) {
		t.Fatal("the best found is missing")
	}
	for _, k := range []int{0, -1, 201} {
		if _, err := Multilevel(context.Background(), &Problem{Graph: g, Parts: k}); !errors.Is(err, graph.ErrInput) {
			t.Errorf("%d parts of 200 vertices: got %v, want a user's mistake", k, err)
		}
	}
	if parts, err := Multilevel(context.Background(), &Problem{Graph: &graph.CSR{Indptr: []int64{0}}, Parts: 4}); err != nil || len(parts) != 0 {
		t.Errorf("no vertices: %v, %v", parts, err)
	}
}

func TestMultilevelStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g := mlBlocks(t, rand.New(rand.NewPCG(1, 5)), 5000, 10, 8)
	p := &Problem{Graph: g, Parts: 4}
	if _, err := Multilevel(ctx, p); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	// Coarsening that was stopped must not hand a graph that is still large to bisection.
	m := &mlPartition{mlRun: newMLRun(ctx, 0, 1, &mlMemory{}), p: p, k: 4, limit: []int64{2000}}
	if part := m.run(m.newMLGraph(p, p.constraints())); part != nil {
		t.Fatal("it was cut all the same")
	}
}

// mlWeighted is a small graph at a coarse level: contracted once from a random one.
func mlWeighted(t *testing.T, seed uint64) (r *mlRun, fine, coarse *mlGraph, to []uint32) {
	draw := rand.New(rand.NewPCG(seed, 6))
	g := mlBlocks(t, draw, 300, 10, 8)
	r = newMLRun(context.Background(), rng.New(seed), 2, &mlMemory{})
	fine = r.newMLGraph(&Problem{Graph: g}, []Constraint{{Name: "vertices"}, {Name: "edges", Weight: degreeWeights(g)}})
	label := r.cluster(fine, []int64{8, 60}, 2, false, r.key)
	load := map[uint32][2]int64{}
	for v, l := range label {
		s := load[l]
		load[l] = [2]int64{s[0] + 1, s[1] + fine.load(uint32(v), 1)}
		if c := load[l]; c[0] > 8 || c[1] > 60 && c[0] > 1 {
			t.Fatalf("a cluster of %v", c)
		}
	}
	coarse, level := r.contract(fine, label, false)
	return r, fine, coarse, level.to
}

// A contracted graph, against sums in a map; that of the mesh is made in several ranges.
func TestContractSumsEdges(t *testing.T) {
	for seed := range uint64(10) {
		_, fine, coarse, to := mlWeighted(t, seed)
		mlCheckContracted(t, fine, coarse, to)
	}
	for _, threads := range []int{1, 3} {
		r := newMLRun(context.Background(), rng.New(1), threads, &mlMemory{})
		r.hire(threads)
		fine := r.newMLGraph(&Problem{Graph: mlGrid(t, 90, 80)}, []Constraint{{Name: "vertices"}})
		coarse, level := r.contract(fine, r.cluster(fine, []int64{8}, 0, true, r.key), false)
		mlCheckContracted(t, fine, coarse, level.to)
		r.dismiss()
		r.mem.freeAll()
	}
}

func mlCheckContracted(t *testing.T, fine, coarse *mlGraph, to []uint32) {
	want := map[[2]uint32]uint32{}
	for v := range uint32(fine.n) {
		for _, u := range fine.adj[fine.off[v]:fine.off[v+1]] {
			if to[u] != to[v] {
				want[[2]uint32{to[v], to[u]}]++
			}
		}
	}
	for v := range uint32(coarse.n) {
		for e := coarse.off[v]; e < coarse.off[v+1]; e++ {
			pair := [2]uint32{v, coarse.adj[e]}
			if want[pair] != coarse.w[e] {
				t.Fatalf("edge %v weighs %d, want %d", pair, coarse.w[e], want[pair])
			}
			delete(want, pair)
		}
	}
	if len(want) > 0 {
		t.Fatalf("missing: %v", want)
	}
	if !slices.Equal(fine.totals(), coarse.totals()) {
		t.Fatalf("loads %v became %v", fine.totals(), coarse.totals())
	}
}

// An edge stays if fewer of an end's edges than it keeps come before it.
func TestTrimKeepsTheHeaviest(t *testing.T) {
	type edge struct{ v, u, w uint32 }
	for seed := range uint64(20) {
		draw := rand.New(rand.NewPCG(seed, 11))
		n := 2 + draw.IntN(60)
		rows := make([][]edge, n)
		for v := range uint32(n) {
			for u := range v {
				if draw.IntN(3) > 0 {
					w := 1 + draw.Uint32N(4)
					rows[v], rows[u] = append(rows[v], edge{v, u, w}), append(rows[u], edge{u, v, w})
				}
			}
		}
		c := &mlGraph{n: n, off: make([]int64, 1)}
		bound, first := make([]int64, 1), make([]uint32, 1)
		keep := make([]int, n)
		for v, row := range rows {
			for _, e := range row {
				c.adj, c.w = append(c.adj, e.u), append(c.w, e.w)
			}
			c.off = append(c.off, int64(len(c.adj)))
			members, degrees := 1+draw.IntN(3), draw.IntN(20)
			first, bound = append(first, first[v]+uint32(members)), append(bound, bound[v]+int64(degrees))
			keep[v] = mlTrim*degrees/members + 1
		}
		rank := func(e edge) uint64 { return (&mlGraph{adj: []uint32{e.u}, w: []uint32{e.w}}).rank(e.v, 0) }
		wanted := func(v uint32, e edge) bool {
			before := 0
			for _, o := range rows[v] {
				if rank(o) > rank(e) {
					before++
				}
			}
			return before < keep[v]
		}
		var want []edge
		for v, row := range rows {
			for _, e := range row {
				if wanted(uint32(v), e) || wanted(e.u, e) {
					want = append(want, e)
				}
			}
		}
		newMLRun(context.Background(), rng.New(seed), 2, &mlMemory{}).trim(c, bound, first)
		var got []edge
		for v := range uint32(n) {
			for e := c.off[v]; e < c.off[v+1]; e++ {
				got = append(got, edge{v, c.adj[e], c.w[e]})
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// What the refinements believe of cut and loads, against a recount.
func TestRefinementKeepsCount(t *testing.T) {
	for seed := range uint64(10) {
		r, fine, coarse, _ := mlWeighted(t, seed)
		for _, g := range []*mlGraph{fine, coarse} {
			const k = 5
			part := make([]uint16, g.n)
			for v := range part {
				part[v] = uint16(r.key.IntN(uint64(v), k))
			}
			limit := g.totals()
			for c := range limit {
				limit[c] = limit[c]/k*11/10 + 10
			}
			s := newMLState(g, k, part, mlSpread(limit, k))
			before := s.cut()
			f := r.fm(s, nil)
			gained := f.refine(3, 50)
			mlRecount(t, s, before-gained)
			for v := range uint32(g.n) {
				if in, out := f.sums(v); f.fresh[v] && (in != f.in[v] || out != f.out[v]) {
					t.Fatalf("vertex %d has weights %d and %d, believed %d and %d", v, in, out, f.in[v], f.out[v])
				}
			}
			j := r.newJet(s, 0.5)
			for i := range uint8(6) {
				j.look()
				mlRecount(t, s, j.cut2/2)
				if j.step(i+1) == 0 {
					break
				}
			}
			j.look()
			if j.balance(7) > 0 {
				j.look()
			}
			mlRecount(t, s, j.cut2/2)
			j.free()
		}
	}
}

// Passes follow one another while they gain, or while enough of the boundary does.
func TestRefinementEndsWhenPassesGainLittle(t *testing.T) {
	refine := func(worth int64, passes int) (cut int64) {
		r := newMLRun(context.Background(), rng.New(1), 1, &mlMemory{})
		defer r.mem.freeAll()
		r.style.worth = worth
		g := r.newMLGraph(&Problem{Graph: mlGrid(t, 40, 40)}, []Constraint{{Name: "vertices"}})
		const k = 4
		part := make([]uint16, g.n)
		for v := range part {
			part[v] = uint16(r.key.IntN(uint64(v), k))
		}
		s := newMLState(g, k, part, mlSpread([]int64{420}, k))
		r.fm(s, nil).refine(passes, 50)
		return s.cut()
	}
	two, all := refine(0, 2), refine(0, 16)
	if all >= two {
		t.Fatalf("cuts of %d after two passes, of %d after all: nothing to see here", two, all)
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

// The same of bisections: grown ones, which start anew each time, and refined ones.
func TestHalvesKeepCount(t *testing.T) {
	mlGrown(t, func(r *mlRun, s *mlState, _ int, cut int64) {
		mlRecount(t, s, cut)
		h := r.halves(s)
		for excess := s.excess(); h.pass(50); cut, excess = s.cut(), s.excess() {
			if !mlBetter(s.excess(), s.cut(), excess, cut) {
				t.Fatalf("a pass led from excess %g, cut %d to %g, %d", excess, cut, s.excess(), s.cut())
			}
			mlWeighHalves(t, h)
		}
	})
}

// mlGrown calls check with bisections grown from three places each, in the memory of the
// one before.
func mlGrown(t *testing.T, check func(r *mlRun, s *mlState, start int, cut int64)) {
	for seed := range uint64(10) {
		r, fine, coarse, _ := mlWeighted(t, seed)
		for _, g := range []*mlGraph{fine, coarse} {
			limit := g.totals()
			for c := range limit {
				limit[c] = limit[c]/2*21/20 + 1
			}
			s := newMLState(g, 2, make([]uint16, g.n), mlSpread(limit, 2))
			w := r.growth(s)
			for i := range uint64(3) {
				start := r.key.IntN(i, g.n)
				check(r, s, start, w.grow(start))
			}
		}
	}
}

// mlWeighHalves counts edges within and between the sides anew.
func mlWeighHalves(t *testing.T, h *mlHalves) {
	t.Helper()
	out := slices.Clone(h.out)
	h = (&mlRun{mem: &mlMemory{}}).halves(h.mlState)
	if !slices.Equal(out, h.out) {
		t.Fatal("weights between the sides are not what they are believed to be")
	}
	mlRecount(t, h.mlState, h.cut())
}

// cut is the weight of edges between parts.
func (s *mlState) cut() int64 {
	var sum int64
	for v := range uint32(s.g.n) {
		for e := s.g.off[v]; e < s.g.off[v+1]; e++ {
			if s.part[s.g.adj[e]] != s.part[v] {
				sum += int64(s.g.edgeWeight(e))
			}
		}
	}
	return sum / 2
}

func mlRecount(t *testing.T, s *mlState, believed int64) {
	t.Helper()
	if cut := s.cut(); cut != believed {
		t.Fatalf("cut %d, believed %d", cut, believed)
	}
	load := slices.Clone(s.load)
	s.weigh()
	if !slices.Equal(load, s.load) {
		t.Fatalf("loads %v, believed %v", s.load, load)
	}
}

// What a level hands to the finer one, its loads and where its boundary can be, against a
// recount.
func TestFinerLevelsKeepCount(t *testing.T) {
	for seed := range uint64(3) {
		p := &Problem{Graph: mlGrid(t, 60, 60), Parts: 5}
		l := newLoads(p)
		m := &mlPartition{mlRun: newMLRun(context.Background(), rng.New(seed), 2, &mlMemory{}), p: p, k: 5, limit: l.limit}
		g := m.newMLGraph(p, l.constraints)
		m.style = g.style(5)
		coarse, level, _ := m.coarsen(g, 0)
		s := newMLState(coarse, 5, m.initial(coarse, 5, m.limits(coarse)), mlSpread(m.limits(coarse), 5))
		m.refine(s, nil, false)
		var want []uint32
		for v, c := range level.to {
			if slices.ContainsFunc(coarse.adj[coarse.off[c]:coarse.off[c+1]], func(u uint32) bool { return s.part[u] != s.part[c] }) {
				want = append(want, uint32(v))
			}
		}
		if near := m.nearby(level); !slices.Equal(near, want) {
			t.Fatalf("%d vertices can be on the boundary, want %d", len(near), len(want))
		}
		cut := s.cut()
		m.finer(s, level)
		if s.g != g || !slices.Equal(s.limit, mlSpread(m.limit, 5)) {
			t.Fatal("it is not the finer level")
		}
		mlRecount(t, s, cut)
		m.mem.freeAll()
	}
}

// One side of a graph, against what all of its vertices and edges say; some have no edges
// there but to themselves.
func TestExtractIsOneSide(t *testing.T) {
	for seed := range uint64(20) {
		r, fine, coarse, _ := mlWeighted(t, seed)
		loops := &mlGraph{n: 40, con: 1, off: make([]int64, 1)}
		for v := range uint32(40) {
			for range v % 3 {
				loops.adj = append(loops.adj, v)
			}
			if v < 20 {
				loops.adj = append(loops.adj, v^1)
			}
			loops.off = append(loops.off, int64(len(loops.adj)))
		}
		for _, g := range []*mlGraph{fine, coarse, loops} {
			side := make([]uint16, g.n)
			for v := range side {
				side[v] = uint16(r.key.IntN(uint64(v), 2))
			}
			sub, members, loose := r.extract(g, side, 1)
			var alone []uint32
			at := 0
			for v := range uint32(g.n) {
				var row, weight []uint32
				for e := g.off[v]; e < g.off[v+1]; e++ {
					if u := g.adj[e]; side[u] == 1 {
						row, weight = append(row, u), append(weight, g.edgeWeight(e))
					}
				}
				switch {
				case side[v] != 1:
				case !slices.ContainsFunc(row, func(u uint32) bool { return u != v }):
					alone = append(alone, v)
				default:
					lo, hi := sub.off[at], sub.off[at+1]
					var got []uint32
					for _, u := range sub.adj[lo:hi] {
						got = append(got, members[u])
					}
					if members[at] != v || !slices.Equal(got, row) || !slices.Equal(sub.w[lo:hi], weight) || sub.load(uint32(at), 0) != g.load(v, 0) {
						t.Fatalf("vertex %d has neighbours %v, weights %v, want %v, %v", v, got, sub.w[lo:hi], row, weight)
					}
					at++
				}
			}
			if at != sub.n || at != len(members) || !slices.Equal(loose, alone) {
				t.Fatalf("%d vertices and %v set aside, want %d and %v", sub.n, loose, at, alone)
			}
		}
	}
}

func TestRatingIsAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	var table mlRating
	for range 300 {
		n := r.IntN(200)
		keys, w := make([]uint32, n), make([]uint32, n)
		want := map[uint32]uint32{}
		for i := range n {
			keys[i], w[i] = r.Uint32N(60)*1000003, r.Uint32N(9)
			want[keys[i]] += w[i] + 1
		}
		table.reset(n)
		table.addAll(keys, w)
		table.addOnes(keys)
		for key, sum := range want {
			if table.get(key) != sum {
				t.Fatalf("key %d: %d, want %d", key, table.get(key), sum)
			}
		}
		if len(table.used) != len(want) || table.get(12345) != 0 {
			t.Fatal("keys that were never added")
		}
		table.clear()
	}
}

// A queue against a map: nobody comes out before one who has more, but for those
// who share a list, and of equals the last one comes first.
func TestQueuePopsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for round := range 100 {
		var q mlQueue
		q.reset(make([]mlNode, 40))
		type entry struct {
			key int32
			age int
		}
		want := map[uint32]entry{}
		for i := range 300 {
			v, key := r.Uint32N(40), int32(r.IntN(60)-30)
			if round%2 == 1 {
				key = int32(r.Uint32()) >> r.IntN(32)
			}
			if r.IntN(4) == 0 {
				q.remove(v)
				delete(want, v)
				continue
			}
			q.set(v, key)
			if old, ok := want[v]; !ok || mlList(old.key) != mlList(key) {
				want[v] = entry{key, i}
			}
		}
		for q.len() > 0 {
			v := q.pop()
			got, ok := want[v]
			if !ok {
				t.Fatalf("%d was not there", v)
			}
			for u, other := range want {
				if a, b := mlList(other.key), mlList(got.key); a > b || a == b && other.age > got.age {
					t.Fatalf("%d with %v came before %d with %v", v, got, u, other)
				}
			}
			delete(want, v)
		}
		if len(want) > 0 {
			t.Fatalf("lost %v", want)
		}
	}
}

// More gain is never an earlier list, and lists hold what differs by a sixteenth at most.
func TestListsFollowGains(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 20000 {
		a, b := mlKey(int64(int32(r.Uint32())>>r.IntN(32))), mlKey(int64(int32(r.Uint32())>>r.IntN(32)))
		if a > b {
			a, b = b, a
		}
		switch la, lb := mlList(a), mlList(b); {
		case la > lb:
			t.Fatalf("gain %d is in list %d, gain %d in %d", a, la, b, lb)
		case la == lb && int64(b)-int64(a) > max(int64(a), -int64(a))/16:
			t.Fatalf("gains %d and %d share list %d", a, b, la)
		}
	}
	if last := int(mlList(math.MaxInt32)); last > 2*mlMiddle || mlList(-math.MaxInt32) > mlMiddle {
		t.Fatalf("the last list is %d of %d", last, 2*mlMiddle)
	}
}

// What is hopeless, by the formula of the paper.
func TestHopelessIsASteadyDescent(t *testing.T) {
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
		if mlHopeless(sum, squares, n) != want {
			t.Fatalf("%d steps, sum %g, squares %g: want %v", steps, sum, squares, want)
		}
	}
	if seen[true] < 100 || seen[false] < 100 {
		t.Fatalf("seldom tried: %v", seen)
	}
}

func mlVolume(g *graph.CSR, parts []uint32) (sum int) {
	for v := range uint32(g.Nodes()) {
		seen := map[uint32]bool{parts[v]: true}
		for _, u := range g.Neighbors(v) {
			if !seen[parts[u]] {
				seen[parts[u]] = true
				sum++
			}
		}
	}
	return sum
}

// The gain in volume of single moves, against a recount; and with volume as the
// objective, less of it.
func TestMultilevelLowersVolume(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 11))
	g := mlBlocks(t, r, 600, 12, 40) // rows long enough for a table
	p := &Problem{Graph: g, Parts: 6, Constraints: []Constraint{{Name: "vertices", Tolerance: 0.05}}}
	cut := mlVolume(g, mlCheckRun(t, p))
	p.Objective = Volume
	parts := mlCheckRun(t, p)
	if volume := mlVolume(g, parts); volume >= cut {
		t.Errorf("volume %d as the objective, %d without", volume, cut)
	}
	run := newMLRun(context.Background(), 0, 1, &mlMemory{})
	s := newMLState(run.newMLGraph(p, p.Constraints), 6, make([]uint16, len(parts)), mlSpread([]int64{600}, 6))
	for v, k := range parts {
		s.shift(uint32(v), uint16(k))
	}
	f := run.fm(s, nil)
	if len(f.table) == 0 {
		t.Fatal("no table")
	}
	for i := range 600 {
		if i == 300 {
			f.table = f.table[:0] // the way without it
		}
		v, b := r.Uint32N(600), uint16(r.IntN(6))
		if b == s.part[v] {
			continue
		}
		before := mlVolume(g, parts)
		gain := f.volumeGain(v, b, 1<<30)
		f.move(v, b, false)
		parts[v] = uint32(b)
		if after := mlVolume(g, parts); int64(before-after) != gain {
			t.Fatalf("volume %d became %d, foretold a gain of %d", before, after, gain)
		}
	}
}
