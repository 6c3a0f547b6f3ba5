package partition

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// written partitions a random dataset and returns its folder and what it was cut from.
func written(t *testing.T, r *rand.Rand, n int) (dir string, d *graph.Dataset, parts []uint32, k int) {
	t.Helper()
	d = open(t, randomDataset(t, r, n))
	k = 1 + r.IntN(min(7, n))
	parts = make([]uint32, n)
	for v := range parts {
		parts[v] = uint32(r.IntN(k))
	}
	dir = filepath.Join(t.TempDir(), "parts")
	q := Measure(d.Graph, parts, k, nil, d.Meta.Symmetric, 0)
	if err := Write(context.Background(), d, parts, k, q,
		WriteOptions{Dir: dir, Threads: 1 + r.IntN(3), Method: "random"}); err != nil {
		t.Fatal(err)
	}
	return dir, d, parts, k
}

// Everything in the folder, against the dataset and the assignment, with sets and
// maps only.
func TestFolderHoldsWhatTheDatasetHolds(t *testing.T) {
	seeds(t, 12, func(t *testing.T, r *rand.Rand) {
		dir, d, parts, k := written(t, r, 1+r.IntN(90))
		book, err := OpenBook(dir)
		if err != nil {
			t.Fatal(err)
		}
		n := d.Graph.Nodes()
		original := map[uint32]uint32{} // new number → dataset's
		all := make([]*Part, k)
		for q := range k {
			p, err := OpenPart(dir, q)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			all[q] = p
			for i, id := range p.IDs[:p.Core()] {
				global := uint32(book.Offsets[q]) + uint32(i)
				if int(parts[id]) != q || book.Owner(global) != q || global-uint32(book.Offsets[q]) != uint32(i) {
					t.Fatalf("vertex %d is in part %d, belongs to %d, owner %d", id, q, parts[id], book.Owner(global))
				}
				original[global] = id
			}
		}
		back := map[uint32]bool{}
		for _, id := range original {
			back[id] = true
		}
		if len(original) != n || len(back) != n {
			t.Fatalf("%d new numbers for %d of %d vertices", len(original), len(back), n)
		}
		_, need := recount(d.Graph, parts, k, false)
		for q, p := range all {
			checkPart(t, d, p, need[q], original)
			for other := range k {
				sent := []uint32{}
				for _, v := range p.SendTo(other) {
					sent = append(sent, uint32(book.Offsets[q])+v)
				}
				if !slices.Equal(sent, all[other].HaloOf(q)) {
					t.Fatalf("%d sends %v to %d, which expects %v", q, sent, other, all[other].HaloOf(q))
				}
			}
		}
		if err := VerifyAgainst(dir, d); err != nil {
			t.Fatal(err)
		}
	})
}

func checkPart(t *testing.T, d *graph.Dataset, p *Part, need map[uint32]bool, original map[uint32]uint32) {
	t.Helper()
	if len(p.Halo) != len(need) {
		t.Fatalf("halo of %d, %d needed", len(p.Halo), len(need))
	}
	for i, global := range p.Halo {
		id := p.IDs[p.Core()+i]
		if !need[id] || original[global] != id {
			t.Fatalf("halo has %d (originally %d), which no core vertex needs", global, id)
		}
	}
	train := map[uint32]bool{}
	for _, v := range d.Splits.Train {
		train[v] = true
	}
	for _, local := range p.Splits.Train {
		if !train[p.IDs[local]] {
			t.Fatalf("vertex %d does not train", p.IDs[local])
		}
	}
	for i, id := range p.IDs {
		if int(p.Degrees[i]) != d.Graph.Degree(id) {
			t.Fatalf("degree of %d: %d", id, p.Degrees[i])
		}
		want := 0.0
		for e := d.Graph.Indptr[id]; e < d.Graph.Indptr[id+1]; e++ {
			switch {
			case d.Graph.Indices[e] == id:
			case d.Graph.Weights != nil:
				want += float64(d.Graph.Weights[e])
			default:
				want++
			}
		}
		if math.Abs(p.GCNDegree(uint32(i))-want) > 1e-12 {
			t.Fatalf("gcn degree of %d: %g, counted %g", id, p.GCNDegree(uint32(i)), want)
		}
	}
	for i, id := range p.IDs[:p.Core()] {
		if l, all := p.Labels, d.Labels; l != nil && (l.Class != nil && l.Class[i] != all.Class[id] ||
			l.Multi != nil && !slices.Equal(l.Row(i), all.Row(int(id))) || l.Values != nil &&
			!slices.Equal(l.Numbers(i), all.Numbers(int(id)))) {
			t.Fatalf("other labels of %d", id)
		}
		var ours []uint32
		for _, u := range p.In.Neighbors(uint32(i)) {
			ours = append(ours, p.IDs[u])
		}
		slices.Sort(ours)
		if !slices.Equal(ours, slices.Clone(d.Graph.Neighbors(id))) {
			t.Fatalf("in-edges of %d: %v", id, ours)
		}
		if p.In.EdgeDim != d.Graph.EdgeDim {
			t.Fatalf("%d numbers per edge, the dataset has %d", p.In.EdgeDim, d.Graph.EdgeDim)
		}
		seen := map[float32]bool{}
		for e := p.In.Indptr[i]; e < p.In.Indptr[i+1] && p.In.EdgeDim > 0; e++ {
			f := p.In.EdgeRows(e, e+1)
			if f[0] != float32(p.IDs[p.In.Indices[e]]) || f[1] != float32(id) || seen[f[2]] {
				t.Fatalf("edge %d of vertex %d has the features %v", e, id, f)
			}
			seen[f[2]] = true
		}
	}
}

// A changed byte anywhere must be found, and must not be a crash.
func TestVerifyFindsEveryChangedByte(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2 {
		dir, _, _, _ := written(t, r, 12+r.IntN(20))
		if err := Verify(dir); err != nil {
			t.Fatal(err)
		}
		var files []string
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
			if !e.IsDir() {
				files = append(files, path)
			}
			return nil
		})
		for _, path := range files {
			whole, _ := os.ReadFile(path)
			for range 6 {
				bad := slices.Clone(whole)
				at := r.IntN(len(bad))
				if r.IntN(4) == 0 {
					bad = bad[:at]
				} else {
					bad[at] ^= byte(1 + r.IntN(255))
				}
				replace(t, path, bad)
				if err := Verify(dir); !errors.Is(err, graph.ErrInput) {
					t.Errorf("%s changed at %d: %v", path, at, err)
				}
			}
			replace(t, path, whole)
		}
		if err := Verify(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func replace(t *testing.T, path string, b []byte) {
	t.Helper()
	os.Remove(path)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A part with sound checksums but wrong contents is found by its peers.
func TestVerifyFindsPartsThatDisagree(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	a, d, parts, k := written(t, r, 60)
	for k < 2 {
		a, d, parts, k = written(t, r, 60)
	}
	other := slices.Clone(parts)
	for v := range other {
		other[v] = uint32((int(other[v]) + 1) % k)
	}
	b := filepath.Join(t.TempDir(), "other")
	if err := Write(context.Background(), d, other, k, Measure(d.Graph, other, k, nil, d.Meta.Symmetric, 0),
		WriteOptions{Dir: b}); err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(filepath.Join(a, "part0"))
	if err := os.Rename(filepath.Join(b, "part0"), filepath.Join(a, "part0")); err != nil {
		t.Fatal(err)
	}
	if err := Verify(a); !errors.Is(err, graph.ErrInput) {
		t.Fatal("parts of two partitions:", err)
	}
}

// A graph that says it is symmetric and is not, by a single edge, is neither cut nor found sound; nor is one cut that
// names a vertex it has not.
func TestGraphIsChecked(t *testing.T) {
	d := &graph.Dataset{Meta: graph.Meta{Name: "lie"}}
	var err error
	if d.Graph, err = graph.FromEdges(6, []uint32{0, 1, 1, 2, 3, 4, 5, 4, 2}, []uint32{1, 0, 2, 1, 4, 3, 4, 5, 3},
		nil, graph.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, lies := range []bool{false, true} {
		d.Meta.Symmetric = lies
		parts, dir := []uint32{0, 1, 0, 1, 0, 1}, filepath.Join(t.TempDir(), "parts")
		if err := Write(context.Background(), d, parts, 2, Measure(d.Graph, parts, 2, nil, lies, 0),
			WriteOptions{Dir: dir}); err != nil {
			t.Fatal(err)
		}
		if err := Verify(dir); lies != errors.Is(err, graph.ErrInput) {
			t.Errorf("lies %v: %v", lies, err)
		}
		j := job{d: d, opt: Options{Parts: 2, Method: "multilevel"}}
		if err := j.prepare(); lies != (err != nil && strings.Contains(err.Error(), "symmetric: found true")) {
			t.Errorf("lies %v: %v", lies, err)
		}
	}
	d.Graph.Indices[3] = 6 // as a large graph may say, which is opened unread
	j := job{d: d, opt: Options{Parts: 2, Method: "multilevel"}}
	if err := j.prepare(); !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "6 at position 3") {
		t.Error(err)
	}
}

// A part stands alone where only it was copied, and parts may be written elsewhere.
func TestPartsLiveAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	d := open(t, randomDataset(t, r, 40))
	parts := make([]uint32, 40)
	for v := range parts {
		parts[v] = uint32(v % 3)
	}
	root := t.TempDir()
	var dirs []string
	for _, disk := range []string{"a", "b", "c"} {
		os.Mkdir(filepath.Join(root, disk), 0o755)
		dirs = append(dirs, filepath.Join(root, disk, "p"))
	}
	q := Measure(d.Graph, parts, 3, nil, d.Meta.Symmetric, 0)
	opt := WriteOptions{Dir: filepath.Join(root, "book"), PartDirs: dirs}
	if err := Write(context.Background(), d, parts, 3, q, opt); err != nil {
		t.Fatal(err)
	}
	if err := VerifyAgainst(opt.Dir, d); err != nil {
		t.Fatal(err)
	}
	if err := Write(context.Background(), d, parts, 3, q, opt); !errors.Is(err, graph.ErrInput) {
		t.Fatal("replaced without overwrite:", err)
	}
	opt.Overwrite = true
	for _, in := range []string{opt.Dir, dirs[1]} {
		notes := filepath.Join(in, "notes.txt")
		os.WriteFile(notes, nil, 0o644)
		if err := Write(context.Background(), d, parts, 3, q, opt); !errors.Is(err, graph.ErrInput) ||
			!strings.Contains(err.Error(), "notes.txt in it") {
			t.Fatal("a folder with notes in it was replaced:", err)
		}
		os.Remove(notes)
	}
	if err := Write(context.Background(), d, parts, 3, q, opt); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(root, "host", "part1")
	os.Mkdir(filepath.Dir(moved), 0o755)
	if err := os.Rename(dirs[1], moved); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.Open(moved); !errors.Is(err, graph.ErrInput) ||
		!strings.Contains(err.Error(), "a part of a partition") {
		t.Error("a part taken for a dataset:", err)
	}
	p, err := OpenPart(filepath.Join(root, "host"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Meta.Part != 1 || p.Book.Parts != 3 || p.Book.Server(2) != 0 {
		t.Fatalf("%+v", p.Meta)
	}
	if err := Verify(opt.Dir); !errors.Is(err, graph.ErrInput) {
		t.Fatal("a missing part:", err)
	}
	opt.PartDirs = nil
	opt.Dir = filepath.Join(root, "a") // a folder that is something else
	if err := Write(context.Background(), d, parts, 3, q, opt); !errors.Is(err, graph.ErrInput) {
		t.Fatal(err)
	}
	novel := filepath.Join(root, "a", "book.json") // whatever else it is called
	if err := os.WriteFile(novel, []byte(`{"title": "Middlemarch"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(context.Background(), d, parts, 3, q, opt); !errors.Is(err, graph.ErrInput) {
		t.Fatal(err)
	}
	if _, err := os.Stat(novel); err != nil {
		t.Fatal("another's book was replaced:", err)
	}
	opt.Dir, opt.PartDirs = filepath.Join(root, "x1"), []string{filepath.Join(root, "x0"), filepath.Join(root, "x1"),
		filepath.Join(root, "x2")}
	if err := Write(context.Background(), d, parts, 3, q, opt); !errors.Is(err, graph.ErrInput) {
		t.Fatal("a part where the book goes:", err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".x*")); left != nil {
		t.Fatal("left behind:", left)
	}
}

func TestRun(t *testing.T) {
	seeds(t, 8, func(t *testing.T, r *rand.Rand) {
		dir := randomDataset(t, r, 20+r.IntN(100))
		out := filepath.Join(t.TempDir(), "out")
		name := []string{"random", "hash", "chunk", "ldg", "fennel"}[r.IntN(5)]
		servers := 1 + r.IntN(2)
		report, err := Run(context.Background(), dir,
			Options{Parts: servers * (1 + r.IntN(3)), Servers: servers, Method: name, Out: out, Verify: true,
				Compare: true, Seed: 4})
		if err != nil {
			t.Fatal(err)
		}
		d := open(t, dir)
		parts := assignment(t, out)
		cut, need := recount(d.Graph, parts, report.Parts, d.Meta.Symmetric)
		var volume int64
		for _, n := range need {
			volume += int64(len(n))
		}
		if report.EdgeCut != cut || report.CommVolume != volume || !report.Verified || len(report.Compared) != 5 {
			t.Fatalf("%+v, counted %d %d", report, cut, volume)
		}
	})
}

// assignment reads back the part of every vertex of the dataset.
func assignment(t *testing.T, dir string) []uint32 {
	t.Helper()
	book, err := OpenBook(dir)
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]uint32, book.Nodes)
	for k := range book.Parts {
		p, err := OpenPart(dir, k)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range p.IDs[:p.Core()] {
			parts[id] = uint32(k)
		}
		p.Close()
	}
	return parts
}

func TestRunRefuses(t *testing.T) {
	dir := randomDataset(t, rand.New(rand.NewPCG(3, 3)), 30)
	for name, o := range map[string]Options{
		"too many parts":  {Parts: 31, Method: "fennel"},
		"no parts":        {Method: "fennel"},
		"no such method":  {Parts: 2, Method: "best"},
		"uneven servers":  {Parts: 5, Servers: 2, Method: "fennel"},
		"no such balance": {Parts: 2, Method: "fennel", Balance: "beauty"},
		"bad tolerance":   {Parts: 2, Method: "fennel", Balance: "vertices:-1"},
		"twice":           {Parts: 2, Method: "fennel", Balance: "vertices,vertices:0.1"},
		"no model":        {Parts: 2, Method: "fennel", Model: Model{Name: "llm"}},
		"verify nothing":  {Parts: 2, Method: "fennel", Verify: true},
	} {
		if _, err := Run(context.Background(), dir, o); !errors.Is(err, graph.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Run(context.Background(), filepath.Join(dir, "nowhere"),
		Options{Parts: 2, Method: "hash"}); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
	// Hash keeps no promise about balance: asked for, that is an error; with best effort a note.
	o := Options{Parts: 7, Method: "hash", Balance: "vertices:0"}
	var u *Unbalanced
	if _, err := Run(context.Background(), dir, o); !errors.As(err, &u) || u.Constraint != "vertices" {
		t.Error(err)
	}
	o.BestEffort = true
	if r, err := Run(context.Background(), dir, o); err != nil || len(r.Notes) == 0 {
		t.Error(r, err)
	}
}

// TestSmallPartsAreNamed: limits hold from above only, so a part of one vertex meets them; a note says so.
func TestSmallPartsAreNamed(t *testing.T) {
	dir := randomDataset(t, rand.New(rand.NewPCG(4, 4)), 30)
	small := func(o Options) bool {
		r, err := Run(context.Background(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		named := func(text string) bool { return strings.HasPrefix(text, "small parts: ") }
		want := false
		for p, size := range r.Core {
			few := float64(r.CoreEdges[p]) < 0.1*float64(r.Edges)/float64(o.Parts)
			want = want || size == 1 || few || float64(size) < 3/float64(o.Parts)
		}
		if want != slices.ContainsFunc(r.Notes, named) {
			t.Errorf("%d parts by %s of sizes %v and edges %v: %v", o.Parts, o.Method, r.Core, r.CoreEdges, r.Notes)
		}
		return slices.ContainsFunc(r.Notes, named)
	}
	for _, method := range []string{"random", "multilevel", "fennel"} {
		if small(Options{Parts: 3, Method: method}) {
			t.Errorf("%s: thirds are not small", method)
		}
		if !small(Options{Parts: 30, Method: method}) {
			t.Errorf("%s: parts of one vertex are", method)
		}
		small(Options{Parts: 20, Method: method})
	}
	if r, err := Run(context.Background(), dir, Options{Parts: 1, Method: "random"}); err != nil || len(r.Notes) > 0 {
		t.Error(r.Notes, err)
	}
}

// TestSplitsAreBalancedByDefault: a ring whose splits are stretches of it is cut so that all parts have as much of each;
// without, it is cut where that takes fewest edges.
func TestSplitsAreBalancedByDefault(t *testing.T) {
	const n, parts = 800, 4
	var src, dst []uint32
	for v := range uint32(n) {
		for hop := range uint32(3) {
			u := (v + hop + 1) % n
			src, dst = append(src, v, u), append(dst, u, v)
		}
	}
	g, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := &graph.Dataset{Meta: graph.Meta{Name: "ring", Symmetric: true}, Graph: g,
		Labels: &graph.Labels{Classes: 2, Class: make([]int32, n)}}
	for v := range uint32(n) {
		switch {
		case v < 400:
			d.Splits.Train = append(d.Splits.Train, v)
		case v < 600:
			d.Splits.Val = append(d.Splits.Val, v)
		default:
			d.Splits.Test = append(d.Splits.Test, v)
		}
	}
	dir := filepath.Join(t.TempDir(), "ring")
	if err := graph.Save(dir, d, graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	splits := []string{"train", "val", "test"}
	for balance, most := range map[string]float64{"": 1.1, "vertices:0.1,edges:0.2": 4} {
		r, err := Run(context.Background(), dir, Options{Parts: parts, Method: "multilevel", Balance: balance})
		if err != nil {
			t.Fatal(err)
		}
		heaviest := 0.0
		for _, s := range splits {
			heaviest = max(heaviest, r.Balance[s])
		}
		if heaviest > most || most > 2 && heaviest < 1.5 {
			t.Errorf("balance %q: %v, notes %q", balance, r.Balance, r.Notes)
		}
	}
}
