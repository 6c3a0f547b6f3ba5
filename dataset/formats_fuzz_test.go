package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zip"

	"starling/graph"
)

// Fuzzing replaces one file of a sound folder and reads all that an import would
// write. Whatever is in the file, the answer is a dataset or a message.

// fuzzFile fuzzes one file of a folder. Files that are packed on disk are fuzzed as
// they are, and unpacked ones as text.
func fuzzFile(f *testing.F, format string, files map[string][]byte, name string, opt ImportOptions) {
	dir := folder(f, files)
	path := filepath.Join(dir, name)
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(files[name]) // not packed
	f.Add(bytes.Replace(files[name], []byte("1"), []byte("9999999999"), 1))
	f.Add(files[name][:len(files[name])/2])
	out := unwritten(f)
	src := dir
	if format == "metis" {
		src = path
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		drained(t, out, format, src, opt)
	})
}

func FuzzOGBEdges(f *testing.F) {
	fuzzFile(f, "ogb", newSample(1, 10, 20).ogbFiles(false), "raw/edge.csv.gz", keepAll)
}

func FuzzOGBFeatures(f *testing.F) {
	fuzzFile(f, "ogb", newSample(1, 10, 20).ogbFiles(false), "raw/node-feat.csv.gz", keepAll)
}

func FuzzOGBLabels(f *testing.F) {
	fuzzFile(f, "ogb", newSample(1, 10, 20).ogbFiles(true), "raw/node-label.csv.gz", keepAll)
}

func FuzzOGBSplit(f *testing.F) {
	fuzzFile(f, "ogb", newSample(1, 10, 20).ogbFiles(false), "split/time/valid.csv.gz", keepAll)
}

func FuzzOGBBinary(f *testing.F) {
	fuzzFile(f, "ogb", newSample(1, 10, 20).ogbBinary(f, zip.Deflate), "raw/data.npz", keepAll)
}

func FuzzSplitDict(f *testing.F) {
	files := newSample(1, 10, 20).ogbFiles(false)
	files["split/time/split_dict.pt"] = npzOf(f, zip.Store, map[string][]byte{"a/data.pkl": []byte("\x80\x02}q\x00.")})
	fuzzFile(f, "ogb", files, "split/time/split_dict.pt", keepAll)
}

func FuzzSAINTGraph(f *testing.F) {
	fuzzFile(f, "saint", newSample(1, 10, 20).saintFiles(f, false), "adj_full.npz", keepAll)
}

func FuzzSAINTFeatures(f *testing.F) {
	opt := keepAll
	opt.Standardize = true
	fuzzFile(f, "saint", newSample(1, 10, 20).saintFiles(f, false), "feats.npy", opt)
}

func FuzzSAINTRoles(f *testing.F) {
	fuzzFile(f, "saint", newSample(1, 10, 20).saintFiles(f, false), "role.json", keepAll)
}

func FuzzClassMap(f *testing.F) {
	f.Add([]byte(`{"0": 1, "3": 2}`))
	fuzzFile(f, "saint", newSample(1, 10, 20).saintFiles(f, true), "class_map.json", keepAll)
}

func FuzzRedditGraph(f *testing.F) {
	fuzzFile(f, "dgl-reddit", newSample(1, 10, 20).redditFiles(f), "reddit_graph.npz", keepAll)
}

func FuzzRedditData(f *testing.F) {
	fuzzFile(f, "dgl-reddit", newSample(1, 10, 20).redditFiles(f), "reddit_data.npz", keepAll)
}

func FuzzGeomVertices(f *testing.F) {
	f.Add([]byte("id\tfeature(feature_amount:9)\tlabel\n0\t1,2\t0\n1\t8\t1\n2\t0\t0\n"))
	fuzzFile(f, "geom", geomFiles(f), "out1_node_feature_label.txt", ImportOptions{Split: thirds})
}

func FuzzMETIS(f *testing.F) {
	f.Add([]byte("4 2 111 2\n1 8 9 2 5\n1 8 9 1 5 3 7\n1 8 9 2 7\n1 8 9\n"))
	fuzzFile(f, "metis", map[string][]byte{"x.graph": []byte("% c\n4 2\n2\n1 3\n2\n\n")}, "x.graph", keepAll)
}

// dglFiles is the partition that DGL wrote.
func dglFiles(f testing.TB) map[string][]byte {
	m := map[string][]byte{}
	for _, name := range []string{"tiny.json", "part0/graph.dgl", "part0/node_feat.dgl", "part1/graph.dgl",
		"part1/node_feat.dgl"} {
		b, err := os.ReadFile(filepath.Join("testdata/dgl", name))
		if err != nil {
			f.Fatal(err)
		}
		m[name] = b
	}
	return m
}

func FuzzDGLBook(f *testing.F)    { fuzzFile(f, "dgl", dglFiles(f), "tiny.json", keepAll) }
func FuzzDGLGraph(f *testing.F)   { fuzzFile(f, "dgl", dglFiles(f), "part0/graph.dgl", keepAll) }
func FuzzDGLTensors(f *testing.F) { fuzzFile(f, "dgl", dglFiles(f), "part1/node_feat.dgl", keepAll) }

func parquetBytes(f testing.TB) map[string][]byte {
	m := map[string][]byte{}
	for _, name := range []string{"edges.parquet", "nodes.parquet"} {
		b, err := os.ReadFile(filepath.Join("testdata/parquet", name))
		if err != nil {
			f.Fatal(err)
		}
		m[name] = b
	}
	return m
}

func FuzzParquetEdges(f *testing.F) {
	fuzzFile(f, "parquet", parquetBytes(f), "edges.parquet", ImportOptions{Weights: true})
}

func FuzzParquetVertices(f *testing.F) {
	fuzzFile(f, "parquet", parquetBytes(f), "nodes.parquet", ImportOptions{Split: thirds})
}

// TestParquetFooter: lengths that the file does not have take no memory.
func TestParquetFooter(t *testing.T) {
	b, err := os.ReadFile("testdata/parquet/edges.parquet")
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Clone(b)
	copy(whole[len(b)-8:], "\xff\xff\xff\xff")
	refusedParquet(t, whole, "a footer of 4294967295 bytes")

	const lots = "\xff\xff\xff\xff\x07" // 2^31-1
	for footer, want := range map[string]string{
		// schema
		"\x15\x02\x19\xfc" + lots:                       "a list of 2147483647 with 0 bytes of the footer left",
		"\x5b" + lots + "\x88":                          "a list of 2147483647 with 0 bytes of the footer left",
		"\x29\x2c\x18" + lots:                           "a footer that breaks off",
		"\x1d\x00":                                      "a value of the unknown type 13",
		strings.Repeat("\x1c", 100):                     "without end",
		"\x19\x1c\x17" + strings.Repeat("\x00", 7) + "": "a footer that breaks off",
	} {
		tail := binary.LittleEndian.AppendUint32([]byte(footer), uint32(len(footer)))
		refusedParquet(t, append(append([]byte("PAR1"), tail...), "PAR1"...), want)
	}
}

func refusedParquet(t *testing.T, b []byte, want string) {
	path := filepath.Join(t.TempDir(), "edges.parquet")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, "parquet", path, ImportOptions{}, want)
}

func FuzzOGBBinaryLabels(f *testing.F) {
	fuzzFile(f, "ogb", newSample(1, 10, 20).ogbBinary(f, zip.Deflate), "raw/node-label.npz", keepAll)
}

// geomFiles is a graph of three vertices with its splits.
func geomFiles(f testing.TB) map[string][]byte {
	mask := func(v int) []byte {
		b := make([]byte, 3)
		b[v] = 1
		return npyBytes("|i1", "(3,)", b)
	}
	return map[string][]byte{"out1_graph_edges.txt": []byte("a\tb\n0\t1\n1\t2\n"),
		"out1_node_feature_label.txt": []byte("id\tf\tl\n0\t1,2\t0\n2\t1,0\t1\n1\t3,4\t0\n"),
		"out1_split_0.npz": npzOf(f, zip.Store,
			map[string][]byte{"train_mask": mask(0), "val_mask": mask(1), "test_mask": mask(2)})}
}

func FuzzGeomEdges(f *testing.F) {
	fuzzFile(f, "geom", geomFiles(f), "out1_graph_edges.txt", ImportOptions{})
}

func FuzzGeomSplits(f *testing.F) {
	fuzzFile(f, "geom", geomFiles(f), "out1_split_0.npz", ImportOptions{})
}

// Each of Planetoid's four kinds of files; a whole folder needs hundreds of vertices.
func FuzzPlanetoid(f *testing.F) {
	f.Add([]byte("\x80\x02}q\x00(K\x00]q\x01(K\x01K\x02eK\x01]q\x02K\x00au."))
	f.Add([]byte("\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K\x01K\x02\x86cnumpy\ndtype\nU\x02i4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08\x01\x00\x00\x00\x00\x00\x00\x00tb."))
	f.Add([]byte("3\n4\n2\n"))
	p := planetoid{dir: f.TempDir(), name: "n"}
	path := p.path("x")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		os.WriteFile(p.path("graph"), b, 0o644)
		os.WriteFile(p.path("test.index"), b, 0o644)
		features, err1 := p.features("x")
		class, classes, err2 := p.labels("x")
		_, _, err3 := p.edges(10)
		test, err4 := p.testIndex()
		for _, err := range []error{err1, err2, err3, err4} {
			if err != nil && !errors.Is(err, graph.ErrInput) {
				t.Fatal(err)
			}
		}
		if err2 == nil {
			if err := (&graph.Labels{Classes: classes, Class: class}).Validate(len(class)); err != nil {
				t.Fatal(err)
			}
		}
		if err4 == nil && err1 == nil {
			if n, err := p.place(test, len(test), int(slices.Min(test))); err == nil && len(test) <= features.Rows {
				stackRows(n, features, features, test)
			}
		}
	})
}
