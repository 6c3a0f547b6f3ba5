package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// payments are two tables of a graph without types, the same as YAML, and tables that come later.
var payments = map[string]string{
	"edges.csv": "tx,from_user,to_user,amount,kind,when\n1,ann,bob,10.5,card,2024-03-01\n2,bob,cleo,7,cash,2024-03-02\n" +
		"3,bob,cleo,9,card,2024-03-04\n4,dan,eve,1,,2024-03-05\n5,eve,ann,2,card,2024-03-09\n",
	"users.csv": "user,name,age,city,fraud,part\nann,\"A, n\",34,Oslo,no,train\nbob,B,NA,Rome,yes,train\ncleo,C,51,,no,val\n" +
		"dan,D,29,Lima,yes,test\neve,E,45,Rome,NA,train\n",
	"pay.yaml": `vertices: {files: users.csv, id: user, label: fraud, split: part, missing: mean,
  features: [{col: age, standardize: true}, {col: city, one_hot: true}]}
edges: {files: edges.csv, src: from_user, dst: to_user, weight: amount, time: when, repeats: keep, missing: mean,
  features: [{col: amount, standardize: true}, {col: kind, one_hot: true}]}
`,
	"later.csv":       "city,user,age,fraud\nRome,eve,45,yes\nParis,fay,,perhaps\nOslo,ann,34,no\n",
	"later-edges.csv": "from_user,to_user,amount,kind,when\nann,fay,10.5,cheque,2024-03-01\nfay,eve,9,card,2025-01-01\n",
}

func paymentColumns() Columns {
	return Columns{Edges: "edges.csv", Vertices: "users.csv", Src: "from_user", Dst: "to_user", Weight: "amount", Time: "when",
		EdgeFeatures: []string{"amount", "kind"}, ID: "user", Label: "fraud", Features: []string{"age", "city"},
		Drop: []string{"name"}, OneHot: []string{"city"}, Split: "part", Standardize: true}
}

// TestFlagsAndYAMLAreTheSame: to the byte.
func TestFlagsAndYAMLAreTheSame(t *testing.T) {
	one, two := folder(t, payments), folder(t, payments)
	d, err := importColumns(one, paymentColumns())
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	imported(t, two, "pay.yaml", nil)
	files, err := filepath.Glob(filepath.Join(one, "out", "*.npy"))
	if err != nil || len(files) < 9 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		a, b := readAll(t, path), readAll(t, filepath.Join(two, "out", filepath.Base(path)))
		if !bytes.Equal([]byte(a), []byte(b)) {
			t.Errorf("%s differs", filepath.Base(path))
		}
	}
}

// TestRepeatedEdgesWithAll: what several edges have becomes one, missing values apart, and the latest time.
func TestRepeatedEdgesWithAll(t *testing.T) {
	is := paymentColumns()
	is.Repeats, is.Standardize = "sum", false
	d, err := importColumns(folder(t, payments), is)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	at := d.Graph.Indptr[2] // cleo, whose only neighbour is bob, twice
	row := d.Graph.EdgeFeatures[at*3 : at*3+3]
	if d.Graph.Edges() != 4 || d.Graph.Degree(2) != 1 || d.Graph.Weights[at] != 16 || !slices.Equal(row, []float32{16, 1, 1}) ||
		d.Meta.TimeText(d.Graph.EdgeTimes[at]) != "2024-03-04" {
		t.Error(d.Graph, row)
	}
}

// TestLaterTablesAreAsTheFirst: by the words, means, scales and classes of the first, whatever they have themselves.
func TestLaterTablesAreAsTheFirst(t *testing.T) {
	dir := folder(t, payments)
	first, err := importColumns(dir, paymentColumns())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	p, err := graph.ReadPreparation(filepath.Join(dir, "out"))
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	if got := strings.Join(p.Types[0].Dropped, " ") + "; " + strings.Join(p.Edges.Dropped, " "); got != "name; tx" {
		t.Error(got)
	}
	other := folder(t, payments)
	later, err := importColumns(other, Columns{Edges: "later-edges.csv", Vertices: "later.csv", Like: p})
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	row := func(d *graph.Dataset, v int) []float32 {
		return d.Features.F32[v*d.Features.Cols : (v+1)*d.Features.Cols]
	}
	fay := row(later, 1)
	if !slices.Equal(row(later, 0), row(first, 4)) || !slices.Equal(row(later, 2), row(first, 0)) ||
		!slices.Equal(fay, []float32{0, 0, 0, 0}) || !slices.Equal(later.Labels.Class, []int32{1, -1, 0}) ||
		!slices.Equal(later.Labels.Names, []string{"no", "yes"}) {
		t.Errorf("%v after %v, %v", later.Features.F32, first.Features.F32, later.Labels)
	}
	bob, eve := first.Graph.Indptr[1], later.Graph.Indptr[0]
	if later.Graph.EdgeFeatures[3] != first.Graph.EdgeFeatures[bob*3] || later.Graph.EdgeFeatures[4] != 0 || later.Graph.EdgeFeatures[5] != 0 {
		t.Errorf("%v after %v at %d, %d", later.Graph.EdgeFeatures, first.Graph.EdgeFeatures, bob, eve)
	}
	again, err := graph.ReadPreparation(filepath.Join(other, "out"))
	if err != nil {
		t.Fatal(err)
	}
	again.Types[0].Dropped, p.Types[0].Dropped, again.Edges.Dropped, p.Edges.Dropped, again.Types[0].Split = nil, nil, nil, nil, "part"
	if one, two := sealed(t, p), sealed(t, again); one != two {
		t.Errorf("%s\nis not\n%s", two, one)
	}
	for text, want := range map[string]string{"user,age\nfay,3\n": "city", "user,age,city\nfay,\"1 2\",Oslo\n": "age"} {
		os.WriteFile(filepath.Join(dir, "later.csv"), []byte(text), 0o644)
		if _, err := importColumns(dir, Columns{Edges: "later-edges.csv", Vertices: "later.csv", Like: p}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func sealed(t *testing.T, p *graph.Preparation) string {
	t.Helper()
	b, err := graph.SealJSON(p, &p.CRC32C)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTypesHaveTheirPreparation, and later tables of types follow it.
func TestTypesHaveTheirPreparation(t *testing.T) {
	dir := folder(t, library)
	first := imported(t, dir, "mag.yaml", nil)
	p := first.Meta.Preparation
	if p == nil || len(p.Types) != 2 || p.Type("paper").Width() != 3 || p.Type("paper").Label.Classes[0] != "KDD" || p.Type("author").ID != "aid" {
		t.Fatalf("%+v", p)
	}
	later := imported(t, folder(t, library, map[string]string{
		"papers.csv": "pid,year,city,venue,part\np1,2000,Oslo,VLDB,\np2,1990,Paris,ICML,\np3,,Rome,,\np5,2004,Rome,KDD,test\n"}),
		"mag.yaml", func(s *Schema) { s.Like = p })
	a, b := first.TypeFeatures[0].F32, later.TypeFeatures[0].F32
	labels, _ := later.TypeLabels(0)
	if !slices.Equal(a[:3], b[:3]) || b[4] != 0 || b[5] != 0 || b[9] != a[3] || b[11] != 1 || !slices.Equal(labels.Class, []int32{1, -1, -1, 0}) {
		t.Errorf("%v after %v, %v", b, a, labels)
	}
}

// TestDamagedPreparations are refused.
func TestDamagedPreparations(t *testing.T) {
	dir := folder(t, payments)
	d, err := importColumns(dir, paymentColumns())
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	path := filepath.Join(dir, "out", "preparation.json")
	whole := readAll(t, path)
	for _, damaged := range []string{strings.Replace(whole, "Oslo", "Osla", 1), whole[:len(whole)/2]} {
		os.WriteFile(path, []byte(damaged), 0o644)
		if d, err := graph.Open(filepath.Join(dir, "out")); err == nil || !strings.Contains(err.Error(), "preparation.json") {
			d.Close()
			t.Error(err)
		}
	}
}
