package schema

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"starling/graph"
)

// csvDataset is a folder of DGL's CSVDataset with two types.
var csvDataset = map[string]string{
	"meta.yaml": `version: 1.0.0
dataset_name: mag
separator: ','
node_data:
- file_name: papers.csv
  ntype: paper
- file_name: authors.csv
  ntype: author
  node_id_field: name
edge_data:
- file_name: writes.csv
  etype: [author, writes, paper]
- file_name: cites.csv
  etype: [paper, cites, paper]
  src_id_field: from
  dst_id_field: to
`,
	"papers.csv": ",node_id,label,train_mask,val_mask,test_mask,feat,year,graph_id\n" +
		"0,10,1,True,False,False,\"0.5, 1.5, -2\",2000,0\n" +
		"1,7,0,False,True,False,\"1, 2, 3\",2001,0\n" +
		"2,30,1,False,False,True,\"4, 5, 6\",2002,0\n",
	"authors.csv": "name,age,home\nAda,30,Oslo\nBob,40,Rome\n",
	"writes.csv":  "src_id,dst_id,feat\nAda,10,\"1, 2\"\nBob,7,\"3, 4\"\nBob,30,\"5, 6\"\n",
	"cites.csv":   "from,to\n7,10\n7,10\n30,30\n",
}

// TestCSVDatasetOfDGL: types, columns, masks and lists in quotes become what DGL makes of them.
func TestCSVDatasetOfDGL(t *testing.T) {
	dir := folder(t, csvDataset)
	d := imported(t, dir, "", nil)
	s := d.Meta.Schema
	if d.Meta.Name != "mag" || len(s.Types) != 2 || len(s.Relations) != 2 || s.Relations[0].Edges != 3 || s.Relations[1].Edges != 3 {
		t.Fatalf("%s %+v", d.Meta.Name, s)
	}
	if f := d.TypeFeatures[0]; f.Cols != 3 || !slices.Equal(f.F32, []float32{0.5, 1.5, -2, 1, 2, 3, 4, 5, 6}) {
		t.Error(f)
	}
	if f := d.TypeFeatures[1]; f.Cols != 1 || !slices.Equal(f.F32, []float32{30, 40}) {
		t.Error(f)
	}
	labels, splits := d.TypeLabels(0)
	if !slices.Equal(labels.Class, []int32{1, 0, 1}) || fmt.Sprint(splits) != "{[0] [1] [2]}" {
		t.Error(labels, splits)
	}
	if got := d.ID(2) + d.ID(4); got != "30Bob" {
		t.Error(got)
	}
	if got := fmt.Sprint(d.Graph.Neighbors(0), d.Graph.Neighbors(1), d.Graph.Neighbors(2)); got != "[1 1 3] [4] [2 4]" {
		t.Error(got)
	}
	sch, err := Read(filepath.Join(dir, "meta.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := sch.Plan()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(p.Lines(), "\n")
	for _, says := range []string{"val_mask    text           split: val", "year        whole numbers  dropped: feat has the features",
		"graph_id    whole numbers  which graph: one", "home  text           dropped: no numbers", "dropped: it has no name"} {
		if !strings.Contains(text, says) {
			t.Errorf("%q is not in\n%s", says, text)
		}
	}
}

// TestCSVDatasetWithoutTypes: one type and one relation are a graph without types, with all edges.
func TestCSVDatasetWithoutTypes(t *testing.T) {
	d := imported(t, folder(t, map[string]string{
		"meta.yaml": "dataset_name: one\nseparator: ';'\nnode_data:\n- file_name: n.csv\nedge_data:\n- file_name: e.csv\n",
		"n.csv":     "node_id;label;feat;train_mask\na;x;1, 2;1\nb;y;3, 4;1\nc;x;5, 6;0\n",
		"e.csv":     "src_id;dst_id;weight;feat;label\na;b;2;0.5;1\na;b;3;1.5;0\nc;c;1;2.5;0\n",
	}), "", nil)
	if d.Typed() || d.Features.Cols != 2 || d.Graph.Edges() != 3 || !slices.Equal(d.Graph.Weights, []float32{2, 3, 1}) ||
		!slices.Equal(d.Graph.EdgeFeatures, []float32{0.5, 1.5, 2.5}) || d.ID(2) != "c" || d.Labels.Classes != 2 {
		t.Errorf("%+v, %+v", d.Meta, d.Graph)
	}
}

// npyOf is an npy of whole numbers, or float32.
func npyOf[T int64 | float32 | bool](t *testing.T, width int, values ...T) string {
	t.Helper()
	descr := map[string]string{"int64": "<i8", "float32": "<f4", "bool": "|b1"}[fmt.Sprintf("%T", *new(T))]
	shape := fmt.Sprintf("(%d,)", len(values))
	if width > 0 {
		shape = fmt.Sprintf("(%d, %d)", len(values)/width, width)
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	binary.Write(&b, binary.LittleEndian, uint16(len(head)))
	b.WriteString(head)
	binary.Write(&b, binary.LittleEndian, values)
	return b.String()
}

// parquetOf has the columns 0 and 1, as pandas writes an array of two.
func parquetOf(t *testing.T, rows ...[2]int64) string {
	t.Helper()
	type pair struct {
		A int64 `parquet:"0"`
		B int64 `parquet:"1"`
	}
	var b bytes.Buffer
	var all []pair
	for _, r := range rows {
		all = append(all, pair{r[0], r[1]})
	}
	if err := parquet.Write(&b, all); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// chunked is a graph in DGL's chunked format, with edges as CSV, Parquet and npy.
func chunked(t *testing.T) map[string]string {
	return map[string]string{
		"metadata.json": `{"graph_name": "mag", "node_type": ["author", "paper"],
 "num_nodes_per_chunk": [[2, 1], [2, 2]],
 "edge_type": ["author:writes:paper", "paper:cites:paper", "paper:by:author"],
 "num_edges_per_chunk": [[3, 1], [0, 2], [2]],
 "edges": {
  "author:writes:paper": {"format": {"name": "csv", "delimiter": " "}, "data": ["w0.txt", "w1.txt"]},
  "paper:cites:paper": {"format": {"name": "parquet"}, "data": ["none", "c1.parquet"]},
  "paper:by:author": {"format": {"name": "numpy"}, "data": ["by.npy"]}},
 "node_data": {"paper": {
  "feat": {"format": {"name": "numpy"}, "data": ["f0.npy", "f1.npy"]},
  "year": {"format": {"name": "numpy"}, "data": ["y0.npy", "y1.npy"]},
  "train_mask": {"format": {"name": "numpy"}, "data": ["m0.npy", "m1.npy"]},
  "label": {"format": {"name": "parquet"}, "data": ["l0.parquet", "l1.parquet"]}},
  "author": {"feat": {"format": {"name": "parquet"}, "data": ["a0.parquet", "a1.parquet"]}}},
 "edge_data": {"paper:by:author": {}}}`,
		"w0.txt": "0 0\n1 0\n2 3\n", "w1.txt": "2 1\n",
		"none": "", "c1.parquet": parquetOf(t, [2]int64{0, 1}, [2]int64{3, 1}),
		"by.npy": npyOf[int64](t, 2, 0, 2, 3, 1),
		"f0.npy": npyOf[float32](t, 2, 1, 2, 3, 4), "f1.npy": npyOf[float32](t, 2, 5, 6, 7, 8),
		"y0.npy": npyOf[int64](t, 0, 1, 2), "y1.npy": npyOf[int64](t, 0, 3, 4),
		"m0.npy": npyOf(t, 0, true, false), "m1.npy": npyOf(t, 0, true, false),
		"l0.parquet": labelled(t, 5, 6), "l1.parquet": labelled(t, 6, 5),
		"a0.parquet": parquetOf(t, [2]int64{1, 2}, [2]int64{3, 4}), "a1.parquet": parquetOf(t, [2]int64{5, 6}),
	}
}

// labelled has one column, 0.
func labelled(t *testing.T, values ...int64) string {
	t.Helper()
	type one struct {
		A int64 `parquet:"0"`
	}
	var b bytes.Buffer
	var all []one
	for _, v := range values {
		all = append(all, one{v})
	}
	if err := parquet.Write(&b, all); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestChunkedGraphOfDGL(t *testing.T) {
	d := imported(t, folder(t, chunked(t)), "", nil)
	s := d.Meta.Schema
	if d.Meta.Name != "mag" || s.Types[0].Count != 3 || s.Types[1].Count != 4 || d.Graph.Edges() != 8 || d.HasIDs() {
		t.Fatalf("%+v", d.Meta)
	}
	var rows []string
	for v := range uint32(7) {
		rows = append(rows, fmt.Sprint(d.Graph.Neighbors(v)))
	}
	if got := strings.Join(rows, " "); got != "[] [6] [3] [0 1] [2 3 6] [] [2]" {
		t.Error(got)
	}
	if f := d.TypeFeatures[1]; !slices.Equal(f.F32, []float32{1, 2, 3, 4, 5, 6, 7, 8}) || f.Cols != 2 {
		t.Error(f)
	}
	if f := d.TypeFeatures[0]; !slices.Equal(f.F32, []float32{1, 2, 3, 4, 5, 6}) || f.Cols != 2 {
		t.Error(f)
	}
	labels, splits := d.TypeLabels(1)
	if !slices.Equal(labels.Class, []int32{5, 6, 6, 5}) || !slices.Equal(splits.Train, []uint32{3, 5}) {
		t.Error(labels, splits)
	}
	if notes := strings.Join(d.Meta.Notes, "\n"); !strings.Contains(notes, "data year of paper is left out: feat has the features") ||
		!strings.Contains(notes, "data of edges is left out: paper:by:author") {
		t.Error(notes)
	}
}

// TestChunkedGraphWithoutTypes: one type and one relation, sizes by type.
func TestChunkedGraphWithoutTypes(t *testing.T) {
	d := imported(t, folder(t, map[string]string{
		"metadata.json": `{"graph_name": "one", "node_type": ["n"], "num_nodes_per_type": [4], "edge_type": ["n:e:n"],
 "num_edges_per_type": [3], "edges": {"n:e:n": {"format": {"name": "csv", "delimiter": ","}, "data": ["e0", "e1"]}}}`,
		"e0": "0,1\n0,1\n", "e1": "3,2\n",
	}), "", nil)
	if d.Typed() || d.Graph.Nodes() != 4 || d.Graph.Edges() != 3 || fmt.Sprint(d.Graph.Neighbors(1)) != "[0 0]" {
		t.Error(d.Meta, d.Graph)
	}
}

func TestMistakesInFilesOfDGL(t *testing.T) {
	csv := func(name, old, with string) map[string]string {
		return map[string]string{name: strings.Replace(csvDataset[name], old, with, 1)}
	}
	chunk := func(old, with string) map[string]string {
		return map[string]string{"metadata.json": strings.Replace(chunked(t)["metadata.json"], old, with, 1)}
	}
	for name, c := range map[string]struct {
		base, files map[string]string
		says        string
	}{
		"a missing file":      {csvDataset, csv("meta.yaml", "cites.csv", "cite.csv"), "cite.csv: found no such file"},
		"several graphs":      {csvDataset, csv("papers.csv", "2002,0", "2002,1"), `line 4, column graph_id: found graph "1" after graph "0"`},
		"data of graphs":      {csvDataset, csv("meta.yaml", "version", "graph_data: {file_name: g.csv}\nversion"), "found data of several graphs"},
		"no ids":              {csvDataset, csv("authors.csv", "name", "nom"), `"name", which is no column of`},
		"no sources":          {csvDataset, csv("writes.csv", "src_id", "source"), "found no column src_id in"},
		"another version":     {csvDataset, csv("meta.yaml", "1.0.0", "2.0.0"), "version: found 2.0.0, want 1.0.0"},
		"an unknown field":    {csvDataset, csv("meta.yaml", "ntype: paper", "type: paper"), "an unknown field"},
		"two masks":           {csvDataset, csv("papers.csv", "False,True,False", "True,True,False"), "column val_mask: found a vertex that the mask of train has too"},
		"a mask of words":     {csvDataset, csv("papers.csv", "False,True,False", "no,True,False"), `found "no", want 0 or 1`},
		"an unknown id":       {csvDataset, csv("cites.csv", "30,30", "30,31"), `line 4, column to: found "31"`},
		"a missing chunk":     {chunked(t), chunk("w1.txt", "w2.txt"), "w2.txt: found no such file"},
		"rows of npy":         {chunked(t), chunk("[2, 2]]", "[3, 1]]"), "f0.npy: found 2 rows, want 3, as metadata.json says"},
		"rows of CSV":         {chunked(t), chunk("[[3, 1]", "[[2, 2]"), "w0.txt: found 3 rows, want 2, as metadata.json says"},
		"chunks without size": {chunked(t), chunk("[[3, 1]", "[[4]"), "found 2 files, want 1, one for each chunk"},
		"an unknown format":   {chunked(t), chunk(`"name": "csv"`, `"name": "hdf5"`), `the format "hdf5"`},
		"a relation of two":   {chunked(t), chunk(`"paper:cites:paper", "paper`, `"cites:paper", "paper`), "want SOURCE:NAME:TARGET"},
		"a relation unlisted": {chunked(t), chunk(`"paper:cites:paper", "paper`, `"paper:cite:paper", "paper`), "paper:cite:paper: found no edges"},
		"data of no type":     {chunked(t), chunk(`"author": {"feat"`, `"auteur": {"feat"`), "data of the type auteur"},
		"sizes of no type":    {chunked(t), chunk(`[[2, 1], [2, 2]]`, `[[2, 1]]`), "want num_nodes_per_chunk"},
		"an id beyond":        {chunked(t), map[string]string{"w1.txt": "3 1\n"}, `w1.txt: line 1, column 1: found "3"`},
		"one column of edges": {chunked(t), map[string]string{"by.npy": npyOf[int64](t, 0, 1, 2)}, "found 1 column in"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, c.base, c.files)
			_, err := load(dir, filepath.Join(dir, "out"), nil)
			var in *graph.InputError
			if !errors.As(err, &in) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s", err, c.says)
			}
			if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
				t.Error("something was written")
			}
		})
	}
}
