package schema

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"

	"starling/graph"
)

// library are three tables, and the schema of a graph.
var library = map[string]string{
	"papers.csv": "pid,year,city,venue,part,title\n" +
		"p1,2000,Oslo,KDD,train,\"A \"\"first\"\" one\"\n" +
		"p2,2004,Rome,VLDB,train,\"Two, with a comma\"\n" +
		"p3,,Oslo,KDD,val,Three\n" +
		"p4,2010,,VLDB,test,Four\n" +
		"p5,2010,Rome,,train,Five\n",
	"authors.tsv": "aid\tname\n1\tAda\n7\tBob\n3\tCleo\n",
	"writes.csv":  "aid,pid,order\n1,p1,1\n7,p1,2\n3,p2,1\n3,p3,1\n1,p5,1\n",
	"mag.yaml": `nodes:
  paper:
    files: papers.csv
    id: pid
    missing: mean
    features: [{col: year, standardize: true}, {col: city, one_hot: true}]
    label: venue
    split: part
  author: {files: authors.tsv, id: aid}
edges:
  - {type: [author, writes, paper], files: writes.csv, src: aid, dst: pid, reverse: written_by}
`,
}

// folder writes files, and then those that change.
func folder(t *testing.T, files ...map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, set := range files {
		for name, text := range set {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// load imports a schema and opens the dataset.
func load(path, out string, change func(*Schema)) (*graph.Dataset, error) {
	s, err := Read(path)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(s)
	}
	p, err := s.Plan()
	if err != nil {
		return nil, err
	}
	p.Lines()
	if _, err := p.Import(Options{Seed: 1}, out); err != nil {
		return nil, err
	}
	return graph.OpenWith(out, graph.OpenOptions{Verify: true})
}

func imported(t *testing.T, dir, name string, change func(*Schema)) *graph.Dataset {
	t.Helper()
	d, err := load(filepath.Join(dir, name), filepath.Join(dir, "out"), change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestThreeTablesBecomeATypedGraph(t *testing.T) {
	d := imported(t, folder(t, library), "mag.yaml", nil)
	s := d.Meta.Schema
	paper, author := s.Type("paper"), s.Type("author")
	if s.Types[paper].Count != 5 || s.Types[author].Count != 3 || len(s.Relations) != 2 || s.Relations[0].Edges != 5 {
		t.Fatalf("%+v", s)
	}
	labels, splits := d.TypeLabels(paper)
	if !slices.Equal(labels.Class, []int32{0, 1, 0, 1, -1}) || !slices.Equal(labels.Names, []string{"KDD", "VLDB"}) {
		t.Error(labels)
	}
	if !slices.Equal(splits.Train, []uint32{0, 1}) || !slices.Equal(splits.Val, []uint32{2}) || !slices.Equal(splits.Test, []uint32{3}) {
		t.Error(splits)
	}
	f := d.TypeFeatures[paper]
	want := []float32{-1, 1, 0, 1, 0, 1, 0, 1, 0, 4, 0, 0, 4, 0, 1} // year over the training papers, Oslo, Rome
	if f.Cols != 3 || !slices.Equal(f.F32, want) || d.TypeFeatures[author] != nil {
		t.Error(f.F32)
	}
	if got := s.Types[paper].Features.Columns; !slices.Equal(got, []string{"year", "city=Oslo", "city=Rome"}) {
		t.Error(got)
	}
	if scale := s.Types[paper].Features.Scale; scale.Mean[0] != 2002 || scale.Deviation[0] != 2 || scale.Deviation[1] != 1 {
		t.Error(scale)
	}
	var edges []string
	for v := range uint32(d.Graph.Nodes()) {
		for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
			edges = append(edges, d.ID(d.Graph.Indices[e])+" "+s.Relations[d.Graph.Relations[e]].Name+" "+d.ID(v))
		}
	}
	slices.Sort(edges)
	if got := strings.Join(edges, ", "); got != "1 writes p1, 1 writes p5, 3 writes p2, 3 writes p3, 7 writes p1, "+
		"p1 written_by 1, p1 written_by 7, p2 written_by 3, p3 written_by 3, p5 written_by 1" {
		t.Error(got)
	}
	if notes := strings.Join(d.Meta.Notes, "; "); !strings.Contains(notes, "filled in: 1") || !strings.Contains(notes, "left out: 1") {
		t.Error(notes)
	}
}

func TestCheckTellsTheFateOfEveryColumn(t *testing.T) {
	s, err := Read(filepath.Join(folder(t, library), "mag.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(p.Lines(), "\n")
	for _, want := range []string{"papers.csv, 5 rows", "year   whole numbers  1 feature (standardized), missing: mean",
		"city   text           features, one per word (0 or 1)\n", "title  text           dropped: the schema does not name it",
		"aid    whole numbers  source, an id of author", "and reversed: paper written_by author",
		"no features: a row per vertex is learnt"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestBadSchemasAreRefusedInOneSentence changes one thing each, and nothing is written.
func TestBadSchemasAreRefusedInOneSentence(t *testing.T) {
	change := func(file, old, new string) map[string]string {
		return map[string]string{file: strings.Replace(library[file], old, new, 1)}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"unknown type":   {change("mag.yaml", "writes, paper]", "writes, papr]"), []string{"mag.yaml: line 11: edges[0].type", `"papr"`, "did you mean paper?"}},
		"unknown column": {change("mag.yaml", "src: aid", "src: autor"), []string{"edges[0].src", `"autor", which is no column of`, "writes.csv", "aid, pid, order"}},
		"label column":   {change("mag.yaml", "label: venue", "label: venu"), []string{"line 7: nodes.paper.label", "did you mean venue?"}},
		"id twice": {change("authors.tsv", "7\tBob", "1\tBob"), []string{"authors.tsv: line 3, column aid", `"1" a second time, first in row 0`,
			"remove one of the rows"}},
		"edge to nowhere": {change("writes.csv", "7,p1", "8,p1"), []string{"writes.csv: line 3, column aid: found \"8\"", "id of type author", "authors.tsv",
			"add the vertex there, or remove the edge"}},
		"edge without end": {change("writes.csv", "7,p1", "7,"), []string{"writes.csv: line 3, column pid: found no id"}},
		"two types":        {change("mag.yaml", "  author:", "  paper:"), []string{"line 9: nodes.paper", "a second time"}},
		"two types in two files": {map[string]string{"mag.yaml": "include: other.yaml\n" + library["mag.yaml"],
			"other.yaml": "nodes:\n  author: {files: authors.tsv, id: aid}\n"}, []string{`a second type called "author"`, "rename one"}},
		"cycle": {map[string]string{"mag.yaml": "include: a.yaml\n" + library["mag.yaml"], "a.yaml": "include: b.yaml\n", "b.yaml": "include: [mag.yaml]\n"},
			[]string{"b.yaml: include", "mag.yaml → a.yaml → b.yaml → mag.yaml", "remove one"}},
		"unknown field":      {change("mag.yaml", "label:", "lable:"), []string{"line 7: nodes.paper.lable", "unknown field", "did you mean label?"}},
		"empty file":         {map[string]string{"papers.csv": ""}, []string{"papers.csv: found an empty file"}},
		"only a header":      {map[string]string{"writes.csv": "aid,pid\n"}, []string{"writes.csv: found no rows", "author writes paper"}},
		"no vertices":        {map[string]string{"authors.tsv": "aid\tname\n"}, []string{"authors.tsv: found no rows", "type author"}},
		"no such file":       {change("mag.yaml", "papers.csv", "paper.csv"), []string{"paper.csv: found no such file", "relative to its file"}},
		"text as feature":    {change("mag.yaml", "{col: city, one_hot: true}", "city"), []string{"features[1]", "a column of text", "one_hot: true"}},
		"missing value":      {change("mag.yaml", "    missing: mean\n", ""), []string{"papers.csv: line 4, column year", "a missing value", "missing: mean"}},
		"bad split":          {change("papers.csv", "KDD,val", "KDD,dev2"), []string{"nodes.paper.split", `"dev2"`, "train, val or test"}},
		"relation twice":     {change("mag.yaml", "reverse: written_by}", "reverse: written_by}\n  - {type: [author, writes, paper], files: writes.csv, src: aid, dst: pid}"), []string{"author writes paper a second time"}},
		"no id":              {change("papers.csv", "p2,2004", ",2004"), []string{"papers.csv: line 3, column pid: found no id"}},
		"an alias":           {change("mag.yaml", "files: papers.csv", "files: *.csv"), []string{"mag.yaml"}},
		"no edges":           {map[string]string{"mag.yaml": "nodes: {a: {files: authors.tsv, id: aid}}\n"}, []string{"edges: found no relation"}},
		"nothing":            {map[string]string{"mag.yaml": ""}, []string{"mag.yaml", "nodes and edges"}},
		"split, no label":    {change("mag.yaml", "    label: venue\n", ""), []string{"nodes.paper.split", "without a label"}},
		"other rows":         {change("mag.yaml", "{col: year, standardize: true}", "{files: authors.tsv, col: aid}"), []string{"authors.tsv: found 3 rows, want one per vertex of type paper, 5"}},
		"shares above 1":     {change("mag.yaml", "split: part", "split: {train: 0.9, val: 0.9}"), []string{"nodes.paper.split", "no more than 1"}},
		"unknown missing":    {change("mag.yaml", "missing: mean", "missing: median"), []string{"nodes.paper.missing", "error, zero, mean"}},
		"ragged":             {change("writes.csv", "3,p2,1", "3,p2"), []string{"writes.csv: line 4", "number of fields"}},
		"unknown relation":   {change("mag.yaml", "reverse:", "revers:"), []string{"edges[0].revers", "did you mean reverse?"}},
		"one word of a list": {change("mag.yaml", "[author, writes, paper]", "[author, paper]"), []string{"edges[0]", "[source type, name, target type]"}},
	} {
		dir := folder(t, library, c.files)
		out := filepath.Join(dir, "out")
		d, err := load(filepath.Join(dir, "mag.yaml"), out, nil)
		if err == nil {
			d.Close()
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %v", name, want, err)
			}
		}
		if !errors.Is(err, graph.ErrInput) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*out*")); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

func TestNamesOfAllKindsWork(t *testing.T) {
	d := imported(t, folder(t, library, map[string]string{"mag.yaml": `nodes:
  "a paper <= 2010": {files: papers.csv, id: pid}
  co-author: {files: authors.tsv, id: aid}
edges:
  - {type: [co-author, "writes <=", "a paper <= 2010"], files: writes.csv, src: aid, dst: pid, reverse: "is: by"}
`}), "mag.yaml", nil)
	if got := d.Meta.Schema.RelationName(0) + ", " + d.Meta.Schema.RelationName(1); got !=
		"co-author writes <= a paper <= 2010, a paper <= 2010 is: by co-author" {
		t.Error(got)
	}
}

// TestIncludesAreRelative divides the schema over two folders.
func TestIncludesAreRelative(t *testing.T) {
	d := imported(t, folder(t, library, map[string]string{
		"mag.yaml":       "include: [people/a.yaml]\nname: whole\nnodes: {paper: {files: papers.csv, id: pid}}\nedges:\n  - {type: [author, writes, paper], files: writes.csv, src: aid, dst: pid}\n",
		"people/a.yaml":  "nodes: {author: {files: a*.tsv, id: aid}}\n",
		"people/a2.tsv":  "aid\n1\n7\n",
		"people/a10.tsv": "aid\n3\n",
	}), "mag.yaml", func(s *Schema) { s.Symmetrize() })
	s := d.Meta.Schema
	if d.Meta.Name != "whole" || s.Types[0].Name != "author" || d.ID(2) != "3" || s.Relations[0].Name != "rev_writes" || s.Relations[0].Reverse != "writes" {
		t.Errorf("%+v %s", s, d.ID(2))
	}
}

// TestGraphStormsConfigIsRead imports what GraphStorm's users have.
func TestGraphStormsConfigIsRead(t *testing.T) {
	dir := folder(t, library, map[string]string{"gs.json": `{"version": "gconstruct-v0.1",
	"nodes": [
		{"node_type": "paper", "format": {"name": "csv", "separator": ","}, "files": ["papers.csv"], "node_id_col": "pid",
		 "features": [{"feature_col": "city", "feature_name": "c", "transform": {"name": "to_categorical"}}],
		 "labels": [{"label_col": "venue", "task_type": "classification", "split_pct": [0.5, 0.25, 0.25]}]},
		{"node_type": "paper", "files": "scores.csv", "features": [{"feature_col": "score", "transform": {"name": "max_min_norm"}}]},
		{"node_type": "author", "format": {"name": "csv"}, "files": "authors.tsv", "node_id_col": "aid"}],
	"edges": [
		{"relation": ["author", "writes", "paper"], "files": "writes.csv", "source_id_col": "aid", "dest_id_col": "pid",
		 "features": [{"feature_col": "order"}], "labels": [{"task_type": "link_prediction", "split_pct": [0.8, 0.1, 0.1]}]}]}`,
		"scores.csv": "score\n1\n2\n3\n4\n5\n"})
	d := imported(t, dir, "gs.json", nil)
	labels, splits := d.TypeLabels(0)
	if f := d.TypeFeatures[0]; f.Cols != 3 || len(splits.Train) != 2 || len(splits.Val) != 1 || labels.Names[1] != "VLDB" || f.F32[0] != 1 {
		t.Error(f, splits, labels)
	}
	if notes := strings.Join(d.Meta.Notes, "; "); !strings.Contains(notes, "standardized instead") || !strings.Contains(notes, "features of author writes paper are left out") {
		t.Error(notes)
	}
	os.WriteFile(filepath.Join(dir, "gs.json"), []byte(strings.Replace(readAll(t, filepath.Join(dir, "gs.json")), "to_categorical", "tokenize_hf", 1)), 0o644)
	if _, err := Read(filepath.Join(dir, "gs.json")); err == nil || !strings.Contains(err.Error(), `transform "tokenize_hf"`) || !strings.Contains(err.Error(), "line 4") {
		t.Error(err)
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// packed writes files as OGB does.
func packed(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name+".gz")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		z.Write([]byte(text))
		if err := errors.Join(z.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOGBsTypesAreRead imports a folder laid out as ogbn-mag.
func TestOGBsTypesAreRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ogbn_mag")
	packed(t, dir, map[string]string{
		"raw/num-node-dict.csv":     "author,institution,paper\n3,1,4\n",
		"raw/triplet-type-list.csv": "author,affiliated_with,institution\nauthor,writes,paper\npaper,cites,paper\n",
		"raw/relations/author___affiliated_with___institution/edge.csv":    "0,0\n2,0\n",
		"raw/relations/author___writes___paper/edge.csv":                   "0,0\n1,1\n2,3\n",
		"raw/relations/paper___cites___paper/edge.csv":                     "0,1\n",
		"raw/node-feat/paper/node-feat.csv":                                "0.5,1\n1.5,2\n2.5,3\n3.5,4\n",
		"raw/node-label/paper/node-label.csv":                              "2\n0\n1\n2\n",
		"split/time/paper/train.csv":                                       "0\n2\n",
		"split/time/paper/valid.csv":                                       "1\n",
		"split/time/paper/test.csv":                                        "3\n",
		"raw/relations/author___affiliated_with___institution/num-edge-li": "2\n",
	})
	d, err := load(dir, filepath.Join(dir, "out"), func(s *Schema) { s.Symmetrize() })
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := d.Meta.Schema
	paper := s.Type("paper")
	labels, splits := d.TypeLabels(paper)
	if d.Meta.Name != "ogbn-mag" || len(s.Relations) != 6 || d.Meta.Edges != 12 || d.TypeFeatures[paper].Cols != 2 || d.TypeFeatures[paper].F32[7] != 4 ||
		labels.Classes != 3 || !slices.Equal(splits.Train, []uint32{4, 6}) || d.HasIDs() {
		t.Errorf("%+v %v %v", s, labels, splits)
	}
}

// TestTablesMixFormats takes ids from Parquet, features from npy and edges from text.
func TestTablesMixFormats(t *testing.T) {
	dir := folder(t, map[string]string{"buys.csv": "user;item\n70;b\n80;a\n80;b\n", "s.yaml": `nodes:
  user: {files: users.parquet, id: id, features: [{files: emb.npy}], label: {col: spend, task: regression}, split: {train: 0.5, test: 0.5}}
  item: {files: items.csv, id: name}
edges: [{type: [user, buys, item], files: buys.csv, src: user, dst: item}]
`, "items.csv": "name\na\nb\n"})
	type user struct {
		ID    int32   `parquet:"id"`
		Spend float64 `parquet:"spend"`
	}
	if err := parquet.WriteFile(filepath.Join(dir, "users.parquet"), []user{{80, 1.5}, {70, 2}}); err != nil {
		t.Fatal(err)
	}
	head := "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	var data []byte
	for _, x := range []float32{1, 2, 3, 4} {
		bits := math.Float32bits(x)
		data = append(data, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	os.WriteFile(filepath.Join(dir, "emb.npy"), []byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(head)), 0})+head+string(data)), 0o644)
	d := imported(t, dir, "s.yaml", nil)
	labels, splits := d.TypeLabels(0)
	if !slices.Equal(d.TypeFeatures[0].F32, []float32{1, 2, 3, 4}) || !slices.Equal(labels.Values, []float32{1.5, 2}) || len(splits.Train) != 1 {
		t.Error(d.TypeFeatures[0], labels, splits)
	}
	if got := fmt.Sprint(d.ID(0), d.ID(1), d.Graph.Neighbors(2), d.Graph.Neighbors(3)); got != "80 70[0] [0 1]" && got != "8070[0] [0 1]" {
		t.Error(got)
	}
}

func TestIDsAreFound(t *testing.T) {
	x := newIDs()
	for i := range 1000 { // plain, then numbers, then text
		for k, s := range []string{fmt.Sprint(i), fmt.Sprint(-5 * (i + 1)), fmt.Sprintf("%04dx", i)} {
			if k == 0 {
				if _, fresh := x.addText(s); !fresh {
					t.Fatal(s)
				}
			}
		}
	}
	if !x.plain {
		t.Fatal("0 to 999 take memory")
	}
	for i := range 1000 {
		x.addNumber(int64(-5 * (i + 1)))
	}
	if x.plain || x.text {
		t.Fatal("numbers")
	}
	for i := range 1000 {
		x.addText(fmt.Sprintf("%04dx", i))
	}
	for i := range 1000 {
		for want, s := range map[int]string{i: fmt.Sprint(i), 1000 + i: fmt.Sprint(-5 * (i + 1)), 2000 + i: fmt.Sprintf("%04dx", i)} {
			if v, ok := x.findText(s); !ok || int(v) != want {
				t.Fatal(s, v, ok)
			}
		}
	}
	if v, ok := x.findNumber(-5); !ok || v != 1000 {
		t.Error(v, ok)
	}
	for _, s := range []string{"007", "-0", "1001", ""} {
		if _, ok := x.findText(s); ok {
			t.Error(s)
		}
	}
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte(library["mag.yaml"]))
	f.Add([]byte(`{"nodes": [{"node_type": "a"}], "edges": []}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "s.yaml")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		if s, err := Read(path); err == nil {
			s.Plan()
		}
	})
}
