package schema

import (
	"strings"

	"starling/graph"
)

// A graph without types has vertices, which may be left out, and edges with fields instead of a list:
//
//	vertices: {files: users.csv, id: user, label: fraud, features: [age, {col: city, one_hot: true}], split: part}
//	edges:    {files: edges.csv, src: from_user, dst: to_user, weight: amount, time: when, features: [kind],
//	           repeats: keep, symmetrize: true}

// isFlat tells whether a file describes a graph without types.
func isFlat(t *tree) bool {
	e := t.get("edges")
	return t.get("nodes") == nil && (t.get("vertices") != nil || e != nil && e.kind == isFields)
}

func (s *Schema) flatYAML(t *tree) error {
	if err := t.only("name", "vertices", "edges"); err != nil {
		return err
	}
	if len(s.Nodes)+len(s.Edges) > 0 {
		return t.wrong("a graph without types, included by another file", "it alone", "write nodes and a list of edges")
	}
	s.Untyped = true
	if name := t.get("name"); name != nil {
		text, err := name.scalar()
		if err != nil {
			return err
		}
		s.Name = text
	}
	if v := t.get("vertices"); v != nil {
		n, err := flatVertices(v)
		if err != nil {
			return err
		}
		s.Nodes = append(s.Nodes, *n)
	}
	e := t.get("edges")
	if e == nil {
		return t.wrong("no edges", "the table of edges", "add edges: {files: …, src: …, dst: …}")
	}
	edge, err := flatEdges(e)
	if err != nil {
		return err
	}
	s.Edges = append(s.Edges, *edge)
	return nil
}

func flatVertices(t *tree) (n *Node, err error) {
	if t.kind != isFields {
		return nil, t.wrong(t.describe(), "fields of one table", "for example {files: users.csv, id: user}")
	}
	// time is the only field that types have not
	rest := &tree{kind: isFields, file: t.file, field: t.field, line: t.line}
	var when *tree
	for i, name := range t.names {
		if name == "time" {
			when = t.fields[i]
			continue
		}
		rest.names, rest.fields = append(rest.names, name), append(rest.fields, t.fields[i])
	}
	if n, err = yamlNode("", rest); err != nil {
		return nil, err
	}
	if n.Count > 0 {
		return nil, t.wrong("a count of vertices", "a table of them, or none", "leave vertices out: they are the ids of the edges")
	}
	n.Time, err = when.scalar()
	return n, err
}

func flatEdges(t *tree) (e *Edge, err error) {
	if err := t.only("files", "format", "header", "src", "dst", "weight", "time", "features", "missing", "repeats",
		"symmetrize", "self_loops", "negative_weights"); err != nil {
		return nil, err
	}
	u := &UntypedEdge{}
	e = &Edge{at: t.place(), Untyped: u}
	if e.Table, err = yamlSource(t); err != nil {
		return nil, err
	}
	repeats := ""
	for name, to := range map[string]*string{"src": &e.Src, "dst": &e.Dst, "weight": &u.Weight, "time": &u.Time,
		"repeats": &repeats} {
		if *to, err = t.get(name).scalar(); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]*bool{"symmetrize": &u.Symmetrize, "self_loops": &u.SelfLoops,
		"negative_weights": &u.Negative} {
		if *to, err = t.get(name).yes(); err != nil {
			return nil, err
		}
	}
	missing, err := missingRule(t.get("missing"))
	if err != nil {
		return nil, err
	}
	if u.Features, err = yamlFeatures(t.get("features"), missing); err != nil {
		return nil, err
	}
	for i := range u.Features {
		if u.Features[i].Table.Files != nil {
			return nil, t.get("features").wrong("files of features", "columns of the table of edges", "add them to that table")
		}
	}
	if e.Table.Files == nil || e.Src == "" || e.Dst == "" {
		return nil, t.wrong("no files, src or dst", "the table and its columns of source and target ids",
			"for example {files: edges.csv, src: from, dst: to}")
	}
	return e, u.setRepeats(t, repeats)
}

// setRepeats takes one of graph.AllRepeats, or nothing.
func (u *UntypedEdge) setRepeats(t *tree, name string) error {
	if name == "" {
		return nil
	}
	r, ok := graph.RepeatsNamed(name)
	if !ok {
		var all []string
		for _, r := range graph.AllRepeats {
			all = append(all, string(r))
		}
		x := t.get("repeats")
		return x.wrong(x.describe(), strings.Join(all, ", "), suggest(name, all, ""))
	}
	u.Repeats = r
	return nil
}
