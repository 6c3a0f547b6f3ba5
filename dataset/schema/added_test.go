package schema

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// arrivals are vertices and edges that library gets: two papers, of which the first has an author who is known and one
// who is new.
var arrivals = map[string]string{
	"papers2.csv":  "pid,year,city,venue\np7,2006,Rome,KDD\np6,,Lima,\n",
	"authors2.csv": "aid\n9\n",
	"writes2.csv":  "aid,pid\n7,p7\n9,p7\n9,p1\n3,p6\n",
	"new.yaml": `nodes:
  author: {files: authors2.csv, id: aid}
  paper: {files: papers2.csv, id: pid, features: [year, city], label: venue}
edges:
  - {type: [author, writes, paper], files: writes2.csv, src: aid, dst: pid}
`,
}

func loadAdded(dir string, known *graph.Dataset) (*graph.Dataset, []graph.AddedEdge, error) {
	s, err := ReadAdded(filepath.Join(dir, "new.yaml"), known.Meta.Schema)
	if err != nil {
		return nil, nil, err
	}
	s.Like = known.Meta.Preparation
	p, err := s.Plan()
	if err != nil {
		return nil, nil, err
	}
	_, edges, err := p.ImportAdded(Options{Name: "new"}, known, filepath.Join(dir, "added"))
	if err != nil {
		return nil, nil, err
	}
	d, err := graph.Open(filepath.Join(dir, "added"))
	return d, edges, err
}

// TestAddedVerticesAndEdges: they are prepared as the graph was, and the graph that has grown is, but for the order of
// rows, that of all tables.
func TestAddedVerticesAndEdges(t *testing.T) {
	dir := folder(t, library, arrivals)
	known := imported(t, dir, "mag.yaml", nil)
	added, edges, err := loadAdded(dir, known)
	if err != nil {
		t.Fatal(err)
	}
	defer added.Close()
	if got := []string{added.ID(0), added.ID(1), added.ID(2)}; !slices.Equal(got, []string{"9", "p7", "p6"}) {
		t.Error(got)
	}
	if f := added.TypeFeatures[1]; !slices.Equal(f.F32, []float32{2, 0, 1, 0, 0, 0}) {
		t.Error(f.F32) // year over the training papers, Oslo, Rome
	}
	labels, splits := added.TypeLabels(1)
	if !slices.Equal(labels.Class, []int32{0, -1}) || len(splits.Train) != 0 {
		t.Error(labels, splits)
	}
	n := graph.Grow(known, added, edges).Around(1, 10) // p7, p6, their authors, and what these wrote
	want := map[string]string{"author": "1 7 3 9", "paper": "p1 p2 p3 p5 p7 p6"}
	for k, typ := range n.Schema.Types {
		var ids []string
		for _, v := range n.Base[k] {
			ids = append(ids, known.OfType(k).ID(v))
		}
		for _, v := range n.Added[k] {
			ids = append(ids, added.OfType(added.Meta.Schema.Type(typ.Name)).ID(v))
		}
		if got := strings.Join(ids, " "); got != want[typ.Name] || int(typ.Count) != len(ids) {
			t.Errorf("%s: %s, want %s", typ.Name, got, want[typ.Name])
		}
	}
	if err := n.Graph.CheckRelations(n.Schema); err != nil || n.Graph.Edges() != 18 || n.Schema.Relations[1].Edges != 9 {
		t.Error(n.Graph, err)
	}
}

func TestAddedRowsAreNumberedOn(t *testing.T) {
	dir := folder(t, library, arrivals, map[string]string{
		"mag.yaml": `nodes: {paper: {files: papers.csv, features: year, missing: mean}, author: {count: 3}}
edges: [{type: [author, writes, paper], files: by.csv, src: a, dst: p}]
`,
		"by.csv": "a,p\n0,0\n2,4\n",
		"new.yaml": `nodes: {paper: {files: papers2.csv, features: year}}
edges: [{type: [author, writes, paper], files: by2.csv, src: a, dst: p}]
`,
		"by2.csv": "a,p\n2,6\n0,5\n",
	})
	known := imported(t, dir, "mag.yaml", nil)
	added, edges, err := loadAdded(dir, known)
	if err != nil {
		t.Fatal(err)
	}
	defer added.Close()
	if added.ID(0) != "5" || added.ID(1) != "6" || !slices.Equal(edges, []graph.AddedEdge{{Source: 7, Target: 9},
		{Source: 5, Target: 8}}) {
		t.Error(added.ID(0), edges)
	}
}

func TestAddedMistakesAreNamed(t *testing.T) {
	known := imported(t, folder(t, library), "mag.yaml", nil)
	yaml := func(old, with string) map[string]string {
		return map[string]string{"new.yaml": strings.Replace(arrivals["new.yaml"], old, with, 1)}
	}
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"a type that the graph has not":     {yaml("author: {", "person: {"), `"person", which is no type of`},
		"a relation that the graph has not": {yaml("writes, paper", "wrote, paper"), `"author wrote paper", which is no relation of`},
		"a type in a relation":              {yaml("[author", "[person"), `"person", which is no type of vertices`},
		"another reverse":                   {yaml("dst: pid}", "dst: pid, reverse: by}"), `"by", which is not the reverse of writes`},
		"a feature less, which is text":     {yaml(", city", ", town"), `"town", which is no column`},
		"no ids":                            {yaml("papers2.csv, id: pid", "papers2.csv"), "no column of ids"},
		"a known id":                        {map[string]string{"authors2.csv": "aid\n7\n"}, `line 2, column aid: found "7", which the graph has`},
		"an unknown id": {map[string]string{"writes2.csv": "aid,pid\n8,p7\n"},
			`line 2, column aid: found "8", want an id of type author in`},
		"two known ends": {map[string]string{"writes2.csv": "aid,pid\n7,p7\n7,p5\n"},
			"line 3: found an edge between two vertices that the graph has"},
		"both directions": {yaml("edges:\n", "edges:\n  - {type: [paper, written_by, author], files: writes2.csv, src: pid, dst: aid}\n"),
			"the reverse of a relation that is listed too"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, arrivals, c.files)
			_, _, err := loadAdded(dir, known)
			var in *graph.InputError
			if !errors.As(err, &in) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s", err, c.says)
			}
			if _, err := os.Stat(filepath.Join(dir, "added")); err == nil {
				t.Error("something was written")
			}
		})
	}
}
