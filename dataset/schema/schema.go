package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"starling/dataset"
	"starling/graph"
)

// Schema is what a file says.
type Schema struct {
	File  string // or folder
	Name  string
	Nodes []Node
	Edges []Edge
	Notes []string
	// Untyped: one type and one relation are a graph without types, whose edges may have weights, times and features.
	Untyped bool
	// Like is the preparation that the tables get; nil: one is made of them.
	Like *graph.Preparation

	known []string // types that relations may be of without being among Nodes
}

// Source is the files of a table and how they are read.
type Source struct {
	Files          []string // patterns
	Format, Header string   // see table.Options, as the following
	Separator      rune
	Columns        bool
	Rows           []int64
	RowsBy         string
}

// Node is a type of vertices.
type Node struct {
	Name     string
	Table    Source // no files: Count vertices without a table
	ID       string // column; "": ids are the numbers of the rows, from 0
	Count    int64
	Features []Feature
	Label    *Label
	Split    *Split
	Time     string // column; only of a graph without types
	Graph    string // column of the graph that a vertex is of, which has one value; "": none
	// Edges: there is no table, and edges name the vertices. Only of a graph without types.
	Edges bool
	why   map[string]string // what becomes of columns that are not used

	at place
}

// Feature is a column that becomes features.
type Feature struct {
	Table       Source // no files: the type's own; else its rows are in the same order
	Col         string // "": the only column
	Standardize bool
	Vague       bool // text becomes words without being called one_hot, if there are not too many
	OneHot      bool
	Missing     string // error, zero or mean; "": error

	at place
}

// Label is the column that is learnt.
type Label struct {
	Table Source // as a feature's
	Col   string
	Task  string // classify, regression or "" to look

	at place
}

// Split is the column of splits, or shares, or files that list the ids of each.
type Split struct {
	Col              string
	Train, Val, Test float64
	Files            [3]string // of ids
	Masks            [3]*Mask  // columns of 0 and 1
	Time             *dataset.TimeSplit

	at place
}

// Mask is a column of 0 and 1, or true and false.
type Mask struct {
	Table Source // as a feature's
	Col   string
}

// Edge is a relation.
type Edge struct {
	Source, Name, Target string
	Table                Source
	Src, Dst             string // columns
	Reverse              string // the name of the relation of reversed edges; "": none
	Graph                string // as of a Node
	Untyped              *UntypedEdge

	at place
}

// UntypedEdge is what edges of a graph without types have beside their ends.
type UntypedEdge struct {
	Weight, Time string // columns; "": none
	Features     []Feature
	Repeats      graph.Repeats // "": see Plan.repeats
	Symmetrize   bool
	SelfLoops    bool // are kept
	Negative     bool // weights below 0 are kept
	why          map[string]string
}

// place is where something of a schema is written.
type place struct{ file, field string }

func (p place) wrong(found, want, fix string) error {
	return &graph.InputError{File: p.file, Field: p.field, Found: found, Want: want, Fix: fix}
}

func (p place) in(field string) place { return place{p.file, p.field + "." + field} }

// Read reads a schema: YAML, GraphStorm's JSON, DGL's files, or a folder of OGB or DGL.
func Read(path string) (*Schema, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, &graph.InputError{File: path, Found: "no such file", Want: "a schema, or a folder of OGB or DGL",
			Fix: "check the path"}
	case info.IsDir() && dglIn(path) == "":
		return readOGB(path)
	case info.IsDir():
		path = dglIn(path)
	}
	s := &Schema{File: path, Name: nameOf(path)}
	if err := s.readFile(path, nil); err != nil {
		return nil, err
	}
	return s, s.check()
}

// ReadAdded reads a schema of vertices and edges that a typed graph gets. Its relations may be of types that only the
// graph has vertices of.
func ReadAdded(path string, known *graph.Schema) (*Schema, error) {
	s := &Schema{File: path, Name: nameOf(path)}
	for i := range known.Types {
		s.known = append(s.known, known.Types[i].Name)
	}
	if err := s.readFile(path, nil); err != nil {
		return nil, err
	}
	return s, s.check()
}

// nameOf is the name of a file without its ending.
func nameOf(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return name
}

// readFile adds what a file says; from are the files that include it.
func (s *Schema) readFile(path string, from []string) error {
	whole, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if i := slices.Index(from, whole); i >= 0 {
		return cycle(append(from[i:], whole))
	}
	t, err := parseFile(path)
	if err != nil {
		return err
	}
	if isDGL(t) {
		return s.dglCSV(t)
	}
	if isChunks(t) {
		return s.dglChunks(t)
	}
	if list := t.get("nodes"); list != nil && list.kind == isList {
		return s.graphStorm(t)
	}
	if isFlat(t) {
		return s.flatYAML(t)
	}
	return s.yaml(t, append(from, whole))
}

func cycle(files []string) error {
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	return &graph.InputError{File: files[len(files)-2], Field: "include", Found: "a cycle, " + strings.Join(names,
		" → "),
		Want: "files that do not include each other", Fix: "remove one of the includes"}
}

// Symmetrize adds the reverse of every relation that has none, called rev_NAME.
func (s *Schema) Symmetrize() {
	for i := range s.Edges {
		if s.Untyped {
			s.Edges[i].Untyped.Symmetrize = true
			continue
		}
		if s.Edges[i].Reverse == "" {
			s.Edges[i].Reverse = "rev_" + s.Edges[i].Name
		}
	}
}

// checkUntyped completes a graph without types: a table of edges, and perhaps one of vertices.
func (s *Schema) checkUntyped() error {
	if len(s.Edges) == 0 {
		return place{s.File, "edges"}.wrong("no edges", "their table", "add edges: {files: …, src: …, dst: …}")
	}
	if len(s.Nodes) == 0 {
		s.Nodes = []Node{{Edges: true, at: s.Edges[0].at}}
	}
	return nil
}

// check refuses types and relations that are there twice, and relations of types that there are not.
func (s *Schema) check() error {
	if s.Untyped {
		return s.checkUntyped()
	}
	if len(s.Nodes) == 0 {
		return place{s.File, "nodes"}.wrong("no type of vertices", "one at least",
			"add nodes: {NAME: {files: …, id: …}}")
	}
	if len(s.Edges) == 0 {
		return place{s.File, "edges"}.wrong("no relation", "one at least",
			"add edges: [{type: [SOURCE, NAME, TARGET], files: …, src: …, dst: …}]")
	}
	names := s.types()
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if j := slices.Index(names, n.Name); j < i {
			return n.at.wrong(fmt.Sprintf("a second type called %q", n.Name), "a name of its own for every type",
				"rename one, or put both tables into one type: files: [A, B]")
		}
	}
	names = append(names, s.known...)
	seen := map[[3]string]bool{}
	for i := range s.Edges {
		if err := s.Edges[i].check(names, seen); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) types() (names []string) {
	for i := range s.Nodes {
		names = append(names, s.Nodes[i].Name)
	}
	return names
}

// once are the different names of a list, in its order.
func once(names []string) (out []string) {
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (e *Edge) check(types []string, seen map[[3]string]bool) error {
	for _, name := range []string{e.Source, e.Target} {
		if !slices.Contains(types, name) {
			return e.at.in("type").wrong(fmt.Sprintf("%q, which is no type of vertices", name),
				"one of "+strings.Join(once(types), ", "), suggest(name, types, "add it to nodes, or correct the name"))
		}
	}
	relations := [][3]string{{e.Source, e.Name, e.Target}}
	if e.Reverse != "" {
		relations = append(relations, [3]string{e.Target, e.Reverse, e.Source})
	}
	for _, r := range relations {
		if seen[r] {
			return e.at.wrong(fmt.Sprintf("the relation %s a second time", strings.Join(r[:], " ")),
				"a name of its own for every relation of two types", "rename it, or give it all files: files: [A, B]")
		}
		seen[r] = true
	}
	return nil
}
