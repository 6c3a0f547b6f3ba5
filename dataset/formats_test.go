package dataset

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zip"
	"github.com/parquet-go/parquet-go"

	"starling/graph"
)

// sample is a graph to write in every format and to find again. (The same files
// written by the real tools are compared by scripts/peers/import-check.)
type sample struct {
	n        int
	src, dst []uint32
	x        []float32
	cols     int
	class    []int32
	marks    []uint8
	splits   graph.Splits
}

func newSample(seed uint64, n, m int) *sample {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &sample{n: n, cols: 3}
	for range m {
		s.src, s.dst = append(s.src, uint32(r.IntN(n))), append(s.dst, uint32(r.IntN(n)))
	}
	for v := range n {
		s.class = append(s.class, int32(v%3))
		for range s.cols {
			s.x = append(s.x, float32(r.IntN(100))/8)
			s.marks = append(s.marks, uint8(r.IntN(2)))
		}
		switch r.IntN(4) {
		case 0:
			s.splits.Train = append(s.splits.Train, uint32(v))
		case 1:
			s.splits.Val = append(s.splits.Val, uint32(v))
		case 2:
			s.splits.Test = append(s.splits.Test, uint32(v))
		}
	}
	return s
}

var keepAll = ImportOptions{KeepDuplicates: true, KeepSelfLoops: true}

// in checks that an imported dataset is the sample.
func (s *sample) in(t *testing.T, d *graph.Dataset, opt ImportOptions, multi bool) {
	t.Helper()
	g, err := graph.FromEdges(s.n, s.src, s.dst, nil, opt.buildOptions())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Graph.Indptr, g.Indptr) || !slices.Equal(d.Graph.Indices, g.Indices) {
		t.Errorf("%d edges, want the sample's %d", d.Graph.Edges(), g.Edges())
	}
	row := make([]float32, s.cols)
	for v := range s.n {
		if d.Features == nil {
			break
		}
		d.Features.CopyRow(row, uint32(v))
		if !slices.Equal(row, s.x[v*s.cols:(v+1)*s.cols]) {
			t.Fatalf("features of %d: %v", v, row)
		}
	}
	switch {
	case d.Labels == nil:
	case multi && !slices.Equal(d.Labels.Multi, s.marks), !multi && !slices.Equal(d.Labels.Class, s.class):
		t.Error("other labels")
	}
	if !slices.Equal(d.Splits.Train, s.splits.Train) || !slices.Equal(d.Splits.Val, s.splits.Val) ||
		!slices.Equal(d.Splits.Test, s.splits.Test) {
		t.Errorf("splits %v", d.Splits)
	}
}

func npyOf[T any](shape string, x []T) []byte {
	descr := map[string]string{"int64": "<i8", "int32": "<i4", "uint32": "<u4", "float32": "<f4", "float64": "<f8",
		"uint8": "|u1"}[fmt.Sprintf("%T", *new(T))]
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, x)
	return npyBytes(descr, shape, b.Bytes())
}

func to64(ids []uint32) (out []int64) {
	for _, v := range ids {
		out = append(out, int64(v))
	}
	return out
}

// folder writes files below a new folder; those that end in .gz are packed.
func folder(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "src")
	for name, b := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			w.Write(b)
			w.Close()
			b = z.Bytes()
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// npzOf is the bytes of an npz.
func npzOf(t testing.TB, method uint16, arrays map[string][]byte) []byte {
	t.Helper()
	b, err := os.ReadFile(zipped(t, method, arrays))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func lines[T any](x []T, f func(i int) string) []byte {
	var b bytes.Buffer
	for i := range x {
		b.WriteString(f(i) + "\n")
	}
	return b.Bytes()
}

func (s *sample) ogbFiles(multi bool) map[string][]byte {
	ids := func(x []uint32) []byte { return lines(x, func(i int) string { return fmt.Sprint(x[len(x)-1-i]) }) }
	row := func(v int) string {
		var f []string
		for _, x := range s.x[v*s.cols : (v+1)*s.cols] {
			f = append(f, fmt.Sprint(x))
		}
		return strings.Join(f, ",")
	}
	label := func(v int) string {
		if !multi {
			return fmt.Sprint(s.class[v])
		}
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(s.marks[v*s.cols:(v+1)*s.cols]), " ", ","), "[]")
	}
	return map[string][]byte{
		"raw/edge.csv.gz": lines(s.src,
			func(i int) string { return fmt.Sprintf("%d,%d", s.src[i], s.dst[i]) }),
		"raw/num-node-list.csv.gz": []byte(fmt.Sprintln(s.n)),
		"raw/node-feat.csv.gz":     lines(s.class, row),
		"raw/node-label.csv.gz":    lines(s.class, label),
		"split/time/train.csv.gz":  ids(s.splits.Train),
		"split/time/valid.csv.gz":  ids(s.splits.Val),
		"split/time/test.csv.gz":   ids(s.splits.Test),
	}
}

func TestOGBText(t *testing.T) {
	for _, multi := range []bool{false, true} {
		s := newSample(1, 50, 400)
		s.in(t, imported(t, "ogb", folder(t, s.ogbFiles(multi)), keepAll), keepAll, multi)
	}
	// Names decide about reverse edges.
	s := newSample(2, 30, 100)
	opt := keepAll
	opt.Name = "ogbn-products"
	d := imported(t, "ogb", folder(t, s.ogbFiles(false)), opt)
	opt.Symmetrize = true
	s.in(t, d, opt, false)
	// Lists longer than a block, so that the quick parser runs too.
	s = newSample(3, 3000, 400_000)
	s.in(t, imported(t, "ogb", folder(t, s.ogbFiles(false)), keepAll), keepAll, false)
}

func TestOGBLabelsWithHoles(t *testing.T) {
	for text, want := range map[string][]int32{
		"1\n\n\n0\n":               {1, -1, -1, 0},
		"\n1\n\n0\n":               {-1, 1, -1, 0},
		"1\r\n\r\n\"\"\r\nnan\r\n": {1, -1, -1, -1},
	} {
		s := newSample(1, 4, 9)
		m := s.ogbFiles(false)
		m["raw/node-label.csv.gz"] = []byte(text)
		for _, name := range []string{"train", "valid", "test"} {
			delete(m, "split/time/"+name+".csv.gz")
		}
		if d := imported(t, "ogb", folder(t, m), keepAll); !slices.Equal(d.Labels.Class, want) {
			t.Errorf("%q: %v, want %v", text, d.Labels.Class, want)
		}
	}
}

func TestOGBRefuses(t *testing.T) {
	for mention, change := range map[string]func(map[string][]byte){
		"line 3":        func(m map[string][]byte) { m["raw/node-feat.csv.gz"] = []byte("1,2\n3,4\nx,5\n") },
		"edge 2":        func(m map[string][]byte) { m["raw/edge.csv.gz"] = []byte("0,1\n1,2\n1,999\n") },
		"edge.csv.gz":   func(m map[string][]byte) { m["raw/edge.csv.gz"] = []byte("a,b\n") },
		"num-node-list": func(m map[string][]byte) { m["raw/num-node-list.csv.gz"] = []byte("3\n4\n") },
		"node-label":    func(m map[string][]byte) { m["raw/node-label.csv.gz"] = []byte("1\n") },
		"row 0":         func(m map[string][]byte) { m["raw/node-label.csv.gz"] = []byte("1.5\n") },
		"train.csv.gz":  func(m map[string][]byte) { m["split/time/train.csv.gz"] = []byte("1\n1\n") },
		"line 2":        func(m map[string][]byte) { m["split/time/train.csv.gz"] = []byte("1\nx\n") },
		"no such file":  func(m map[string][]byte) { delete(m, "raw/edge.csv.gz") },
		"30 edges":      func(m map[string][]byte) { m["raw/num-edge-list.csv.gz"] = []byte("31\n") },
		"also in train": func(m map[string][]byte) { m["split/time/valid.csv.gz"] = m["split/time/train.csv.gz"] },
		"no vertex":     func(m map[string][]byte) { m["split/time/valid.csv.gz"] = nil },
		"2 splits":      func(m map[string][]byte) { m["split/other/train.csv.gz"] = nil },
		"raw":           func(m map[string][]byte) { clear(m); m["x"] = nil },
		"column 1":      func(m map[string][]byte) { m["raw/node-feat.csv.gz"] = bytes.Repeat([]byte("1,nan\n"), 10) },
		"rows: found 2": func(m map[string][]byte) { m["raw/node-feat.csv.gz"] = []byte("1,2\n3,4\n") },
	} {
		m := newSample(1, 10, 30).ogbFiles(false)
		change(m)
		refused(t, "ogb", folder(t, m), ImportOptions{}, mention)
	}
}

func (s *sample) ogbBinary(t testing.TB, method uint16) map[string][]byte {
	m := s.ogbFiles(false)
	for _, name := range []string{"edge", "num-node-list", "node-feat", "node-label"} {
		delete(m, "raw/"+name+".csv.gz")
	}
	label := make([]float64, s.n)
	for v, c := range s.class {
		label[v] = float64(c)
	}
	m["raw/data.npz"] = npzOf(t, method, map[string][]byte{
		"edge_index":     npyOf(fmt.Sprintf("(2, %d)", len(s.src)), append(to64(s.src), to64(s.dst)...)),
		"num_nodes_list": npyOf("(1,)", []int64{int64(s.n)}),
		"num_edges_list": npyOf("(1,)", []int64{int64(len(s.src))}),
		"node_feat":      npyOf(fmt.Sprintf("(%d, %d)", s.n, s.cols), s.x),
	})
	m["raw/node-label.npz"] = npzOf(t, method,
		map[string][]byte{"node_label": npyOf(fmt.Sprintf("(%d, 1)", s.n), label)})
	return m
}

func TestOGBBinary(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		s := newSample(4, 2000, 200_000)
		s.in(t, imported(t, "ogb", folder(t, s.ogbBinary(t, method)), keepAll), keepAll, false)
	}
	s := newSample(4, 20, 50)
	m := s.ogbBinary(t, zip.Store)
	at := bytes.Index(m["raw/data.npz"], []byte("(2, 50)"))
	m["raw/data.npz"][at+len("(2, 50), }")+8*7] ^= 1 // a vertex becomes the next
	refused(t, "ogb", folder(t, m), ImportOptions{}, "checksum")
	m = s.ogbBinary(t, zip.Store)
	at = bytes.Index(m["raw/node-label.npz"], []byte("(20, 1)"))
	// 0 becomes -0, which is as good a class
	m["raw/node-label.npz"][at+len("(20, 1), }")+8*slices.Index(s.class, 0)+7] ^= 0x80
	refused(t, "ogb", folder(t, m), ImportOptions{}, "checksum")
	m = s.ogbBinary(t, zip.Deflate)
	label := make([]float64, s.n)
	for v := range label {
		label[v] = math.NaN()
	}
	label[s.splits.Train[0]] = 1
	m["raw/node-label.npz"] = npzOf(t, zip.Store, map[string][]byte{"node_label": npyOf("(20, 1)", label)})
	d := imported(t, "ogb", folder(t, m), ImportOptions{})
	if len(d.Splits.Train) != 1 || d.Labels.Class[s.splits.Train[0]] != 1 || len(d.Splits.Test) != 0 {
		t.Errorf("unlabelled vertices: %v", d.Splits)
	}
	for mention, arrays := range map[string]map[string][]byte{
		"edge_index": {"num_nodes_list": npyOf("(1,)", []int64{3}),
			"edge_index": npyOf("(3, 1)", []int64{0, 1, 2})},
		"num_nodes_list": {"num_nodes_list": npyOf("(2,)", []int64{3, 4}),
			"edge_index": npyOf("(2, 1)", []int64{0, 1})},
		"edge 1": {"num_nodes_list": npyOf("(1,)", []int64{3}),
			"edge_index": npyOf("(2, 2)", []int64{0, 1, 2, 3})},
		"-1 where": {"num_nodes_list": npyOf("(1,)", []int64{3}),
			"edge_index": npyOf("(2, 2)", []int64{0, -1, 2, 0})},
		"no such array": {"num_nodes_list": npyOf("(1,)", []int64{3})},
		"bytes for shape": {"num_nodes_list": npyOf("(1,)", []int64{3}),
			"edge_index": npyOf("(2, 9999999999)", []int64{0})},
	} {
		refused(t, "ogb", folder(t, map[string][]byte{"raw/data.npz": npzOf(t, zip.Deflate, arrays)}),
			ImportOptions{}, mention)
	}
}

// csr is the sample's edges by source, each once.
func (s *sample) csr() (ptr []int64, to []int32) {
	g, _ := graph.FromEdges(s.n, s.dst, s.src, nil, graph.BuildOptions{DropDuplicates: true})
	s.src, s.dst = nil, nil
	for u := range s.n {
		for _, v := range g.Neighbors(uint32(u)) {
			s.src, s.dst, to = append(s.src, uint32(u)), append(s.dst, v), append(to, int32(v))
		}
	}
	return g.Indptr, to
}

func (s *sample) saintFiles(t testing.TB, multi bool) map[string][]byte {
	ptr, to := s.csr()
	classes := map[string]any{}
	for v := range s.n {
		var marks []int
		for _, m := range s.marks[v*s.cols : (v+1)*s.cols] {
			marks = append(marks, int(m))
		}
		classes[strconv.Itoa(v)] = marks
		if !multi {
			classes[strconv.Itoa(v)] = s.class[v]
		}
	}
	text, _ := json.Marshal(classes)
	roles, _ := json.Marshal(map[string][]uint32{"tr": s.splits.Train, "va": s.splits.Val, "te": s.splits.Test})
	return map[string][]byte{
		"adj_full.npz": npzOf(t, zip.Deflate,
			map[string][]byte{"indptr": npyOf(fmt.Sprintf("(%d,)", s.n+1), ptr),
				"indices": npyOf(fmt.Sprintf("(%d,)", len(to)), to),
				"data":    npyOf(fmt.Sprintf("(%d,)", len(to)), make([]uint8, len(to))),
				"shape":   npyOf("(2,)", []int64{int64(s.n), int64(s.n)})}),
		"feats.npy":      npyOf(fmt.Sprintf("(%d, %d)", s.n, s.cols), s.x),
		"role.json":      roles,
		"class_map.json": text,
	}
}

func TestSAINT(t *testing.T) {
	for _, multi := range []bool{false, true} {
		s := newSample(5, 300, 100_000)
		dir := folder(t, s.saintFiles(t, multi))
		s.in(t, imported(t, "saint", dir, keepAll), keepAll, multi)
		opt := keepAll
		opt.Standardize = true
		d := imported(t, "saint", dir, opt)
		for c := range s.cols {
			var sum, square float64
			for _, v := range s.splits.Train {
				x := float64(d.Features.F32[int(v)*s.cols+c])
				sum, square = sum+x, square+x*x
			}
			k := float64(len(s.splits.Train))
			if math.Abs(sum/k) > 1e-5 || math.Abs(square/k-1) > 1e-5 {
				t.Errorf("column %d: mean %g, mean square %g", c, sum/k, square/k)
			}
		}
	}
}

func TestSAINTRefuses(t *testing.T) {
	for mention, change := range map[string]func(map[string][]byte){
		"role.json":              func(m map[string][]byte) { m["role.json"] = []byte(`{"tr": [1, -2]}`) },
		`"xx"`:                   func(m map[string][]byte) { m["role.json"] = []byte(`{"xx": [1]}`) },
		"vertex 99":              func(m map[string][]byte) { m["role.json"] = []byte(`{"tr": [99]}`) },
		"byte 9":                 func(m map[string][]byte) { m["class_map.json"] = []byte(`{"0": [2]}`) },
		"twice":                  func(m map[string][]byte) { m["class_map.json"] = []byte(`{"0": 1, "0": 2}`) },
		"as other vertices have": func(m map[string][]byte) { m["class_map.json"] = []byte(`{"0": [1], "1": 2}`) },
		"as many as other":       func(m map[string][]byte) { m["class_map.json"] = []byte(`{"0": [1], "1": [1, 0]}`) },
		"end of the file":        func(m map[string][]byte) { m["class_map.json"] = []byte(`{"0": 1`) },
		"feats.npy":              func(m map[string][]byte) { m["feats.npy"] = npyOf("(2, 1)", []float32{1, 2}) },
		"indptr": func(m map[string][]byte) {
			m["adj_full.npz"] = npzOf(t, zip.Store,
				map[string][]byte{"shape": npyOf("(2,)", []int64{2, 2}), "indptr": npyOf("(3,)", []int64{0, 2, 1})})
		},
		"square": func(m map[string][]byte) {
			m["adj_full.npz"] = npzOf(t, zip.Store, map[string][]byte{"shape": npyOf("(2,)", []int64{2, 3})})
		},
		"adj_full.npz": func(m map[string][]byte) { m["adj_full.npz"] = []byte("PK nothing") },
		"tocsr": func(m map[string][]byte) {
			m["adj_full.npz"] = npzOf(t, zip.Store, map[string][]byte{"format": npyBytes("|S3", "()", []byte("csc"))})
		},
	} {
		m := newSample(5, 12, 30).saintFiles(t, false)
		change(m)
		refused(t, "saint", folder(t, m), ImportOptions{}, mention)
	}
}

func (s *sample) redditFiles(t testing.TB) map[string][]byte {
	types := make([]int64, s.n)
	for i, ids := range [][]uint32{s.splits.Train, s.splits.Val, s.splits.Test} {
		for _, v := range ids {
			types[v] = int64(i + 1)
		}
	}
	m := fmt.Sprintf("(%d,)", len(s.src))
	return map[string][]byte{
		"reddit_graph.npz": npzOf(t, zip.Deflate,
			map[string][]byte{"row": npyOf(m, to64(s.src)), "col": npyOf(m, s.dst),
				"data":  npyOf(m, make([]float64, len(s.src))),
				"shape": npyOf("(2,)", []int64{int64(s.n), int64(s.n)})}),
		"reddit_data.npz": npzOf(t, zip.Deflate,
			map[string][]byte{"feature": npyOf(fmt.Sprintf("(%d, %d)", s.n, s.cols), s.x),
				"label": npyOf(fmt.Sprintf("(%d,)", s.n), s.class), "node_types": npyOf(fmt.Sprintf("(%d,)", s.n), types)}),
	}
}

func TestDGLReddit(t *testing.T) {
	s := newSample(6, 500, 150_000)
	s.in(t, imported(t, "dgl-reddit", folder(t, s.redditFiles(t)), keepAll), keepAll, false)
	m := newSample(6, 5, 9).redditFiles(t)
	m["reddit_graph.npz"] = npzOf(t, zip.Store,
		map[string][]byte{"row": npyOf("(2,)", []int64{0, 1}), "col": npyOf("(1,)", []int64{0}),
			"shape": npyOf("(2,)", []int64{5, 5})})
	refused(t, "dgl-reddit", folder(t, m), ImportOptions{}, "row, col")
}

func TestGeom(t *testing.T) {
	s := newSample(7, 40, 100)
	files := map[string][]byte{
		"film_out1_graph_edges.txt": append([]byte("node_id\tnode_id\n"),
			lines(s.src, func(i int) string { return fmt.Sprintf("%d\t%d", s.src[i], s.dst[i]) })...),
		"film_out1_node_feature_label.txt": append([]byte("node_id\tfeature\tlabel\n"),
			lines(s.class, func(i int) string {
				v := s.n - 1 - i
				return fmt.Sprintf("%d\t%g,%g,%g\t%d", v, s.x[3*v], s.x[3*v+1], s.x[3*v+2], s.class[v])
			})...),
	}
	d := imported(t, "geom", folder(t, files), keepAll)
	s.splits = d.Splits // drawn
	s.in(t, d, keepAll, false)
	if d.Meta.Name != "film" {
		t.Error(d.Meta.Name)
	}
	for mention, text := range map[string]string{"line 3": "h\n0\t1\t0\n1\t1,2\t0\n", "line 2": "h\n0 1 2\n",
		"node_id": "h\n5\t1\t0\n", "a class": "h\n0\t1\tx\n"} {
		files["film_out1_node_feature_label.txt"] = []byte(text)
		refused(t, "geom", folder(t, files), ImportOptions{}, mention)
	}
}

func TestFilm(t *testing.T) {
	d := imported(t, "geom", shared(t, "geom"), ImportOptions{})
	// PyG's Actor has the same vertices, features and classes; 29,926 edges are left
	// without its repeats and self-loops.
	if d.Graph.Nodes() != 7600 || d.Graph.Edges() != 29926 || d.Features.Cols != 932 || d.Labels.Classes != 5 {
		t.Errorf("%+v", d.Meta)
	}
}

func Test4elt(t *testing.T) {
	d := imported(t, "metis", shared(t, "metis/4elt.graph"), ImportOptions{})
	if d.Graph.Nodes() != 15606 || d.Graph.Edges() != 2*45878 || !d.Meta.Symmetric {
		t.Errorf("%+v", d.Meta)
	}
}

func TestMETIS(t *testing.T) {
	const edges = " weights 2 and 3 of vertex 2: to 1 and 3"
	for format, text := range map[string]string{
		"plain":         "% c\n4 2\n2\n1 3\n2\n\n",
		"edges":         "4 2 1\n2 5\n1 5 3 7\n2 7\n\n",
		"vertices":      "4 2 010\n9 2\n9 1 3\n9 2\n9\n",
		"all":           "4 2 111 2\n1 8 9 2 5\n1 8 9 1 5 3 7\n1 8 9 2 7\n1 8 9\n",
		"no last blank": "4 2\r\n2\r\n1 3\r\n2\r\n\r\n% end",
	} {
		d := imported(t, "metis", written(t, "x.graph", text), ImportOptions{})
		if !slices.Equal(d.Graph.Indices, []uint32{1, 0, 2, 1}) ||
			!slices.Equal(d.Graph.Indptr, []int64{0, 1, 3, 4, 4}) {
			t.Errorf("%s: %v %v", format, d.Graph.Indptr, d.Graph.Indices)
		}
		if weighted := strings.Contains(text, " 7"); weighted != (d.Graph.Weights != nil) || weighted &&
			!slices.Equal(d.Graph.Weights, []float32{5, 5, 7, 7}) {
			t.Errorf("%s: weights %v%s", format, d.Graph.Weights, edges)
		}
	}
	for text, mention := range map[string]string{
		"":                   "an empty file",
		"% nothing\n":        "line 2",
		"3\n":                "VERTICES EDGES",
		"3 1 2\n":            "FMT",
		"3 1\n2\n1\n":        "of vertex 3",
		"3 1\n4\n1\n\n":      "line 2",
		"3 2\n2\n1\n\n":      "2 neighbours in all",
		"2 1\n2\n1\n1\n":     "after the last vertex",
		"2 1 1\n2\n1 1\n":    "as FMT says",
		"2 1 1\n2 x\n1 1\n":  "a weight",
		"2 1\n2x\n1\n":       "neighbours from 1",
		"99999999999 1\n1\n": "2^32",
	} {
		refused(t, "metis", written(t, "x.graph", text), ImportOptions{}, mention)
	}
	// A line longer than the buffer: the centre of a star.
	n := 400_000
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %d\n", n, n-1)
	for v := 2; v <= n; v++ {
		fmt.Fprintf(&b, "%d ", v)
	}
	b.WriteString("\n" + strings.Repeat("1\n", n-1))
	if d := imported(t, "metis", written(t, "star.graph", b.String()), ImportOptions{}); d.Graph.Degree(0) != n-1 ||
		d.Graph.Edges() != int64(2*n-2) {
		t.Errorf("a star of %d edges", d.Graph.Edges())
	}
}

// The files in testdata/dgl were written by DGL 2.1's partition_graph, those in
// testdata/parquet by pyarrow 21.
func TestDGLPartition(t *testing.T) {
	d := imported(t, "dgl", "testdata/dgl", keepAll)
	s := sample{n: 7, cols: 3, src: []uint32{4, 5, 0, 1, 2, 1, 3, 0, 3}, dst: []uint32{0, 1, 2, 2, 3, 4, 4, 5, 5},
		class:  []int32{0, 2, 0, 1, 2, 1, 0},
		splits: graph.Splits{Train: []uint32{0, 5}, Val: []uint32{1, 2}, Test: []uint32{3, 4}}}
	for _, row := range []int{0, 2, 3, 4, 5, 1, 6} {
		s.x = append(s.x, float32(3*row), float32(3*row+1), float32(3*row+2))
	}
	s.in(t, d, keepAll, false)
}

func TestDGLPartitionRefuses(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata/dgl", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	all := func() map[string][]byte {
		m := map[string][]byte{"tiny.json": read("tiny.json")}
		for _, p := range []string{"part0/", "part1/"} {
			m[p+"graph.dgl"], m[p+"node_feat.dgl"] = read(p+"graph.dgl"), read(p+"node_feat.dgl")
		}
		return m
	}
	replace := func(name, old, with string) func(map[string][]byte) {
		return func(m map[string][]byte) { m[name] = bytes.Replace(m[name], []byte(old), []byte(with), 1) }
	}
	for mention, change := range map[string]func(map[string][]byte){
		"no such file":    func(m map[string][]byte) { delete(m, "part1/graph.dgl") },
		"byte":            func(m map[string][]byte) { m["part1/graph.dgl"] = m["part1/graph.dgl"][:5000] },
		"part1/node_feat": func(m map[string][]byte) { m["part1/node_feat.dgl"] = []byte("nothing of the kind") },
		"num_edges":       replace("tiny.json", `"num_edges": 9`, `"num_edges": 8`),
		"node_map":        replace("tiny.json", `"num_nodes": 7`, `"num_nodes": 8`),
		"num_parts":       replace("tiny.json", `"num_parts": 2`, `"num_parts": 2000`),
		"inside":          replace("tiny.json", `part0/graph.dgl`, `../../graph.dgl`),
		"kinds":           replace("tiny.json", `"_N:_E:_N": 0`, `"_N:_E:_N": 0, "other": 1`),
	} {
		m := all()
		change(m)
		refused(t, "dgl", folder(t, m), keepAll, mention)
	}
}

func TestParquetOfArrow(t *testing.T) {
	opt := keepAll
	opt.Weights = true
	d := imported(t, "parquet", "testdata/parquet", opt)
	// Names count from their first appearance in the edges: a b c d.
	if !slices.Equal(d.Graph.Indptr, []int64{0, 1, 2, 3, 4}) ||
		!slices.Equal(d.Graph.Indices, []uint32{2, 0, 1, 0}) || !slices.Equal(d.Graph.Weights, []float32{3, 1, 2, 4}) {
		t.Errorf("%+v", d.Graph)
	}
	if d.ID(3) != "d" || !slices.Equal(d.Features.F32, []float32{1, 0.5, 2, 0, 3, 0, 4, 0}) ||
		!slices.Equal(d.Labels.Class, []int32{1, 0, -1, 1}) {
		t.Errorf("%v %v %v", d.ID(3), d.Features.F32, d.Labels.Class)
	}
	if !slices.Equal(d.Splits.Train, []uint32{0, 3}) || !slices.Equal(d.Splits.Val, []uint32{1}) ||
		d.Splits.Test != nil {
		t.Errorf("%v", d.Splits)
	}
}

// What else pyarrow writes: ids of 64 bits without a sign, splits as floats, and features
// that are stored as something else, made by
//
//	table(src=uint64([2**63+5, 7, 2**64-1]), dst=uint64([7, 2**64-1, 2**63+5]))
//	table(id=uint64([7, 2**64-1, 2**63+5]), price=decimal128(7,2)(["1.50", "2.25", "-3"]), half=float16([1, -0.5, 3]),
//	      n=uint32([1, 2, 3000000000]), when=timestamp("us")([1, 2, 3]), city=["a", "b", "c"], label=[0, 1, 0], split=[0., 1., 2.])
func TestParquetKinds(t *testing.T) {
	d := imported(t, "parquet", "testdata/parquet-kinds", ImportOptions{})
	if idsOf(d) != "9223372036854775813 7 18446744073709551615" || !slices.Equal(d.Graph.Indices, []uint32{2, 0, 1}) {
		t.Errorf("%s %v", idsOf(d), d.Graph.Indices)
	}
	if !slices.Equal(d.Features.F32, []float32{-3, 3, 3e9, 1.5, 1, 1, 2.25, -0.5, 2}) {
		t.Errorf("features %v", d.Features.F32)
	}
	if !slices.Equal(d.Splits.Train, []uint32{1}) || !slices.Equal(d.Splits.Val, []uint32{2}) ||
		!slices.Equal(d.Splits.Test, []uint32{0}) {
		t.Errorf("splits %v", d.Splits)
	}
	if notes := strings.Join(d.Meta.Notes, "; "); !strings.Contains(notes, "not used: when, city") {
		t.Error(notes)
	}
}

func TestParquetLabelsOfDifferentLengths(t *testing.T) {
	dir := t.TempDir()
	parquet.WriteFile(filepath.Join(dir, "edges.parquet"), []edgeRow{{0, 1}, {1, 2}})
	type row struct {
		ID    int64     `parquet:"id"`
		Label []float32 `parquet:"label,list"`
	}
	parquet.WriteFile(filepath.Join(dir, "nodes.parquet"),
		[]row{{0, []float32{1, 0, 1}}, {1, []float32{1}}, {2, []float32{0, 1}}})
	refused(t, "parquet", dir, ImportOptions{}, "label: found a list of 1, want 3")
}

func TestParquetSplits(t *testing.T) {
	type row struct {
		ID    int64  `parquet:"id"`
		Label int64  `parquet:"label"`
		Split string `parquet:"split"`
	}
	dir := t.TempDir()
	parquet.WriteFile(filepath.Join(dir, "edges.parquet"), []edgeRow{{0, 1}, {1, 2}})
	write := func(splits ...string) {
		var rows []row
		for i, s := range splits {
			rows = append(rows, row{int64(i), int64(i % 2), s})
		}
		parquet.WriteFile(filepath.Join(dir, "nodes.parquet"), rows)
	}
	write("learn", "check", "")
	refused(t, "parquet", dir, ImportOptions{}, "learn")
	write("train", "holdout", "")
	d := imported(t, "parquet", dir, ImportOptions{})
	if notes := strings.Join(d.Meta.Notes, "; "); len(d.Splits.Train) != 1 || len(d.Splits.Val) != 0 ||
		!strings.Contains(notes, "holdout") {
		t.Errorf("%v %s", d.Splits, notes)
	}
}

type edgeRow struct {
	Src int64 `parquet:"src"`
	Dst int64 `parquet:"dst"`
}

type nodeRow struct {
	ID       int64     `parquet:"id"`
	Label    int32     `parquet:"label"`
	Split    string    `parquet:"split"`
	Features []float32 `parquet:"features,list"`
}

func (s *sample) parquetFolder(t testing.TB, id func(v uint32) int64) string {
	dir := t.TempDir()
	var edges []edgeRow
	for i := range s.src {
		edges = append(edges, edgeRow{id(s.src[i]), id(s.dst[i])})
	}
	split := make([]string, s.n)
	for name, ids := range map[string][]uint32{"train": s.splits.Train, "valid": s.splits.Val, "test": s.splits.Test} {
		for _, v := range ids {
			split[v] = name
		}
	}
	var nodes []nodeRow
	for i := range s.n {
		v := (i * 7) % s.n // in another order, if 7 does not divide n
		nodes = append(nodes, nodeRow{id(uint32(v)), s.class[v], split[v], s.x[v*s.cols : (v+1)*s.cols]})
	}
	if err := parquet.WriteFile(filepath.Join(dir, "edges.parquet"), edges,
		parquet.MaxRowsPerRowGroup(3000)); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(filepath.Join(dir, "nodes.parquet"), nodes); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestParquet(t *testing.T) {
	s := newSample(8, 500, 10_000)
	s.in(t, imported(t, "parquet", s.parquetFolder(t, func(v uint32) int64 { return int64(v) }), keepAll), keepAll,
		false)
	for _, id := range []func(v uint32) int64{
		func(v uint32) int64 { return 3 * int64(v) },
		func(v uint32) int64 { return int64(v)<<40 - 1<<42 },
	} {
		d := imported(t, "parquet", s.parquetFolder(t, id), keepAll)
		s.in(t, d, keepAll, false)
		if want := fmt.Sprint(id(9)); d.ID(9) != want {
			t.Errorf("vertex 9 was %s, want %s", d.ID(9), want)
		}
	}
}

func TestParquetRefuses(t *testing.T) {
	s := newSample(8, 20, 50)
	dir := s.parquetFolder(t, func(v uint32) int64 { return int64(v) })
	edges, nodes := filepath.Join(dir, "edges.parquet"), filepath.Join(dir, "nodes.parquet")
	rows, _ := parquet.ReadFile[nodeRow](nodes)
	again := func(rows []nodeRow) {
		if err := parquet.WriteFile(nodes, rows); err != nil {
			t.Fatal(err)
		}
	}
	again(rows[1:])
	refused(t, "parquet", dir, keepAll, "no row for")
	again(append(slices.Clone(rows), rows[3]))
	refused(t, "parquet", dir, keepAll, "each vertex once")
	short := slices.Clone(rows)
	short[4].Features = short[4].Features[:1]
	again(short)
	refused(t, "parquet", dir, keepAll, "features")
	again(rows)
	opt := keepAll
	opt.Weights = true
	refused(t, "parquet", dir, opt, "weight")
	b, _ := os.ReadFile(edges)
	os.WriteFile(edges, b[:len(b)/2], 0o644)
	refused(t, "parquet", dir, keepAll, "edges.parquet")
	parquet.WriteFile(edges, []struct{ A, B float64 }{{1, 2}})
	refused(t, "parquet", dir, keepAll, "src and dst")
	os.Remove(edges)
	refused(t, "parquet", dir, keepAll, "edges*.parquet")
}

func TestPermuteRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		n := 1 + r.IntN(20)
		to := make([]uint32, n)
		x, want := make([]float32, 2*n), make([]float32, 2*n)
		for i, v := range r.Perm(n) {
			to[i] = uint32(v)
			x[2*i], x[2*i+1] = float32(i), -float32(i)
			want[2*v], want[2*v+1] = float32(i), -float32(i)
		}
		if permuteRows(x, 2, to); !slices.Equal(x, want) {
			t.Fatalf("%v: %v", to, x)
		}
	}
}

// Memory does not grow with the edges; see docs/data.md for a hundred million of them.
func BenchmarkOGBBinary(b *testing.B) {
	const m = 5_000_000
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		b.Run(fmt.Sprintf("edges=5e6/deflated=%v", method == zip.Deflate), func(b *testing.B) {
			r := rand.New(rand.NewPCG(5, 5))
			ends := make([]int64, 2*m)
			for i := range ends {
				ends[i] = int64(r.IntN(1_000_000))
			}
			dir := folder(b, map[string][]byte{"raw/data.npz": npzOf(b, method, map[string][]byte{
				"edge_index": npyOf(fmt.Sprintf("(2, %d)", m), ends), "num_nodes_list": npyOf("(1,)",
					[]int64{1_000_000})})})
			out := filepath.Join(b.TempDir(), "d")
			for b.Loop() {
				if _, err := Import("ogb", dir, ImportOptions{Overwrite: true}, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(m*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}
