package inspect

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/graph"
)

// suspects is a dataset with a column that is the label, an id, a constant, and an honest one.
func suspects(t *testing.T) string {
	const n = 60
	f := &graph.Features{Rows: n, Cols: 4}
	l := &graph.Labels{Classes: 2, Names: []string{"honest", "fraud"}}
	var src, dst []uint32
	for v := range uint32(n) {
		class := int32(0)
		if v%10 == 3 {
			class = 1
		}
		l.Class = append(l.Class, class)
		f.F32 = append(f.F32, float32(v*37%11), 1.5-float32(class), float32(v*7%n), 4)
		src, dst = append(src, v), append(dst, (v*7+1)%n)
	}
	g, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := &graph.Dataset{Graph: g, Features: f, Labels: l, Meta: graph.Meta{Name: "suspects <b>", Nodes: n,
		Features: &graph.FeatureMeta{Kind: graph.Dense, Dim: 4, Columns: []string{"age", "verdict", "row", "flat"}}}}
	d.Splits.Train = []uint32{0, 3}
	dir := filepath.Join(t.TempDir(), "suspects")
	if err := graph.Save(dir, d, graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPageOfADataset(t *testing.T) {
	dir := suspects(t)
	i, err := Describe(context.Background(), dir, false, false)
	if err != nil {
		t.Fatal(err)
	}
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p := i.page(d)
	found := map[string]string{}
	for _, s := range p.Suspicious {
		found[s.Name] = s.Why
	}
	if len(found) != 3 || !strings.Contains(found["verdict"], "the label") || !strings.Contains(found["row"],
		"an id") ||
		!strings.Contains(found["flat"], "constant") {
		t.Error(found)
	}
	advice := ""
	for _, a := range p.Advice {
		advice += a.What + "; "
	}
	for _, want := range []string{"Leave out suspicious columns", "Do not trust the accuracy",
		"Try import with --symmetrize"} {
		if !strings.Contains(advice, want) {
			t.Errorf("%q is not in %q", want, advice)
		}
	}
	out := filepath.Join(t.TempDir(), "page.html")
	if err := i.WriteHTML(dir, out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(b); !strings.Contains(s, "suspects &lt;b&gt;") || strings.Count(s, "<script") != 1 ||
		strings.Contains(s, "http") || strings.Count(s, "<svg") < 4 || !strings.Contains(s, `class="sortable"`) {
		t.Error(s)
	}
}

// TestRepeatedEdgesAreCounted by their ends, and by relation.
func TestRepeatedEdgesAreCounted(t *testing.T) {
	g := &graph.CSR{Indptr: []int64{0, 4, 6}, Indices: []uint32{1, 0, 1, 1, 0, 0}}
	if n := repeatedEdges(g); n != 3 {
		t.Error(n)
	}
	g.Relations = []uint16{0, 0, 1, 1, 0, 1}
	if n := repeatedEdges(g); n != 1 {
		t.Error(n)
	}
}
