package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// GraphStorm's configuration of graph construction, as its users have it:
//
//	{"nodes": [{"node_type": "paper", "format": {"name": "parquet"}, "files": "papers*.parquet", "node_id_col": "pid",
//	            "features": [{"feature_col": "emb"}, {"feature_col": "year", "transform": {"name": "max_min_norm"}}],
//	            "labels": [{"label_col": "venue", "task_type": "classification", "split_pct": [0.8, 0.1, 0.1]}]}],
//	 "edges": [{"relation": ["author", "writes", "paper"], "files": "writes.csv",
//	            "source_id_col": "a", "dest_id_col": "p"}]}
//
// A second entry of a node type has more features of the same rows. Of transforms, to_categorical is one_hot; those
// that scale numbers become standardize, with a note; those that need a language model are refused.

func (s *Schema) graphStorm(t *tree) error {
	for _, x := range t.get("nodes").list {
		if err := s.stormNode(x); err != nil {
			return err
		}
	}
	edges := t.get("edges")
	if edges == nil || edges.kind != isList {
		return t.wrong("no list of edges", "edges: [{relation: [SOURCE, NAME, TARGET], …}]", "add it")
	}
	for _, x := range edges.list {
		if err := s.stormEdge(x); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schema) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

func (s *Schema) stormNode(t *tree) (err error) {
	if err := t.only("node_type", "format", "files", "node_id_col", "features", "labels"); err != nil {
		return err
	}
	n := Node{at: t.place()}
	if n.Name, err = t.get("node_type").scalar(); err != nil {
		return err
	}
	if n.Name == "" {
		return t.wrong("no node_type", "the name of a type of vertices", "add it")
	}
	if n.Table, err = stormSource(t); err != nil {
		return err
	}
	if n.ID, err = t.get("node_id_col").scalar(); err != nil {
		return err
	}
	if n.Features, err = s.stormFeatures(t.get("features")); err != nil {
		return err
	}
	if err := s.stormLabels(t.get("labels"), &n); err != nil {
		return err
	}
	if i := slices.IndexFunc(s.Nodes, func(o Node) bool { return o.Name == n.Name }); i >= 0 {
		return s.Nodes[i].more(&n)
	}
	s.Nodes = append(s.Nodes, n)
	return nil
}

// more adds the columns of another table of the same rows.
func (n *Node) more(o *Node) error {
	for _, f := range o.Features {
		f.Table = o.Table
		n.Features = append(n.Features, f)
	}
	if o.Label != nil {
		if n.Label != nil {
			return o.at.wrong("labels a second time", "one label per type", "remove one of the two")
		}
		o.Label.Table = o.Table
		n.Label, n.Split = o.Label, o.Split
	}
	return nil
}

// stormFormats are names of formats, by what they are here.
var stormFormats = map[string]string{"csv": "csv", "parquet": "parquet", "npy": "npy", "": ""}

func stormSource(t *tree) (s Source, err error) {
	if s.Files, err = t.get("files").scalars(); err != nil {
		return s, err
	}
	if len(s.Files) == 0 {
		return s, t.wrong("no files", "the files of the table", "add files")
	}
	for i, path := range s.Files {
		s.Files[i] = besides(t.file, path)
	}
	f := t.get("format")
	if f == nil || f.kind == isNull {
		return s, nil
	}
	name, separator := f, (*tree)(nil)
	if f.kind == isFields {
		name, separator = f.get("name"), f.get("separator")
	}
	text, err := name.scalar()
	if err != nil {
		return s, err
	}
	format, known := stormFormats[text]
	if !known {
		return s, f.wrong(strconv.Quote(text), "csv, parquet or npy", "save the table as one of these")
	}
	s.Format = format
	if sep, err := separator.scalar(); err == nil && sep == "\t" {
		s.Format = "tsv"
	}
	return s, err
}

// stormScales are transforms of numbers that become standardize.
var stormScales = []string{"standard", "max_min_norm", "rank_gauss"}

func (s *Schema) stormFeatures(t *tree) (out []Feature, err error) {
	if t == nil || t.kind == isNull {
		return nil, nil
	}
	if t.kind != isList {
		return nil, t.wrong(t.describe(), "a list of features", "")
	}
	for _, x := range t.list {
		if err := x.only("feature_col", "feature_name", "transform", "feature_dim", "out_dtype"); err != nil {
			return nil, err
		}
		f := Feature{at: x.place()}
		if err := s.stormTransform(x.get("transform"), &f); err != nil {
			return nil, err
		}
		cols, err := x.get("feature_col").scalars()
		if err != nil {
			return nil, err
		}
		if len(cols) == 0 {
			return nil, x.wrong("no feature_col", "the name of a column", "add it")
		}
		for _, f.Col = range cols {
			out = append(out, f)
		}
	}
	return out, nil
}

func (s *Schema) stormTransform(t *tree, f *Feature) error {
	if t == nil || t.kind == isNull {
		return nil
	}
	name, err := t.get("name").scalar()
	switch {
	case err != nil:
		return err
	case name == "" || name == "noop" || name == "truncate":
	case name == "to_categorical":
		f.OneHot = true
	case slices.Contains(stormScales, name):
		f.Standardize = true
		s.note("transform %s: the column is standardized instead, to mean 0 and variance 1 over the training vertices",
			name)
	default:
		return t.wrong(fmt.Sprintf("transform %q", name), "to_categorical, "+strings.Join(stormScales, ", ")+" or none",
			"transform the column beforehand, and give numbers or vectors")
	}
	return nil
}

// stormLabels takes the label that is a class or a number.
func (s *Schema) stormLabels(t *tree, n *Node) error {
	if t == nil || t.kind == isNull {
		return nil
	}
	if t.kind != isList {
		return t.wrong(t.describe(), "a list of labels", "")
	}
	for _, x := range t.list {
		if err := x.only("label_col", "task_type", "split_pct", "custom_split_filenames",
			"label_stats_type"); err != nil {
			return err
		}
		task, err := x.get("task_type").scalar()
		if err != nil {
			return err
		}
		if task != "classification" && task != "regression" {
			s.note("labels of %s for %s are left out: tasks are chosen when training", n.Name, task)
			continue
		}
		if n.Label != nil {
			return x.wrong("labels a second time", "one label per type", "remove one of the two")
		}
		n.Label = &Label{Task: strings.Replace(task, "classification", "classify", 1), at: x.place()}
		if n.Label.Col, err = x.get("label_col").scalar(); err != nil {
			return err
		}
		if n.Label.Col == "" {
			return x.wrong("no label_col", "the name of a column", "add it")
		}
		if n.Split, err = stormSplit(x); err != nil {
			return err
		}
	}
	return nil
}

// stormSplit is split_pct, or files of ids; GraphStorm's default is 0.8, 0.1 and 0.1.
func stormSplit(t *tree) (*Split, error) {
	s := &Split{Train: 0.8, Val: 0.1, Test: 0.1, at: t.place()}
	if files := t.get("custom_split_filenames"); files != nil && files.kind == isFields {
		s.Train, s.Val, s.Test = 0, 0, 0
		for i, name := range []string{"train", "valid", "test"} {
			text, err := files.get(name).scalar()
			if err != nil {
				return nil, err
			}
			if text != "" {
				s.Files[i] = besides(t.file, text)
			}
		}
		return s, s.check(files)
	}
	shares, err := t.get("split_pct").scalars()
	if err != nil || shares == nil {
		return s, err
	}
	if len(shares) != 3 {
		return nil, t.get("split_pct").wrong(t.get("split_pct").describe(), "three shares",
			"for example [0.8, 0.1, 0.1]")
	}
	for i, to := range []*float64{&s.Train, &s.Val, &s.Test} {
		if *to, err = strconv.ParseFloat(shares[i], 64); err != nil || !(*to >= 0 && *to <= 1) {
			return nil, t.get("split_pct").wrong(shares[i], "a share from 0 to 1", "")
		}
	}
	return s, s.check(t.get("split_pct"))
}

func (s *Schema) stormEdge(t *tree) (err error) {
	if err := t.only("relation", "format", "files", "source_id_col", "dest_id_col", "features", "labels"); err != nil {
		return err
	}
	e := Edge{at: t.place()}
	names, err := t.get("relation").scalars()
	if err != nil {
		return err
	}
	if len(names) != 3 || slices.Contains(names, "") {
		return t.wrong(fmt.Sprintf("%q as its relation", names), "[source type, name, target type]", "correct it")
	}
	e.Source, e.Name, e.Target = names[0], names[1], names[2]
	if e.Table, err = stormSource(t); err != nil {
		return err
	}
	if e.Src, err = t.get("source_id_col").scalar(); err != nil {
		return err
	}
	if e.Dst, err = t.get("dest_id_col").scalar(); err != nil {
		return err
	}
	if e.Src == "" || e.Dst == "" {
		return t.wrong("no source_id_col or dest_id_col", "the columns of source and target ids", "add them")
	}
	if f := t.get("features"); f != nil && len(f.list) > 0 {
		s.note("features of %s %s %s are left out: typed graphs have features of vertices", e.Source, e.Name, e.Target)
	}
	if l := t.get("labels"); l != nil && len(l.list) > 0 {
		s.note("labels of %s %s %s are left out: links to predict are chosen when training", e.Source, e.Name, e.Target)
	}
	s.Edges = append(s.Edges, e)
	return nil
}
