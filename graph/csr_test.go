package graph

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

type edge struct {
	u, v uint32
	w    float32
}

// slowBuild is FromEdges by the definition: a list, sorted, filtered.
func slowBuild(n int, edges []edge, opt BuildOptions) [][]edge {
	rows := make([][]edge, n)
	add := func(e edge) {
		if opt.DropDuplicates && slices.ContainsFunc(rows[e.v], func(o edge) bool { return o.u == e.u }) {
			return
		}
		rows[e.v] = append(rows[e.v], e)
	}
	for _, e := range edges {
		if e.u == e.v {
			if !opt.DropSelfLoops {
				add(e)
			}
			continue
		}
		add(e)
		if opt.Symmetrize {
			add(edge{e.v, e.u, e.w})
		}
	}
	for _, row := range rows {
		slices.SortStableFunc(row, func(a, b edge) int { return int(a.u) - int(b.u) })
	}
	return rows
}

func rowsOf(g *CSR) [][]edge {
	rows := make([][]edge, g.Nodes())
	for v := range rows {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			var w float32
			if g.Weights != nil {
				w = g.Weights[e]
			}
			rows[v] = append(rows[v], edge{g.Indices[e], uint32(v), w})
		}
	}
	return rows
}

func equalRows(a, b [][]edge) bool {
	return slices.EqualFunc(a, b, func(x, y []edge) bool { return slices.Equal(x, y) })
}

func randomEdges(r *rand.Rand, n, m int, weighted bool) (edges []edge, src, dst []uint32, w []float32) {
	for range m {
		e := edge{u: uint32(r.IntN(n)), v: uint32(r.IntN(n))}
		if weighted {
			e.w = float32(r.IntN(8)) + 1
			w = append(w, e.w)
		}
		edges, src, dst = append(edges, e), append(src, e.u), append(dst, e.v)
	}
	return edges, src, dst, w
}

func TestFromEdgesEqualsSlowTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		n, m := 1+r.IntN(20), r.IntN(80)
		if round == 0 {
			m = 0
		}
		opt := BuildOptions{r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0}
		edges, src, dst, w := randomEdges(r, n, m, round%2 == 1)
		g, err := FromEdges(n, src, dst, w, opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		if !equalRows(rowsOf(g), slowBuild(n, edges, opt)) {
			t.Fatalf("n=%d %+v edges %v: got %v", n, opt, edges, rowsOf(g))
		}
	}
}

// Enough edges that several blocks are used; the bytes must not depend on it.
func TestBuildDoesNotDependOnCores(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	_, src, dst, w := randomEdges(r, 1000, 200000, true)
	var want *CSR
	for _, cores := range []int{1, 3, 8} {
		old := runtime.GOMAXPROCS(cores)
		g, err := FromEdges(1000, src, dst, w, BuildOptions{Symmetrize: true, DropDuplicates: true})
		tr, perm := g.Transpose()
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		checkTranspose(t, g, tr, perm)
		if want == nil {
			want = g
		}
		if !equalRows(rowsOf(g), rowsOf(want)) {
			t.Fatalf("%d cores build another graph", cores)
		}
	}
}

func checkTranspose(t *testing.T, g, tr *CSR, perm []uint32) {
	t.Helper()
	if err := tr.Validate(); err != nil {
		t.Fatal(err)
	}
	if !equalRows(rowsOf(tr), transposedRows(g)) {
		t.Fatal("transpose differs from turning every edge")
	}
	if g.Weights == nil && g.Mirrored() != equalRows(rowsOf(g), transposedRows(g)) {
		t.Fatalf("mirrored is %v", g.Mirrored())
	}
	for u := range tr.Nodes() {
		for e := tr.Indptr[u]; e < tr.Indptr[u+1]; e++ {
			v, p := tr.Indices[e], int64(perm[e])
			if p < g.Indptr[v] || p >= g.Indptr[v+1] || g.Indices[p] != uint32(u) {
				t.Fatalf("perm[%d] = %d is not edge %d → %d", e, p, u, v)
			}
		}
	}
}

// transposedRows are the rows of g with every edge reversed, the slow way.
func transposedRows(g *CSR) [][]edge {
	var turned []edge
	for _, row := range rowsOf(g) {
		for _, e := range row {
			turned = append(turned, edge{e.v, e.u, e.w})
		}
	}
	return slowBuild(g.Nodes(), turned, BuildOptions{})
}

func TestTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 50 {
		n := 1 + r.IntN(12)
		_, src, dst, w := randomEdges(r, n, r.IntN(60), round%2 == 0)
		g, err := FromEdges(n, src, dst, w, BuildOptions{Symmetrize: round%3 == 0})
		if err != nil {
			t.Fatal(err)
		}
		tr, perm := g.Transpose()
		checkTranspose(t, g, tr, perm)
	}
}

func TestSymmetric(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for round := range 200 {
		n := 1 + r.IntN(6)
		_, src, dst, w := randomEdges(r, n, r.IntN(10), round%3 == 0)
		g, _ := FromEdges(n, src, dst, w, BuildOptions{Symmetrize: round%2 == 0})
		a, b := rowsOf(g), transposedRows(g)
		for v := range a { // equal neighbours in any order of weights
			slices.SortFunc(a[v], func(x, y edge) int { return int(x.u)*100 + int(x.w) - int(y.u)*100 - int(y.w) })
			slices.SortFunc(b[v], func(x, y edge) int { return int(x.u)*100 + int(x.w) - int(y.u)*100 - int(y.w) })
		}
		if got, want := g.Symmetric(), equalRows(a, b); got != want {
			t.Fatalf("Symmetric() = %v, want %v for %v", got, want, rowsOf(g))
		}
	}
}

func TestWithSelfLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for round := range 100 {
		n := 1 + r.IntN(8)
		edges, src, dst, w := randomEdges(r, n, r.IntN(30), round%2 == 0)
		g, _ := FromEdges(n, src, dst, w, BuildOptions{})
		own := make([]float32, n)
		for v := range own {
			own[v] = 1
		}
		var rest []edge
		for _, e := range edges {
			if e.u != e.v {
				rest = append(rest, e)
			} else if w != nil {
				own[e.v] = e.w
			}
		}
		for v := range own {
			e := edge{uint32(v), uint32(v), own[v]}
			if w == nil {
				e.w = 0
			}
			rest = append(rest, e)
		}
		if got := g.WithSelfLoops(); !equalRows(rowsOf(got), slowBuild(n, rest, BuildOptions{})) {
			t.Fatalf("edges %v: got %v", edges, rowsOf(got))
		}
	}
}

func TestSubgraphKeepsNumbers(t *testing.T) {
	g, _ := FromEdges(4, []uint32{0, 1, 2, 3, 0}, []uint32{1, 2, 3, 0, 2}, []float32{1, 2, 3, 4, 5}, BuildOptions{})
	got := g.Subgraph([]bool{true, true, true, false})
	want, _ := FromEdges(4, []uint32{0, 1, 0}, []uint32{1, 2, 2}, []float32{1, 2, 5}, BuildOptions{})
	if !equalRows(rowsOf(got), rowsOf(want)) {
		t.Fatalf("got %v, want %v", rowsOf(got), rowsOf(want))
	}
}

func TestSortRow(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 21))
	var tmp []uint32
	for _, n := range []int{0, 1, 2, radixFrom - 1, radixFrom, 300, 5000} {
		for _, below := range []uint32{1, 200, 70000, 1 << 31} {
			row := make([]uint32, n)
			for i := range row {
				row[i] = r.Uint32N(below)
			}
			want := slices.Sorted(slices.Values(row))
			if tmp = sortRow(row, tmp); !slices.Equal(row, want) {
				t.Fatalf("%d numbers below %d are out of order", n, below)
			}
		}
	}
}

func BenchmarkSortRow(b *testing.B) {
	for _, n := range []int{16, 64, 96, 128, 1000, 10000} {
		r := rand.New(rand.NewPCG(20, 21))
		rows := make([]uint32, 1<<20/n*n)
		for i := range rows {
			rows[i] = r.Uint32N(1 << 24)
		}
		work := make([]uint32, len(rows))
		for name, sort := range map[string]func(row, tmp []uint32) []uint32{
			"radix": sortRow,
			"pdq":   func(row, tmp []uint32) []uint32 { slices.Sort(row); return tmp },
		} {
			b.Run(fmt.Sprintf("degree=%d/by=%s", n, name), func(b *testing.B) {
				var tmp []uint32
				for b.Loop() {
					copy(work, rows)
					for at := 0; at < len(work); at += n {
						tmp = sort(work[at:at+n], tmp)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/edge")
			})
		}
	}
}

func TestEmptyGraph(t *testing.T) {
	g, err := FromEdges(0, nil, nil, nil, BuildOptions{Symmetrize: true, DropDuplicates: true})
	if err != nil || g.Nodes() != 0 || !g.Symmetric() {
		t.Fatal(g, err)
	}
	tr, perm := g.Transpose()
	if tr.Nodes() != 0 || len(perm) != 0 || g.WithSelfLoops().Edges() != 0 {
		t.Fatal("an empty graph grew")
	}
}

func TestBadGraphs(t *testing.T) {
	for name, g := range map[string]*CSR{
		"no indptr":     {},
		"start":         {Indptr: []int64{1, 1}, Indices: []uint32{0}},
		"end":           {Indptr: []int64{0, 2}, Indices: []uint32{0}},
		"falls":         {Indptr: []int64{0, 2, 1, 2}, Indices: []uint32{0, 1}},
		"absent vertex": {Indptr: []int64{0, 1}, Indices: []uint32{1}},
		"weights":       {Indptr: []int64{0, 1}, Indices: []uint32{0}, Weights: []float32{}},
		"nan weight":    {Indptr: []int64{0, 1}, Indices: []uint32{0}, Weights: []float32{nan}},
	} {
		if err := g.Validate(); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := FromEdges(2, []uint32{0}, []uint32{2}, nil, BuildOptions{}); !errors.Is(err, ErrInput) {
		t.Errorf("edge to absent vertex: %v", err)
	}
	if _, err := FromEdges(2, []uint32{0}, nil, nil, BuildOptions{}); !errors.Is(err, ErrInput) {
		t.Errorf("one-ended edge: %v", err)
	}
	if _, err := FromSource(2, 1<<31, false, nil, BuildOptions{Symmetrize: true}); !errors.Is(err, ErrInput) {
		t.Errorf("too many edges: %v", err)
	}
}
