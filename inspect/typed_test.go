package inspect

import (
	"context"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/graph"
)

// typedFolder writes a graph of two papers, three authors and a venue, to which nothing leads from the authors.
func typedFolder(t *testing.T) string {
	t.Helper()
	s := &graph.Schema{Types: []graph.VertexType{{Name: "author", First: 0, Count: 3}, {Name: "paper", First: 3,
		Count: 2},
		{Name: "venue", First: 5, Count: 1}},
		Relations: []graph.Relation{{Source: 0, Name: "writes", Target: 1}, {Source: 1, Name: "in", Target: 2}}}
	s.SortRelations()
	g, err := graph.FromTypedEdges(6, []uint32{0, 1, 2, 3}, []uint32{3, 3, 3, 5}, []uint16{0, 0, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	w, err := graph.Create(dir, graph.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	w.Meta.Schema = s
	for _, err := range []error{w.Graph(g), w.Type(1, &graph.Features{Rows: 2, Cols: 1, F32: []float32{1, 2}},
		&graph.Labels{Classes: 2, Class: []int32{1, -1}, Names: []string{"a",
			"b"}}, graph.Splits{Train: []uint32{3}}), w.Commit()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInfoOfTypesIsATable(t *testing.T) {
	i, err := Describe(context.Background(), typedFolder(t), true, true)
	if err != nil {
		t.Fatal(err)
	}
	if r := i.Relations[0]; r.Edges != 3 || r.InDegree != 1.5 || r.Isolated != 1 || i.Types[0].Isolated != 3 ||
		i.Types[1].Train != 1 ||
		i.Types[1].Unlabelled != 1 || i.Types[1].ClassSizes[1] != 1 {
		t.Errorf("%+v %+v", i.Types, i.Relations)
	}
	text := i.String()
	for _, want := range []string{
		"types        type    vertices  no in-edges  features   labels     unlabelled  train  validation  test\n",
		"             author         3            3  none       none\n",
		"             paper          2            1  1 float32  2 classes           1      1           0     0\n",
		"relations    relation             edges  in-degree  targets without  reverse\n",
		"             author writes paper      3       1.50                1\n",
		`type author receives no messages, as no relation leads to it: add reverse: NAME to "author writes paper" in the schema`,
		"no features of author, venue: a row per vertex is learnt, 4 rows",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "splits ") || i.Estimate != nil {
		t.Error(text)
	}
}

// TestPageOfTypes: types, relations, vertices that nothing leads to, warnings, classes and columns are on the page.
func TestPageOfTypes(t *testing.T) {
	dir := typedFolder(t)
	i, err := Describe(context.Background(), dir, true, true)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "page.html")
	if err := i.WriteHTML(dir, out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	page := html.UnescapeString(string(b))
	for _, want := range []string{
		"<td>author</td><td>3</td><td>3</td><td>none</td>",
		"<td>paper</td><td>2</td><td>1</td><td>1 float32</td><td>2 classes</td><td>1</td><td>1</td>",
		"<td>author writes paper</td><td>3</td><td>1.50</td><td>1</td>",
		"<td>paper in venue</td>", "<h2>Classes of paper</h2>", "<td>paper: 0</td>",
		`type author receives no messages, as no relation leads to it: add reverse: NAME to "author writes paper" in the schema`,
		"no features of author, venue: a row per vertex is learnt, 4 rows",
	} {
		if strings.Count(page, want) != 1 {
			t.Errorf("%q is %d times in\n%s", want, strings.Count(page, want), page)
		}
	}
}
