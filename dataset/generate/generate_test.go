package generate

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"starling/graph"
	"starling/internal/testdeadline"
	"starling/rng"
)

func generate(t testing.TB, kind string, p Params) *graph.Dataset {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	s, err := Dataset(kind, p, dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := graph.OpenWith(dir, graph.OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if s.Edges != d.Graph.Edges() || s.Nodes != p.Nodes || s.Train != len(d.Splits.Train) {
		t.Fatalf("summary %+v does not fit the folder", s)
	}
	return d
}

func sized(n, m int64) Params {
	p := DefaultParams()
	p.Nodes, p.Edges, p.Features = n, m, 8
	return p
}

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s is %g, want %g ± %g", what, got, want, tol)
	}
}

func TestEveryKindHasTheSizeAskedFor(t *testing.T) {
	for _, kind := range Kinds() {
		for _, directed := range []bool{false, true} {
			p := sized(3000, 60000) // dense enough that many draws repeat
			p.Directed = directed
			d := generate(t, kind, p)
			near(t, kind+" edges", float64(d.Graph.Edges()), 60000, 900)
			if d.Graph.Symmetric() == directed {
				t.Errorf("%s directed=%v: symmetric=%v", kind, directed, !directed)
			}
			for v := range uint32(3000) {
				row := d.Graph.Neighbors(v)
				if slices.Contains(row, v) || len(slices.Compact(slices.Clone(row))) != len(row) {
					t.Fatalf("%s: vertex %d has a loop or a repeated neighbour: %v", kind, v, row)
				}
			}
			if len(d.Splits.Train) != 1800 || len(d.Splits.Val) != 600 || len(d.Splits.Test) != 600 {
				t.Errorf("splits %d %d %d", len(d.Splits.Train), len(d.Splits.Val), len(d.Splits.Test))
			}
		}
	}
}

func TestSameSeedSameBytesOnAnyCores(t *testing.T) {
	for _, kind := range Kinds() {
		var want [][]byte
		for _, cores := range []int{1, 2, 7} {
			old := runtime.GOMAXPROCS(cores)
			d := generate(t, kind, sized(5000, 200000))
			runtime.GOMAXPROCS(old)
			var got [][]byte
			for _, name := range []string{"indptr", "indices", "features", "labels", "train", "val", "test"} {
				b, err := os.ReadFile(filepath.Join(d.Dir, name+".npy"))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, b)
			}
			if want != nil && !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%s on %d cores gives other bytes", kind, cores)
			}
			want = got
		}
		p := sized(5000, 200000)
		p.Seed = 2
		if d := generate(t, kind, p); bytes.Equal(want[1][128:], func() []byte {
			b, _ := os.ReadFile(filepath.Join(d.Dir, "indices.npy"))
			return b[128:]
		}()) {
			t.Errorf("%s: another seed gives the same edges", kind)
		}
	}
}

func TestBlockModelFollowsItsParameters(t *testing.T) {
	p := sized(20000, 400000)
	p.Classes, p.Communities, p.Homophily, p.Exponent, p.Signal, p.Features = 4, 10, 0.6, 2.3, 2, 64
	d := generate(t, "sbm", p)
	inside, most := 0, 0
	for v := range uint32(20000) {
		most = max(most, d.Graph.Degree(v))
		for _, u := range d.Graph.Neighbors(v) {
			if d.Labels.Class[u] == d.Labels.Class[v] {
				inside++
			}
		}
	}
	near(t, "homophily", float64(inside)/float64(d.Graph.Edges()), 0.6, 0.01)
	if most < 300 {
		t.Errorf("the largest degree is %d: no power law", most)
	}
	// The mean of a class lies at distance Signal, up to the noise of averaging.
	sums, count := make([][]float64, 4), make([]float64, 4)
	for v := range 20000 {
		c := d.Labels.Class[v]
		if sums[c] == nil {
			sums[c] = make([]float64, 64)
		}
		count[c]++
		for i, x := range d.Features.F32[v*64 : v*64+64] {
			sums[c][i] += float64(x)
		}
	}
	for c, s := range sums {
		var square float64
		for _, x := range s {
			square += x / count[c] * x / count[c]
		}
		near(t, fmt.Sprintf("distance of class %d", c), math.Sqrt(square), 2, 0.05)
		near(t, "share of class", count[c]/20000, 0.25, 0.06)
	}
}

func TestHomophilyEnds(t *testing.T) {
	for _, h := range []float64{0, 1} {
		p := sized(2000, 20000)
		p.Homophily = h
		d := generate(t, "sbm", p)
		for v := range uint32(2000) {
			for _, u := range d.Graph.Neighbors(v) {
				if same := d.Labels.Class[u] == d.Labels.Class[v]; same != (h == 1) {
					t.Fatalf("h=%g: edge %d-%d, same class %v", h, u, v, same)
				}
			}
		}
	}
}

func TestRMATIsSkewedAndERIsNot(t *testing.T) {
	most := func(kind string) (m int) {
		d := generate(t, kind, sized(5000, 100000))
		for v := range uint32(5000) {
			m = max(m, d.Graph.Degree(v))
		}
		return m
	}
	if r, e := most("rmat"), most("er"); r < 200 || e > 60 {
		t.Errorf("largest degrees: rmat %d, er %d", r, e)
	}
}

// Cells are drawn as often as the recursion says.
func TestRMATChances(t *testing.T) {
	for _, n := range []int64{4, 8, 64} { // 2, 3 and 6 halvings
		p := sized(n, 0)
		g := &rmat{n: uint64(n), levels: bits.Len64(uint64(n - 1)),
			quad: [4]float64{p.A, p.B, p.C, 1 - p.A - p.B - p.C}}
		g.four, g.rest = g.table(4), g.table(g.levels%4)
		const draws = 400000
		count := map[[2]uint64]float64{}
		for i := range uint64(draws) {
			u, v, _ := g.edge(rng.New(i))
			count[[2]uint64{u, v}]++
		}
		for cell, c := range count {
			want := draws * g.chance(cell[0], cell[1], g.levels)
			near(t, fmt.Sprintf("n=%d: hits of %v", n, cell), c, want, 5*math.Sqrt(want)+3)
		}
	}
}

// The probability to be inside is the sum over all cells. Parameters that would draw for
// ever, or for hours, are refused.
func TestRMATInside(t *testing.T) {
	for n := uint64(2); n < 40; n++ {
		g := &rmat{n: n, levels: bits.Len64(n - 1), quad: [4]float64{0.1, 0.2, 0.3, 0.4}}
		sum := 0.0
		for u := range n {
			for v := range n {
				sum += g.chance(u, v, g.levels)
			}
		}
		near(t, fmt.Sprintf("n=%d: inside", n), g.inside(), sum, 1e-12)
	}
	for _, a := range []float64{0, 1e-5} {
		p := sized(100, 500)
		p.A, p.B, p.C = a, 0, 0
		testdeadline.Do(t, time.Minute, "parameters that never draw a vertex", func() {
			if _, err := newRMAT(p); !errors.Is(err, graph.ErrInput) {
				t.Errorf("a=%g: %v", a, err)
			}
		})
	}
}

// A table gives each outcome its weight, exactly.
func TestAliasTable(t *testing.T) {
	weights := []float64{5, 0, 1, 3.5, 0.25, 1}
	got := make([]float64, len(weights))
	keep, other := make([]float64, len(weights)), make([]int, len(weights))
	sum := aliasTable(len(weights), func(i int) float64 { return weights[i] },
		func(i int, k float64, o int) { keep[i], other[i] = k, o })
	for i := range weights {
		got[i] += keep[i]
		got[other[i]] += 1 - keep[i]
	}
	for i, w := range weights {
		near(t, "weight", got[i]*sum/float64(len(weights)), w, 1e-5)
	}
}

func TestScrambleIsABijection(t *testing.T) {
	for _, n := range []uint64{2, 3, 64, 1000} {
		g := &rmat{n: n, levels: 10, odd: [2]uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9}}
		seen := make([]bool, n)
		for x := range n {
			y := g.scramble(x)
			if seen[y] {
				t.Fatalf("n=%d: %d twice", n, y)
			}
			seen[y] = true
		}
	}
}

func TestNormals(t *testing.T) {
	const n = 1 << 20
	x := make([]float32, n+1)
	addNormals(x, rng.New(3), normalTable())
	var m [5]float64
	far := 0
	for _, v := range x[:n] {
		p := 1.0
		for i := range m {
			m[i] += p / n
			p *= float64(v)
		}
		if math.Abs(float64(v)) > 3 {
			far++
		}
	}
	near(t, "mean", m[1], 0, 0.005)
	near(t, "variance", m[2], 1, 0.006)
	near(t, "third moment", m[3], 0, 0.02)
	near(t, "fourth moment", m[4], 3, 0.05)
	near(t, "share beyond 3", float64(far)/n, 0.0027, 0.0003)
	if x[n] == 0 {
		t.Error("the last of an odd number was not drawn")
	}
}

func TestBFloat16Features(t *testing.T) {
	p := sized(1000, 5000)
	wide := generate(t, "sbm", p)
	p.BFloat16 = true
	half := generate(t, "sbm", p)
	for i, b := range half.Features.BF16 {
		if b != graph.ToBF16(wide.Features.F32[i]) {
			t.Fatalf("value %d: %g, want %g", i, graph.FromBF16(b), wide.Features.F32[i])
		}
	}
}

func TestStructureOnly(t *testing.T) {
	p := sized(100, 300)
	p.Features, p.Classes = 0, 0
	d := generate(t, "er", p)
	if d.Features != nil || d.Labels != nil || !d.Splits.Empty() {
		t.Fatalf("%+v", d)
	}
}

func TestLike(t *testing.T) {
	for _, name := range LikeNames() {
		for _, symmetrize := range []bool{false, true} {
			p, err := Like(name, 0.003, symmetrize)
			if err != nil {
				t.Fatal(err)
			}
			if name == "ogbn-papers100M" {
				p.Nodes, p.Edges = p.Nodes/100, p.Edges/100
			}
			p.Features = 4
			p.Fit()
			d := generate(t, "sbm", p)
			near(t, name+" edges", float64(d.Graph.Edges()), float64(p.Edges), 0.03*float64(p.Edges)+100)
			if symmetrize && !d.Graph.Symmetric() {
				t.Errorf("%s is not symmetric", name)
			}
		}
	}
	if _, err := Like("cora", 1, false); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
	if _, err := Like("reddit", 0, false); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
}

// Homophily is lowered only as far as the number of edges needs.
func TestFit(t *testing.T) {
	p, err := Like("reddit", 0.04, false)
	if err != nil {
		t.Fatal(err)
	}
	sparse := p
	p.Fit()
	if p.Homophily > 0.2 || len(p.Notes) != 2 {
		t.Errorf("homophily %g, notes %q", p.Homophily, p.Notes)
	}
	sparse.Edges = 300_000
	sparse.Fit()
	if sparse.Homophily != 0.76 || sparse.Edges != 300_000 || len(sparse.Notes) != 1 {
		t.Errorf("homophily %g, edges %d, notes %q", sparse.Homophily, sparse.Edges, sparse.Notes)
	}
	sparse.Classes = 0
	sparse.Fit()
}

func TestBadParams(t *testing.T) {
	for name, change := range map[string]func(*Params){
		"nodes":       func(p *Params) { p.Nodes = 0 },
		"edges":       func(p *Params) { p.Edges = -1 },
		"too dense":   func(p *Params) { p.Edges = p.Nodes * p.Nodes },
		"too small":   func(p *Params) { p.Nodes, p.Edges, p.Homophily, p.Classes = 1000, 200000, 1, 100 },
		"signal":      func(p *Params) { p.Signal = math.NaN() },
		"much signal": func(p *Params) { p.Signal = 1e300 },
		"max-degree":  func(p *Params) { p.MaxDegree = math.NaN() },
		"homophily":   func(p *Params) { p.Homophily = 1.5 },
		"communities": func(p *Params) { p.Communities = 3 },
		"exponent":    func(p *Params) { p.Exponent = 2 },
		"fractions":   func(p *Params) { p.Train = 0.9 },
		"no train":    func(p *Params) { p.Train = 0 },
		"empty split": func(p *Params) { p.Val = 1e-9 },
		"classes":     func(p *Params) { p.Classes = -1 },
	} {
		p := sized(1000, 5000)
		change(&p)
		parent := t.TempDir()
		if _, err := Dataset("sbm", p, filepath.Join(parent, "d")); !errors.Is(err, graph.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Errorf("%s: %v was left behind", name, left)
		}
	}
	if _, err := Dataset("tree", DefaultParams(), "x"); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, kind := range Kinds() {
		b.Run("kind="+kind+"/edges=2e7", func(b *testing.B) {
			p := DefaultParams()
			p.Nodes, p.Edges, p.Features, p.Overwrite = 1_000_000, 20_000_000, 0, true
			dir := filepath.Join(b.TempDir(), "d")
			for b.Loop() {
				if _, err := Dataset(kind, p, dir); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(p.Edges)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}
