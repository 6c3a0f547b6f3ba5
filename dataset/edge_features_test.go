package dataset

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zip"
	"github.com/parquet-go/parquet-go"

	"starling/graph"
)

// listed are features that tell which edge of the list they are of.
func (s *sample) listed() (rows []float32) {
	for i := range s.src {
		rows = append(rows, float32(s.src[i]), float32(s.dst[i]), float32(i))
	}
	return rows
}

// identifyEdges checks features of listed: an edge has those of the first time that it,
// or with reverses its reverse, was listed.
func identifyEdges(t *testing.T, s *sample, d *graph.Dataset, opt ImportOptions) {
	t.Helper()
	g := d.Graph
	if g.EdgeDim != 3 || d.Meta.EdgeDim != 3 || d.Meta.Arrays["edge_features.npy"].CRC32C == "" || len(g.Weights) > 0 {
		t.Fatalf("%d numbers per edge, %d weights", g.EdgeDim, len(g.Weights))
	}
	want := map[[2]uint32][]int{}
	for i, u := range s.src {
		v := s.dst[i]
		want[[2]uint32{u, v}] = append(want[[2]uint32{u, v}], i)
		if opt.Symmetrize && u != v {
			want[[2]uint32{v, u}] = append(want[[2]uint32{v, u}], i)
		}
	}
	got := map[[2]uint32][]int{}
	for v := range uint32(g.Nodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u, f := g.Indices[e], g.EdgeRows(e, e+1)
			i := int(f[2])
			if f[0] != float32(s.src[i]) || f[1] != float32(s.dst[i]) {
				t.Fatalf("edge %d → %d has the features %v", u, v, f)
			}
			got[[2]uint32{u, v}] = append(got[[2]uint32{u, v}], i)
		}
	}
	for e, list := range want {
		if !opt.KeepDuplicates {
			list = list[:1]
		}
		if !opt.KeepSelfLoops && e[0] == e[1] {
			list = nil
		}
		if !slices.Equal(got[e], list) {
			t.Fatalf("edge %v was listed as %v, stored as %v", e, list, got[e])
		}
	}
}

// TestOGBEdgeFeatures, as text and binary: they stay with their edges when these are
// sorted, doubled and dropped.
func TestOGBEdgeFeatures(t *testing.T) {
	for i, opt := range []ImportOptions{keepAll, {}, {Symmetrize: true},
		{Symmetrize: true, KeepDuplicates: true, KeepSelfLoops: true}} {
		s := newSample(uint64(i), 40, 300)
		if i == 1 {
			s = newSample(1, 700, 300_000) // several chunks
		}
		files, binary := s.ogbFiles(false), s.ogbBinary(t, zip.Deflate)
		rows := s.listed()
		files["raw/edge-feat.csv.gz"] = lines(s.src,
			func(i int) string { return fmt.Sprintf("%g,%g,%g", rows[3*i], rows[3*i+1], rows[3*i+2]) })
		identifyEdges(t, s, imported(t, "ogb", folder(t, files), opt), opt)
		binary["raw/data.npz"] = npzOf(t, zip.Deflate, map[string][]byte{
			"edge_index":     npyOf(fmt.Sprintf("(2, %d)", len(s.src)), append(to64(s.src), to64(s.dst)...)),
			"num_nodes_list": npyOf("(1,)", []int64{int64(s.n)}),
			"edge_feat":      npyOf(fmt.Sprintf("(%d, 3)", len(s.src)), rows),
			"node_feat":      npyOf(fmt.Sprintf("(%d, %d)", s.n, s.cols), s.x)})
		identifyEdges(t, s, imported(t, "ogb", folder(t, binary), opt), opt)
	}
	for mention, text := range map[string]string{"2 numbers": "1\n2\n", "edge-feat": "1\nnan\n3\n",
		"line 2": "1\nx\n"} {
		files := newSample(1, 50, 3).ogbFiles(false)
		files["raw/edge-feat.csv.gz"] = []byte(text)
		refused(t, "ogb", folder(t, files), ImportOptions{}, mention)
	}
}

type featuredEdge struct {
	Src      int64     `parquet:"src"`
	Dst      int64     `parquet:"dst"`
	Time     int64     `parquet:"time"`
	Features []float32 `parquet:"features,list"`
}

// notesColumns fails if an import of tables has no such note; "": if it has one of columns of edges.
func notesColumns(t *testing.T, dir string, opt ImportOptions, want string) {
	t.Helper()
	notes := strings.Join(imported(t, "parquet", dir, opt).Meta.Notes, "\n")
	if want == "" && strings.Contains(notes, "columns of edges") || !strings.Contains(notes, want) {
		t.Errorf("%+v: %q, want %q", opt, notes, want)
	}
}

// TestParquetNotesDroppedEdgeColumns: numbers of edges that are no list, and weights without --weights.
func TestParquetNotesDroppedEdgeColumns(t *testing.T) {
	type edge struct {
		Src    int64   `parquet:"src"`
		Dst    int64   `parquet:"dst"`
		Weight float32 `parquet:"weight"`
		Price  float32 `parquet:"price"`
	}
	dir := t.TempDir()
	if err := parquet.WriteFile(filepath.Join(dir, "edges.parquet"), []edge{{0, 1, 1, 2}, {1, 2, 3, 4}}); err != nil {
		t.Fatal(err)
	}
	const unused = "columns of edges that are not used: "
	notesColumns(t, dir, ImportOptions{}, unused+"weight, price; features of edges are lists in one column, features, and "+
		"--weights takes weight")
	notesColumns(t, dir, ImportOptions{Weights: true}, unused+"price;")
	if err := parquet.WriteFile(filepath.Join(dir, "edges.parquet"), []edgeRow{{0, 1}, {1, 2}}); err != nil {
		t.Fatal(err)
	}
	notesColumns(t, dir, ImportOptions{}, "")
}

// TestParquetEdgeFeatures: a list of numbers beside the ends, over several row groups.
func TestParquetEdgeFeatures(t *testing.T) {
	s := newSample(3, 50, 900)
	var edges []featuredEdge
	for i, rows := 0, s.listed(); i < len(s.src); i++ {
		edges = append(edges, featuredEdge{int64(s.src[i]), int64(s.dst[i]), int64(i), rows[3*i : 3*i+3]})
	}
	dir := s.parquetFolder(t, func(v uint32) int64 { return int64(v) })
	path := filepath.Join(dir, "edges.parquet")
	write := func() {
		t.Helper()
		if err := parquet.WriteFile(path, edges, parquet.MaxRowsPerRowGroup(200)); err != nil {
			t.Fatal(err)
		}
	}
	write()
	for _, opt := range []ImportOptions{keepAll, {Symmetrize: true}} {
		identifyEdges(t, s, imported(t, "parquet", dir, opt), opt)
	}
	notesColumns(t, dir, ImportOptions{}, "columns of edges that are not used: time; features of edges are lists")
	edges[700].Features = edges[700].Features[:2]
	write()
	refused(t, "parquet", dir, ImportOptions{}, "features")
}
