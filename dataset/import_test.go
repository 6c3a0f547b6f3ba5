package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zip"

	"starling/graph"
	"starling/internal/testdeadline"
)

// shared is the folder of real data: $STARLING_DATA, or ../shared/data beside
// the repository.
func shared(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("STARLING_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "data")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("real data is not here, so this is not checked (set STARLING_DATA to its folder): %v", err)
	}
	return path
}

func imported(t testing.TB, format, src string, opt ImportOptions) *graph.Dataset {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if _, err := Import(format, src, opt, dir); err != nil {
		t.Fatal(err)
	}
	d, err := graph.OpenWith(dir, graph.OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func refused(t testing.TB, format, src string, opt ImportOptions, mention string) {
	t.Helper()
	parent := t.TempDir()
	_, err := Import(format, src, opt, filepath.Join(parent, "d"))
	if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), mention) {
		t.Errorf("%s of %s: %v, want a message about %q", format, src, err, mention)
	}
	if left, _ := os.ReadDir(parent); len(left) > 0 {
		t.Errorf("%v was left behind", left)
	}
}

func TestImportOfNothing(t *testing.T) {
	for _, format := range Formats() {
		refused(t, format, filepath.Join(t.TempDir(), "gone"), ImportOptions{}, "no such file or folder")
	}
}

func TestCoraFromPlanetoid(t *testing.T) {
	d := imported(t, "planetoid", shared(t, "planetoid"), ImportOptions{Name: "cora"})
	if d.Graph.Nodes() != 2708 || d.Graph.Edges() != 10556 || d.Features.Cols != 1433 || d.Labels.Classes != 7 ||
		!d.Meta.Symmetric {
		t.Errorf("%+v", d.Meta)
	}
	if s := d.Splits; len(s.Train) != 140 || len(s.Val) != 500 || len(s.Test) != 1000 || s.Train[139] != 139 ||
		s.Val[499] != 639 || s.Test[0] != 1708 {
		t.Errorf("splits %d %d %d", len(s.Train), len(s.Val), len(s.Test))
	}
	if d.Features.Kind() != graph.Sparse || len(d.Features.Values) != 49216 {
		t.Errorf("features %s with %d values", d.Features.Kind(), len(d.Features.Values))
	}
	perClass := make([]int, 7)
	for _, v := range d.Splits.Train {
		perClass[d.Labels.Class[v]]++
	}
	if !slices.Equal(perClass, []int{20, 20, 20, 20, 20, 20, 20}) {
		t.Errorf("training vertices by class %v", perClass)
	}
	inside := 0
	for v := range uint32(2708) {
		for _, u := range d.Graph.Neighbors(v) {
			if d.Labels.Class[u] == d.Labels.Class[v] {
				inside++
			}
		}
	}
	// Rows or labels in the wrong order would bring this down to a sixth.
	if h := float64(inside) / 10556; !(math.Abs(h-0.81) <= 0.001) {
		t.Errorf("homophily of Cora: %g, want 0.81", h)
	}
}

func TestCoraFromNPZ(t *testing.T) {
	d := imported(t, "npz", shared(t, "npz/cora.npz"), ImportOptions{Seed: 3})
	if d.Graph.Nodes() != 2708 || d.Graph.Edges() != 10556 || d.Features.Cols != 1433 || d.Labels.Classes != 7 ||
		d.Meta.Name != "cora" {
		t.Errorf("%+v", d.Meta)
	}
	if s := d.Splits; len(s.Train) != 140 || len(s.Val) != 500 || len(s.Test) != 1000 {
		t.Errorf("splits %d %d %d", len(s.Train), len(s.Val), len(s.Test))
	}
	if !d.HasIDs() || d.ID(0) == "0" {
		t.Errorf("node names are lost: %q", d.ID(0))
	}
	d = imported(t, "npz", shared(t, "npz/cora.npz"),
		ImportOptions{Split: SplitOptions{Train: 0.5, Val: 0.25, Test: 0.25}})
	if len(d.Splits.Train) != 1354 {
		t.Errorf("%d training vertices", len(d.Splits.Train))
	}
	refused(t, "npz", shared(t, "npz/cora.npz"),
		ImportOptions{Split: SplitOptions{PerClass: 20, ValCount: 2000, TestCount: 2000}}, "split")
}

func TestFilmEdges(t *testing.T) {
	d := imported(t, "edgelist", shared(t, "geom/film_out1_graph_edges.txt"), ImportOptions{Symmetrize: true})
	if d.Graph.Nodes() != 7600 || d.HasIDs() || !d.Meta.Symmetric {
		t.Errorf("%+v", d.Meta)
	}
}

// Damage to real files at random places must never panic, and a cut file never pass.
func TestDamagedSources(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	damage := func(t *testing.T, format, src, name string, opt ImportOptions, rounds int) {
		whole, err := os.ReadFile(filepath.Join(src, name))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if format == "planetoid" {
			for _, f := range []string{"x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"} {
				b, _ := os.ReadFile(filepath.Join(src, "ind.cora."+f))
				os.WriteFile(filepath.Join(dir, "ind.cora."+f), b, 0o644)
			}
		}
		path := filepath.Join(dir, name)
		target := path
		if format == "planetoid" {
			target = dir
		}
		for range rounds {
			at := r.IntN(len(whole))
			os.WriteFile(path, whole[:at], 0o644)
			if _, err := importers[format](target, opt); !errors.Is(err, graph.ErrInput) {
				t.Errorf("%s cut at %d: %v", name, at, err)
			}
			bad := slices.Clone(whole)
			bad[at] ^= byte(1 + r.IntN(255))
			os.WriteFile(path, bad, 0o644)
			if _, err := importers[format](target, opt); err != nil && !errors.Is(err, graph.ErrInput) {
				t.Errorf("%s changed at %d: %v", name, at, err)
			}
		}
	}
	t.Run("planetoid", func(t *testing.T) {
		for _, f := range []string{"y", "tx", "graph", "allx"} {
			damage(t, "planetoid", shared(t, "planetoid"), "ind.cora."+f, ImportOptions{Name: "cora"}, 6)
		}
	})
	t.Run("npz", func(t *testing.T) {
		damage(t, "npz", filepath.Dir(shared(t, "npz/cora.npz")), "cora.npz", ImportOptions{}, 25)
	})
}

func TestPickleRunsNothing(t *testing.T) {
	for name, p := range map[string]string{
		"a call":    "cos\nsystem\n(S'true'\ntR.",
		"a builtin": "\x80\x02c__builtin__\neval\nU\x011\x85R.",
		"stacked":   "\x80\x04\x8c\x02os\x8c\x06system\x93.",
	} {
		if v, err := unpickle([]byte(p)); err == nil || !strings.Contains(err.Error(), "class") {
			t.Errorf("%s: %v %v", name, v, err)
		}
	}
	dir := t.TempDir()
	for _, f := range []string{"x", "y", "tx", "ty", "allx", "ally", "graph"} {
		os.WriteFile(filepath.Join(dir, "ind.evil."+f), []byte("cos\nsystem\n(U\x04truetR."), 0o644)
	}
	os.WriteFile(filepath.Join(dir, "ind.evil.test.index"), []byte("0\n"), 0o644)
	refused(t, "planetoid", dir, ImportOptions{}, "os.system")
	refused(t, "planetoid", dir, ImportOptions{Name: "cora"}, "ind.cora.test.index")
	refused(t, "planetoid", t.TempDir(), ImportOptions{}, "--name")
}

func FuzzUnpickle(f *testing.F) {
	f.Add([]byte("\x80\x02ccollections\ndefaultdict\nq\x01c__builtin__\nlist\nq\x02\x85Rq\x03(K\x00]q\x04(M\x79\x02K\x01eu."))
	f.Add([]byte("\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K\x02K\x01\x86cnumpy\ndtype\nU\x02i4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08\x01\x00\x00\x00\x00\x00\x00\x00tb."))
	f.Add([]byte("(lp0\nI1\naL2L\na."))
	for _, part := range []string{"y", "graph"} {
		if b, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "planetoid",
			"ind.cora."+part)); err == nil {
			f.Add(b[:min(len(b), 5000)])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := unpickle(b)
		if err != nil {
			return
		}
		if a, err := asArray(v); err == nil {
			a.int64s()
			a.float32s()
		}
		asCSR(v)
	})
}

// npyBytes is an npy file of little-endian data.
func npyBytes(descr, shape string, data []byte) []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(dict)), byte(len(dict)>>8))
	return append(append(b, dict...), data...)
}

func zipped(t testing.TB, method uint16, files map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npz")
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for name, b := range files {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(b)
	}
	z.Close()
	os.WriteFile(path, buf.Bytes(), 0o644)
	return path
}

// tinyNPZ is a graph 0→1, 1→2 with two features and labels 0 1 0.
func tinyNPZ() map[string][]byte {
	return map[string][]byte{
		"adj_indptr": npyBytes("<i4", "(4,)",
			[]byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0}),
		"adj_indices": npyBytes("<i4", "(2,)", []byte{1, 0, 0, 0, 2, 0, 0, 0}),
		"adj_data":    npyBytes("|u1", "(2,)", []byte{1, 1}), "adj_shape": npyBytes("|i1", "(2,)", []byte{3, 3}),
		"attr_matrix": npyBytes("|i1", "(3, 2)", []byte{1, 2, 3, 4, 5, 255}),
		"labels":      npyBytes("|b1", "(3,)", []byte{0, 1, 0}),
		"class_names": npyBytes("|O", "(2,)", []byte("a pickle")),
	}
}

var thirds = SplitOptions{Train: 0.34, Val: 0.33, Test: 0.33}

func TestTinyNPZ(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		d := imported(t, "npz", zipped(t, method, tinyNPZ()), ImportOptions{Split: thirds})
		if !slices.Equal(d.Graph.Indices, []uint32{1, 0, 2, 1}) ||
			!slices.Equal(d.Features.F32, []float32{1, 2, 3, 4, 5, -1}) ||
			!slices.Equal(d.Labels.Class, []int32{0, 1, 0}) {
			t.Errorf("%v %v %v", d.Graph, d.Features, d.Labels)
		}
	}
	for name, change := range map[string]func(map[string][]byte){
		"adj_shape":   func(m map[string][]byte) { m["adj_shape"] = npyBytes("|i1", "(2,)", []byte{3, 4}) },
		"adj_indices": func(m map[string][]byte) { delete(m, "adj_indices") },
		"adj_*: indices: found 7": func(m map[string][]byte) {
			m["adj_indices"] = npyBytes("|i1", "(2,)",
				[]byte{1, 7})
		},
		"attr_shape": func(m map[string][]byte) {
			m["attr_matrix"] = npyBytes("|i1", "(2, 2)",
				[]byte{1, 2, 3, 4})
		},
		"labels": func(m map[string][]byte) {
			m["labels"] = npyBytes("|i1", "(3,)",
				[]byte{0, 200, 1})
		},
		"objects": func(m map[string][]byte) { m["labels"] = npyBytes("|O", "(3,)", []byte("pickle")) },
		"NaN": func(m map[string][]byte) {
			m["attr_matrix"] = npyBytes("<f4", "(3, 1)", []byte{0, 0, 192, 127, 0, 0, 0, 0, 0, 0, 0, 0})
		},
		"shape": func(m map[string][]byte) { m["adj_data"] = npyBytes("|u1", "(99999999999,)", []byte{1, 1}) },
	} {
		m := tinyNPZ()
		change(m)
		refused(t, "npz", zipped(t, zip.Store, m), ImportOptions{Split: thirds}, name)
	}
	refused(t, "npz", "no-such.npz", ImportOptions{}, "no such file")
}

func FuzzNPZ(f *testing.F) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		b, _ := os.ReadFile(zipped(f, method, tinyNPZ()))
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), "x.npz")
	f.Fuzz(func(t *testing.T, b []byte) {
		os.WriteFile(path, b, 0o644)
		if r, err := readNPZ(path, ImportOptions{Split: thirds}); err == nil {
			if err := r.graph.Validate(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, graph.ErrInput) {
			t.Fatal(err)
		}
	})
}

func written(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func idsOf(d *graph.Dataset) string {
	var ids []string
	for v := range uint32(d.Graph.Nodes()) {
		ids = append(ids, d.ID(v))
	}
	return strings.Join(ids, " ")
}

func TestEdgeListSpellings(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		opt     ImportOptions
		indices []uint32
		ids     string
		mapped  bool
	}{
		"snap": {"# a comment\n# more\n0\t1\n2\t1\n1\t0\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2",
			false},
		"blanks":     {"0  1\r\n2 1\r\n\r\n% x\n1 0", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"csv header": {"source,target\n0,1\n2,1\n1,0\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"odd header": {"acct;payee\n0;1\n2;1\n1;0\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"sparse ids": {"70,300\n5000000,300\n300,70\n", ImportOptions{}, []uint32{1, 0, 2}, "70 300 5000000",
			true},
		"wide ids": {"-7,99999999999\n3,-7\n", ImportOptions{}, []uint32{1, 0}, "-7 3 99999999999", true},
		"names": {"src,dst\nbob,alice\ncarol,alice\n", ImportOptions{}, []uint32{0, 2}, "bob alice carol",
			true},
		"quotes": {"\"b, ob\",\"alice\"\ncarol,alice\n", ImportOptions{}, []uint32{0, 2},
			"b, ob alice carol", true},
		"symmetrized": {"0 1\n1 0\n1 1\n", ImportOptions{Symmetrize: true}, []uint32{1, 0}, "0 1", false},
		"everything": {"0 1\n0 1\n1 1\n", ImportOptions{KeepDuplicates: true, KeepSelfLoops: true},
			[]uint32{0, 0, 1}, "0 1", false},
		"nodes given":     {"0 3\n", ImportOptions{Nodes: 5}, []uint32{0}, "0 1 2 3 4", false},
		"forced header":   {"1 2\n0 1\n", ImportOptions{Header: "yes"}, []uint32{0}, "0 1", false},
		"byte order mark": {"\xef\xbb\xbf0,1\n2,1\n1,0\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"quotes inside": {"\"a \"\"x\"\"\",b\n\"a \"\"y\"\"\",b\n", ImportOptions{}, []uint32{0, 2},
			"a \"x\" b a \"y\"", true},
		"quoted commas": {"\"b, ob\";\"a, lice\"\ncarol;\"a, lice\"\n", ImportOptions{}, []uint32{0, 2},
			"b, ob a, lice carol", true},
		"trailing comma": {"0,1,\n2,1,\n1,0,\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"twenty digits":  {"18446744073709551615,1\n", ImportOptions{}, []uint32{0}, "18446744073709551615 1", true},
		"too large, first": {"9223372036854775808 1\n1 2\n", ImportOptions{}, []uint32{0, 1},
			"9223372036854775808 1 2", true},
		"fractions":    {"1.5 2\n2 3\n", ImportOptions{}, []uint32{0, 1}, "1.5 2 3", true},
		"header again": {"src,dst\n0,1\n2,1\nsrc,dst\n1,0\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"and as saved": {"\xef\xbb\xbfsrc,dst\r\n0,1\r\n2,1\r\n\xef\xbb\xbfsrc,dst\r\n1,0\r\n", ImportOptions{},
			[]uint32{1, 0, 2}, "0 1 2", false},
		"part in quotes": {"\"Al\" Y\tb\n\"Al\" Z\tb\n", ImportOptions{}, []uint32{0, 2}, "\"Al\" Y b \"Al\" Z",
			true},
		"leading zeros":  {"a 007\na 7\n", ImportOptions{}, []uint32{0, 0}, "a 007 7", true},
		"target first":   {"dst,src\n1,0\n1,2\n0,1\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"rows of pandas": {",src,dst\n0,0,1\n1,2,1\n2,1,0\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"rows, by tabs": {"\tsrc\tdst\r\n0\t0\t1\r\n1\t2\t1\r\n2\t1\t0\r\n", ImportOptions{}, []uint32{1, 0, 2},
			"0 1 2", false},
		"blanks around":  {" \t0 1\t\n 2 1\n1 0 \n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"rows of others": {",payer,payee\n7,0,1\n8,2,1\n9,1,0\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
		"numbered edges": {"id\tkind\tTarget\tSource\n7\tx\t1\t0\n8\ty\t1\t2\n9\tz\t0\t1\n", ImportOptions{},
			[]uint32{1, 0, 2}, "0 1 2", false},
		"one end is known": {"id,source,payee\n7,0,1\n8,2,1\n9,1,0\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2",
			false},
		"a triple": {"head,relation,tail\nbob,knows,alice\ncarol,knows,alice\n", ImportOptions{},
			[]uint32{0, 2}, "bob alice carol", true},
		"letters": {"v,w\n0,1\n2,1\n1,0\n", ImportOptions{}, []uint32{1, 0, 2}, "0 1 2", false},
	} {
		d := imported(t, "edgelist", written(t, "e.txt", c.text), c.opt)
		if !slices.Equal(d.Graph.Indices, c.indices) || idsOf(d) != c.ids || d.HasIDs() != c.mapped {
			t.Errorf("%s: %v %q mapped=%v", name, d.Graph.Indices, idsOf(d), d.HasIDs())
		}
	}
}

func TestEdgeListWeightsLabelsFeatures(t *testing.T) {
	edges := written(t, "e.csv", "u,v,w\nx,y,0.5\ny,z,2\n")
	opt := ImportOptions{Weights: true, Symmetrize: true, Split: SplitOptions{Train: 1},
		Labels:   written(t, "l.csv", "id,label\nz,cat\nx,dog\nq,cat\n"),
		Features: written(t, "f.tsv", "x\t1\t2\ny\t3\t4\nq\t5\t6\nz\t7\t8\n")}
	d := imported(t, "edgelist", edges, opt)
	if idsOf(d) != "x y z q" || !slices.Equal(d.Graph.Weights, []float32{0.5, 0.5, 2, 2}) {
		t.Errorf("%s %v", idsOf(d), d.Graph.Weights)
	}
	if !slices.Equal(d.Labels.Class, []int32{1, -1, 0, 0}) ||
		!slices.Equal(d.Features.F32, []float32{1, 2, 3, 4, 7, 8, 5, 6}) {
		t.Errorf("%v %v", d.Labels.Class, d.Features.F32)
	}
	// columns without names, as pandas numbers them
	opt.Features = written(t, "f.csv", "id,0,1\nx,1,2\ny,3,4\nq,5,6\nz,7,8\n")
	if d = imported(t, "edgelist", edges, opt); idsOf(d) != "x y z q" ||
		!slices.Equal(d.Features.F32, []float32{1, 2, 3, 4, 7, 8, 5, 6}) {
		t.Errorf("%s %v", idsOf(d), d.Features.F32)
	}
	opt.Labels = written(t, "l.csv", "z,1\nx,0\n")
	opt.Features = written(t, "f.npy", string(npyBytes("|i1", "(3, 1)", []byte{7, 8, 9})))
	d = imported(t, "edgelist", edges, opt)
	if notes := strings.Join(d.Meta.Notes, "; "); !strings.Contains(notes, "line i of ids.txt") {
		t.Errorf("no note names the order of the rows of the npy: %s", notes)
	}
	if !slices.Equal(d.Labels.Class, []int32{0, -1, 1}) || !slices.Equal(d.Features.F32, []float32{7, 8, 9}) {
		t.Errorf("%v %v", d.Labels.Class, d.Features.F32)
	}
}

// A header says which columns are what.
func TestColumnsByName(t *testing.T) {
	for _, text := range []string{"src,dst,w\n0,1,0.5\n1,0,2\n", "weight,src,dst\n0.5,0,1\n2,1,0\n",
		"src,dst,year,Weight\n0,1,1999,0.5\n1,0,2001,2\n",
		",dst,src,fee\n0,1,0,0.5\n1,0,1,2\n", "dst,\"weight\",src\n1,\"0.5\",0\n0,2,1\n"} {
		d := imported(t, "edgelist", written(t, "e.csv", text), ImportOptions{Weights: true})
		if !slices.Equal(d.Graph.Indices, []uint32{1, 0}) || !slices.Equal(d.Graph.Weights, []float32{2, 0.5}) {
			t.Errorf("%q: %v %v", text, d.Graph.Indices, d.Graph.Weights)
		}
	}
	refused(t, "edgelist", written(t, "e.csv", "weight,src,dst\nheavy,0,1\n"), ImportOptions{Weights: true},
		"weight in column 1")
	refused(t, "edgelist", written(t, "e.csv", "id,src,dst\n0,1\n"), ImportOptions{}, "line 2")
	edges := written(t, "e.csv", "0,1\n1,2\n2,0\n")
	for _, text := range []string{",id,x,y\n0,2,5,6\n1,0,1,2\n2,1,3,4\n", "x,y,id\n5,6,2\n1,2,0\n3,4,1\n",
		",x,y\n2,5,6\n0,1,2\n1,3,4\n"} {
		d := imported(t, "edgelist", edges, ImportOptions{Features: written(t, "f.csv", text)})
		if !slices.Equal(d.Features.F32, []float32{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%q: %v", text, d.Features.F32)
		}
	}
	refused(t, "edgelist", edges, ImportOptions{Features: written(t, "f.csv", "x,y,id\n5,6,2\n1,2\n3,4,1\n")}, "f.csv")
	d := imported(t, "edgelist", written(t, "e.csv", "id,src,dst\n7,0,1\n"),
		ImportOptions{Split: SplitOptions{Train: 1}, Labels: written(t, "l.csv", "label,id\n1,0\n")})
	if notes := strings.Join(d.Meta.Notes, "; "); !strings.Contains(notes,
		"sources are column 2, targets column 3") || !strings.Contains(notes, "ids are column 2 of l.csv") {
		t.Error(notes)
	}
}

func TestTablesOfVertices(t *testing.T) {
	edges := written(t, "e.csv", "0,1\n1,2\n2,0\n")
	for name, c := range map[string]struct {
		labels string
		class  []int32
	}{
		"header of other words": {"paper,venue\n0,1\n1,0\n2,1\n", []int32{1, 0, 1}},
		"missing, as pandas":    {"id,label\n0,1\n1,\n2,0\n", []int32{1, -1, 0}},
		"missing, by tabs":      {"0\t1\n1\t\n2\t0\n", []int32{1, -1, 0}},
		"mark of bytes":         {"\xef\xbb\xbf0,1\n1,0\n2,1\n", []int32{1, 0, 1}},
		"whole, as pandas":      {"id,label\n0,10.0\n1,\n2,2.0\n", []int32{10, -1, 2}},
		"missing, in words":     {"0,1\n1,NaN\n2,0\n", []int32{1, -1, 0}},
		"words among names":     {"0,de\n1,na\n2,fr\n", []int32{0, 2, 1}},
		"one line":              {"2,1\n", []int32{-1, -1, 1}},
		"header again":          {"id,label\n0,1\n1,0\nid,label\n2,1\n", []int32{1, 0, 1}},
		"odd header again":      {"paper,venue\n0,1\n1,0\npaper,venue\n2,1\n", []int32{1, 0, 1}},
		"returns":               {"0,1\r\n1,0\r\n\r\n2,1\r\n", []int32{1, 0, 1}},
		"rows of pandas":        {",id,label\n0,2,1\n1,1,0\n2,0,1\n", []int32{1, 0, 1}},
		"rows are the ids":      {",label\n2,1\n1,0\n0,1\n", []int32{1, 0, 1}},
		"label first":           {"label,id\ncat,2\nant,1\ncat,0\n", []int32{1, 0, 1}},
		"names between":         {"id,name,label\n0,x,1\n1,y,\n2,z,0\n", []int32{1, -1, 0}},
	} {
		opt := ImportOptions{Split: SplitOptions{Train: 1}, Labels: written(t, "l.csv", c.labels)}
		d := imported(t, "edgelist", edges, opt)
		if !slices.Equal(d.Labels.Class, c.class) {
			t.Errorf("%s: classes %v, want %v", name, d.Labels.Class, c.class)
		}
	}
}

func TestEdgeListSaysWhatItLeavesOut(t *testing.T) {
	d := imported(t, "edgelist", written(t, "e.csv", "alice,1\n2,3\n#tag,3\n3,4\n"), ImportOptions{})
	if notes := strings.Join(d.Meta.Notes, "; "); !strings.Contains(notes, `"alice,1"`) ||
		!strings.Contains(notes, "are taken for comments: 1;") {
		t.Error(notes)
	}
	d = imported(t, "edgelist", written(t, "e.csv", "# comment\nsource,target\n# more\n0,1\n1,2\n"), ImportOptions{})
	if notes := strings.Join(d.Meta.Notes, "; "); strings.Contains(notes, "taken for") {
		t.Error(notes)
	}
}

// One-hot labels have one 1, or none.
func TestOneHot(t *testing.T) {
	for _, c := range []struct {
		row  []int64
		want int32 // -2: refused
	}{{[]int64{0, 1, 0}, 1}, {[]int64{0, 0, 0}, -1}, {[]int64{1, 1, 0}, -2}, {[]int64{0, 256, 0},
		-2}, {[]int64{0, 1, -1}, -2}} {
		got, err := oneHot(c.row)
		if err != nil {
			got = -2
		}
		if got != c.want {
			t.Errorf("%v: class %d, %v", c.row, got, err)
		}
	}
}

func TestLargeUnsignedNumbers(t *testing.T) {
	a := &ndarray{descr: "u8", shape: []int64{1}, data: bytes.Repeat([]byte{0xff}, 8)}
	if x, err := a.float32s(); err != nil || x[0] != 1<<64 {
		t.Errorf("2^64-1 is %v, %v", x, err)
	}
}

// A pipe cannot be read twice.
func TestPipesAreRefused(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skip("pipes have no names here:", err)
	}
	testdeadline.Do(t, time.Minute, "importing a pipe", func() {
		if _, err := Import("edgelist", path, ImportOptions{}, filepath.Join(t.TempDir(), "d")); !errors.Is(err, graph.ErrInput) ||
			!strings.Contains(err.Error(), "a pipe") {
			t.Errorf("%v, want a message about a pipe", err)
		}
	})
}

func TestGzippedEdgeList(t *testing.T) {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	z.Write([]byte("0 1\n1 2\n"))
	z.Close()
	d := imported(t, "edgelist", written(t, "e.txt.gz", buf.String()), ImportOptions{})
	if d.Graph.Edges() != 2 || d.Meta.Name != "e" {
		t.Errorf("%+v", d.Meta)
	}
	refused(t, "edgelist", written(t, "e.gz", buf.String()[:buf.Len()-6]), ImportOptions{}, "gzip")
}

func TestBadEdgeLists(t *testing.T) {
	good := written(t, "e.csv", "0,1\n1,2\n")
	for mention, c := range map[string]struct {
		text string
		opt  ImportOptions
	}{
		"line 3: found \"\\\"a,b":       {"a,b\nc,d\n\"a,b\n", ImportOptions{}},
		"line 1: found \"a;\\\"b\\\" c": {"a;\"b\" c\nd;e\n", ImportOptions{}},
		"no edges":                      {"# nothing\n", ImportOptions{}},
		"line 3":                        {"0 1\n1 2\n3\n", ImportOptions{}},
		"line 2: found \"\\t5\\t2\"":    {"0\t1\t2\n\t5\t2\n", ImportOptions{}},
		"line 2":                        {"0,1,2\n0,1,heavy\n", ImportOptions{Weights: true}},
		"line 1":                        {"0,1,inf\n", ImportOptions{Weights: true}},
		"--nodes":                       {"0 9\n", ImportOptions{Nodes: 5}},
		"leave --nodes out":             {"a b\n", ImportOptions{Nodes: 5}},
		"bytes":                         {strings.Repeat("x", 3<<20), ImportOptions{}},
		"header":                        {"0 1\n", ImportOptions{Header: "maybe"}},
		"l.csv: label":                  {"0 1\n", ImportOptions{Labels: written(t, "l.csv", "0,-5\n")}},
		"two labels":                    {"0 1\n", ImportOptions{Labels: written(t, "l.csv", "0,1\n0,2\n")}},
		"f.csv: rows":                   {"0 1\n", ImportOptions{Features: written(t, "f.csv", "0,1\n")}},
		"f.csv: line 1":                 {"0 1\n", ImportOptions{Features: written(t, "f.csv", "0,,2\n1,3,4\n")}},
		"f.csv: line 2":                 {"0 1\n", ImportOptions{Features: written(t, "f.csv", "0,1\n1,nan\n")}},
		"f.npy: features: found NaN": {"0 1\n",
			ImportOptions{Features: written(t, "f.npy",
				string(npyBytes("<f4", "(2, 1)", []byte{0, 0, 0, 0, 0, 0, 0xc0, 0x7f})))}},
		"f.npy: header: found the end": {"0 1\n", ImportOptions{Features: written(t, "f.npy", "\x93NUMPY\x01\x00")}},
		"f.npy: shape": {"0 1\n",
			ImportOptions{Features: written(t, "f.npy", string(npyBytes("|i1", "(3, 1)", []byte{7, 8, 9})))}},
		"carriage return":    {"1,2\r3,4\r5,6\r", ImportOptions{}},
		"unpack archives":    {"0 1\n1 2\n\x00\x00\x00\x00", ImportOptions{}},
		"UTF-16":             {"\xff\xfe0\x00,\x001\x00\n\x00", ImportOptions{}},
		"--nodes: found -1":  {"0 1\n", ImportOptions{Nodes: -1}},
		"--standardize":      {"0 1\n", ImportOptions{Standardize: true}},
		"e.txt: ids":         {"0 9\n", ImportOptions{Nodes: 5}},
		"e.txt: test":        {"0 1\n", ImportOptions{Labels: written(t, "l.csv", "0,1\n1,0\n")}},
		"none for \"9\"":     {"0 9\n", ImportOptions{Features: written(t, "f.csv", "0,1\n")}},
		"no-such: found no ": {"0 1\n", ImportOptions{Labels: "no-such"}},
	} {
		refused(t, "edgelist", written(t, "e.txt", c.text), c.opt, mention)
	}
	refused(t, "edgelist", good, ImportOptions{Split: SplitOptions{Val: 0.5}}, "--val: found a setting without effect")
	refused(t, "metis", good, ImportOptions{Split: SplitOptions{PerClass: 5}},
		"--per-class: found a setting without effect on metis")
	refused(t, "edgelist", "no-such", ImportOptions{}, "no such file")
	refused(t, "edgelist", "-", ImportOptions{}, "standard input")
	refused(t, "edgelist", written(t, "e.csv", "src,dst\n"), ImportOptions{}, "no edges")
	refused(t, "edgelist", t.TempDir(), ImportOptions{}, "a folder")
	refused(t, "excel", good, ImportOptions{}, "format")
}

// Many blocks, compared with the obvious reader.
func TestEdgeListEqualsSlowTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, prefix := range []string{"", "v"} {
		var text strings.Builder
		order := map[string]bool{}
		var lines [][2]string
		for range 300000 {
			u, v := fmt.Sprintf("%s%d", prefix, 3*r.IntN(5000)), fmt.Sprintf("%s%d", prefix, 3*r.IntN(5000))
			fmt.Fprintf(&text, "%s\t%s\n", u, v)
			lines = append(lines, [2]string{u, v})
			order[u], order[v] = true, true
		}
		d := imported(t, "edgelist", written(t, "e.tsv", text.String()),
			ImportOptions{KeepDuplicates: true, KeepSelfLoops: true})
		if d.Graph.Nodes() != len(order) {
			t.Fatalf("%d vertices, want %d", d.Graph.Nodes(), len(order))
		}
		got := map[[2]string]int{}
		for v := range uint32(d.Graph.Nodes()) {
			for _, u := range d.Graph.Neighbors(v) {
				got[[2]string{d.ID(u), d.ID(v)}]++
			}
		}
		for _, l := range lines {
			got[l]--
		}
		for l, n := range got {
			if n != 0 {
				t.Fatalf("edge %v is there %d times too often", l, n)
			}
		}
		if prefix == "v" && (d.ID(0) != lines[0][0] || d.ID(1) != lines[0][1]) {
			t.Errorf("names are not in order of appearance: %s %s", d.ID(0), d.ID(1))
		}
	}
}

// unwritten is a dataset that is never committed, for fuzzing without the disk.
func unwritten(t testing.TB) *graph.Writer {
	t.Helper()
	w, err := graph.Create(filepath.Join(t.TempDir(), "d"), graph.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Abort)
	return w
}

// drained reads all that an importer would write. It must not fail but for the
// file, and what it reads must be sound.
func drained(t testing.TB, w *graph.Writer, format, path string, opt ImportOptions) {
	t.Helper()
	err := drain(w, format, path, opt)
	if err != nil && !errors.Is(err, graph.ErrInput) {
		t.Fatal(err)
	}
}

func drain(w *graph.Writer, format, path string, opt ImportOptions) error {
	opt.scratch = w.Scratch
	r, err := importers[format](path, opt)
	if err != nil {
		return err
	}
	n := 0
	if r.edges == nil {
		n, err = r.graph.Nodes(), r.graph.Validate()
	} else {
		n = r.edges.nodes
		s := w.Sorter(n, r.edges.expected, r.edges.weighted, opt.buildOptions())
		err = r.edges.fill(s)
		s.Close()
		if r.edges.close != nil {
			r.edges.close()
		}
	}
	if err == nil && r.rows != nil {
		err = r.rows.each(func([]float32) error { return nil })
	}
	if err == nil && r.labels != nil {
		err = r.labels.Validate(n)
	}
	if err != nil {
		return err
	}
	return r.splits.Validate(n, r.labels)
}

func FuzzEdgeList(f *testing.F) {
	f.Add([]byte("# c\n0\t1\n2\t1\n"), false)
	f.Add([]byte("src,dst,w\na,b,1\n\"c,d\",b,2\n"), true)
	f.Add([]byte(",w,dst,src\n0,1,a,b\n1,2,\"c,d\",b\n"), true)
	f.Add([]byte("-1 99999999999\n"), false)
	f.Add([]byte("\x1f\x8b\x08\x00"), false)
	path := filepath.Join(f.TempDir(), "e")
	out := unwritten(f)
	f.Fuzz(func(t *testing.T, b []byte, weighted bool) {
		os.WriteFile(path, b, 0o644)
		drained(t, out, "edgelist", path, ImportOptions{Weights: weighted, KeepDuplicates: true, KeepSelfLoops: true})
	})
}

func FuzzVertexTables(f *testing.F) {
	f.Add([]byte("id,label\n0,a\n1,b\n"), []byte("0,1,2\n1,3,4\n"))
	f.Add([]byte("label,id\na,0\nb,1\n"), []byte(",x,id\n0,1,0\n1,2,1\n"))
	f.Add([]byte("id,0\n0,0\n1,A"), []byte("0,0,,0")) // a bad first row is no header
	edges := written(f, "e", "0 1\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, labels, features []byte) {
		opt := ImportOptions{Labels: filepath.Join(dir, "l"), Features: filepath.Join(dir, "f"),
			Split: SplitOptions{Train: 1}}
		os.WriteFile(opt.Labels, labels, 0o644)
		os.WriteFile(opt.Features, features, 0o644)
		if _, err := readEdgeList(edges, opt); err != nil && !errors.Is(err, graph.ErrInput) {
			t.Fatal(err)
		}
	})
}

func BenchmarkEdgeList(b *testing.B) {
	const m = 5_000_000
	for _, prefix := range []string{"", "v"} {
		b.Run(fmt.Sprintf("ids=%sN/edges=5e6", prefix), func(b *testing.B) {
			r := rand.New(rand.NewPCG(5, 5))
			var text bytes.Buffer
			for range m {
				fmt.Fprintf(&text, "%s%d\t%s%d\n", prefix, r.IntN(1_000_000), prefix, r.IntN(1_000_000))
			}
			path := written(b, "e.tsv", text.String())
			out := filepath.Join(b.TempDir(), "d")
			for b.Loop() {
				if _, err := Import("edgelist", path, ImportOptions{Overwrite: true}, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(m*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}
