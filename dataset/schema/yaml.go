package schema

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// yaml adds what our own form says: name, include, nodes and edges.
func (s *Schema) yaml(t *tree, from []string) error {
	if err := t.only("name", "include", "nodes", "edges"); err != nil {
		return err
	}
	if name := t.get("name"); name != nil {
		text, err := name.scalar()
		if err != nil {
			return err
		}
		s.Name = text
	}
	includes, err := t.get("include").scalars()
	if err != nil {
		return err
	}
	for _, other := range includes {
		if err := s.readFile(besides(t.file, other), from); err != nil {
			return err
		}
	}
	if err := s.yamlNodes(t.get("nodes")); err != nil {
		return err
	}
	return s.yamlEdges(t.get("edges"))
}

// besides is a path that is relative to a file's folder.
func besides(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

func (s *Schema) yamlNodes(t *tree) error {
	if t == nil || t.kind == isNull {
		return nil
	}
	if t.kind != isFields {
		return t.wrong(t.describe(), "a name for every type of vertices, with its fields",
			"for example paper: {files: papers.csv, id: pid}")
	}
	for i, name := range t.names {
		n, err := yamlNode(name, t.fields[i])
		if err != nil {
			return err
		}
		s.Nodes = append(s.Nodes, *n)
	}
	return nil
}

func yamlNode(name string, t *tree) (n *Node, err error) {
	if err := t.only("files", "format", "header", "id", "count", "features", "label", "split", "missing"); err != nil {
		return nil, err
	}
	n = &Node{Name: name, at: t.place()}
	if n.Table, err = yamlSource(t); err != nil {
		return nil, err
	}
	if n.ID, err = t.get("id").scalar(); err != nil {
		return nil, err
	}
	if n.Count, err = count(t.get("count")); err != nil {
		return nil, err
	}
	if (n.Table.Files == nil) == (n.Count == 0) {
		return nil, t.wrong("files and count, or neither",
			"files of a table, or a count of vertices that have no table",
			"give files: TABLE")
	}
	if n.Table.Files == nil && n.ID != "" {
		return nil, t.wrong("an id without files", "files, a table that has the column", "add files")
	}
	missing, err := missingRule(t.get("missing"))
	if err != nil {
		return nil, err
	}
	if n.Features, err = yamlFeatures(t.get("features"), missing); err != nil {
		return nil, err
	}
	if n.Label, err = yamlLabel(t.get("label")); err != nil {
		return nil, err
	}
	n.Split, err = yamlSplit(t.get("split"))
	return n, err
}

// yamlSource reads files, format and header.
func yamlSource(t *tree) (s Source, err error) {
	if s.Files, err = t.get("files").scalars(); err != nil {
		return s, err
	}
	for i, path := range s.Files {
		if path == "" {
			return s, t.wrong("an empty name in files", "files, patterns or folders", "correct it")
		}
		s.Files[i] = besides(t.file, path)
	}
	if s.Format, err = t.get("format").scalar(); err != nil {
		return s, err
	}
	s.Header, err = t.get("header").scalar()
	switch s.Header {
	case "true":
		s.Header = "yes"
	case "false":
		s.Header = "no"
	}
	return s, err
}

func count(t *tree) (int64, error) {
	text, err := t.scalar()
	if err != nil || text == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > math.MaxUint32 {
		return 0, t.wrong(t.describe(), "a number of vertices", "")
	}
	return n, nil
}

// missingRules are the values of Feature.Missing.
var missingRules = []string{"error", "zero", "mean"}

func missingRule(t *tree) (string, error) {
	text, err := t.scalar()
	if err == nil && text != "" && !slices.Contains(missingRules, text) {
		err = t.wrong(t.describe(), strings.Join(missingRules, ", "), suggest(text, missingRules, ""))
	}
	return text, err
}

func yamlFeatures(t *tree, missing string) (out []Feature, err error) {
	if t == nil || t.kind == isNull {
		return nil, nil
	}
	list := []*tree{t}
	if t.kind == isList {
		list = t.list
	}
	for _, x := range list {
		f, err := yamlFeature(x, missing)
		if err != nil {
			return nil, err
		}
		out = append(out, f...)
	}
	return out, nil
}

// yamlFeature is one entry: a column, or fields that say more.
func yamlFeature(t *tree, missing string) (out []Feature, err error) {
	f := Feature{Missing: missing, at: t.place()}
	if t.kind == isScalar {
		f.Col = t.text
		return []Feature{f}, nil
	}
	if err := t.only("col", "files", "format", "header", "standardize", "one_hot", "missing"); err != nil {
		return nil, err
	}
	if f.Table, err = yamlSource(t); err != nil {
		return nil, err
	}
	if f.Standardize, err = t.get("standardize").yes(); err != nil {
		return nil, err
	}
	if f.OneHot, err = t.get("one_hot").yes(); err != nil {
		return nil, err
	}
	if rule := t.get("missing"); rule != nil {
		if f.Missing, err = missingRule(rule); err != nil {
			return nil, err
		}
	}
	cols, err := t.get("col").scalars()
	switch {
	case err != nil:
		return nil, err
	case f.OneHot && f.Standardize:
		return nil, t.wrong("one_hot and standardize", "one of the two: columns of 0 and 1 stay as they are",
			"remove standardize")
	case len(cols) == 0 && f.Table.Files == nil:
		return nil, t.wrong("no col", "the name of a column, or files of one column", "add col: NAME")
	case len(cols) == 0:
		cols = []string{""}
	}
	for _, f.Col = range cols {
		out = append(out, f)
	}
	return out, nil
}

func yamlLabel(t *tree) (l *Label, err error) {
	if t == nil || t.kind == isNull {
		return nil, nil
	}
	l = &Label{at: t.place()}
	if t.kind == isScalar {
		l.Col = t.text
		return l, nil
	}
	if err := t.only("col", "files", "format", "header", "task"); err != nil {
		return nil, err
	}
	if l.Table, err = yamlSource(t); err != nil {
		return nil, err
	}
	if l.Col, err = t.get("col").scalar(); err != nil {
		return nil, err
	}
	if l.Col == "" && l.Table.Files == nil {
		return nil, t.wrong("no col", "the name of a column, or files of one column", "add col: NAME")
	}
	l.Task, err = t.get("task").scalar()
	if err == nil && l.Task != "" && l.Task != "classify" && l.Task != "regression" {
		err = t.get("task").wrong(strconv.Quote(l.Task), "classify or regression", "leave it out to have it derived")
	}
	return l, err
}

// yamlSplit is a column, or train, val and test: shares, or files of ids.
func yamlSplit(t *tree) (s *Split, err error) {
	if t == nil || t.kind == isNull {
		return nil, nil
	}
	s = &Split{at: t.place()}
	if t.kind == isScalar {
		s.Col = t.text
		return s, nil
	}
	if err := t.only("col", "train", "val", "test"); err != nil {
		return nil, err
	}
	if s.Col, err = t.get("col").scalar(); err != nil {
		return nil, err
	}
	for i, share := range []*float64{&s.Train, &s.Val, &s.Test} {
		x := t.get([]string{"train", "val", "test"}[i])
		text, err := x.scalar()
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		if *share, err = strconv.ParseFloat(text, 64); err != nil {
			*share, s.Files[i] = 0, besides(t.file, text)
		} else if !(*share >= 0 && *share <= 1) {
			return nil, x.wrong(x.describe(), "a share from 0 to 1, or a file of ids", "")
		}
	}
	return s, s.check(t)
}

// check refuses a split that is said in two ways, or that nothing trains in.
func (s *Split) check(t *tree) error {
	shares, files := s.Train+s.Val+s.Test > 0, s.Files != [3]string{}
	switch ways := fmt.Sprint(s.Col != "", shares, files); {
	case strings.Count(ways, "true") != 1:
		return t.wrong("more than one way to split, or none", "a column, or shares, or files of ids",
			"keep one of them")
	case shares && (s.Train == 0 || s.Train+s.Val+s.Test > 1+1e-9):
		return t.wrong(fmt.Sprintf("shares of %g, %g and %g", s.Train, s.Val, s.Test),
			"a share above 0 to train on, and no more than 1 in all", "for example {train: 0.8, val: 0.1, test: 0.1}")
	case files && s.Files[0] == "":
		return t.wrong("no file of train", "one, beside those of val and test", "add train: FILE")
	}
	return nil
}

func (s *Schema) yamlEdges(t *tree) error {
	if t == nil || t.kind == isNull {
		return nil
	}
	if t.kind != isList {
		return t.wrong(t.describe(), "a list of relations",
			"for example - {type: [author, writes, paper], files: writes.csv, src: aid, dst: pid}")
	}
	for _, x := range t.list {
		e, err := yamlEdge(x)
		if err != nil {
			return err
		}
		s.Edges = append(s.Edges, *e)
	}
	return nil
}

func yamlEdge(t *tree) (e *Edge, err error) {
	if err := t.only("type", "files", "format", "header", "src", "dst", "reverse"); err != nil {
		return nil, err
	}
	e = &Edge{at: t.place()}
	names, err := t.get("type").scalars()
	if err != nil {
		return nil, err
	}
	if len(names) != 3 || slices.Contains(names, "") {
		return nil, t.wrong(fmt.Sprintf("%q as its type", names), "[source type, name, target type]",
			"for example type: [author, writes, paper]")
	}
	e.Source, e.Name, e.Target = names[0], names[1], names[2]
	if e.Table, err = yamlSource(t); err != nil {
		return nil, err
	}
	for i, to := range []*string{&e.Src, &e.Dst, &e.Reverse} {
		if *to, err = t.get([]string{"src", "dst", "reverse"}[i]).scalar(); err != nil {
			return nil, err
		}
	}
	if e.Table.Files == nil || e.Src == "" || e.Dst == "" {
		return nil, t.wrong("no files, src or dst", "the table and its columns of source and target ids",
			"for example files: writes.csv, src: aid, dst: pid")
	}
	return e, nil
}
