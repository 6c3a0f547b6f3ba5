package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// OGB's heterogeneous layout (ogbn-mag), as its package unpacks it:
//
//	raw/num-node-dict.csv.gz               the types, and below each its number of vertices
//	raw/triplet-type-list.csv.gz           source,relation,target
//	raw/relations/A___R___B/edge.csv.gz    source,target: rows of the types, from 0
//	raw/node-feat/TYPE/node-feat.csv.gz    numbers per vertex
//	raw/node-label/TYPE/node-label.csv.gz  a class per vertex
//	split/NAME/TYPE/train.csv.gz …         vertices of each split: train, valid, test

func readOGB(dir string) (*Schema, error) {
	o := ogb{dir: dir, raw: filepath.Join(dir, "raw")}
	s := &Schema{File: dir, Name: strings.ReplaceAll(nameOf(filepath.Clean(dir)), "_", "-")}
	if err := o.nodes(s); err != nil {
		return nil, err
	}
	if err := o.edges(s); err != nil {
		return nil, err
	}
	return s, s.check()
}

type ogb struct{ dir, raw string }

// file is a path under raw, packed or not; "": there is no such file.
func (o ogb) file(parts ...string) string {
	path := filepath.Join(append([]string{o.raw}, parts...)...)
	for _, p := range []string{path + ".gz", path} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return ""
}

// rows reads a small table whole.
func (o ogb) rows(name, header string) (names []string, rows [][]string, err error) {
	path := o.file(name)
	if path == "" {
		return nil, nil, place{filepath.Join(o.raw, name+".gz"), ""}.wrong("no such file",
			"a schema file, or a folder of OGB with several types, as ogbn-mag, or of DGL, with meta.yaml or metadata.json",
			"name the folder that raw is in")
	}
	t, err := table.Open(table.Options{Header: header}, path)
	if err != nil {
		return nil, nil, err
	}
	var want []table.Want
	for _, c := range t.Columns {
		names = append(names, c.Name)
		want = append(want, table.Want{Name: c.Name, As: table.Text})
	}
	err = t.Read(want, func(b *table.Batch) error {
		for i := range b.Rows {
			row := make([]string, len(names))
			for c := range names {
				row[c] = b.Columns[c].Text[i]
			}
			rows = append(rows, row)
		}
		return nil
	})
	return names, rows, err
}

func (o ogb) nodes(s *Schema) error {
	types, counts, err := o.rows("num-node-dict.csv", "yes")
	if err != nil {
		return err
	}
	if len(counts) != 1 {
		return place{o.file("num-node-dict.csv"), ""}.wrong(fmt.Sprintf("%s below the names",
			event.Tally(len(counts), "row")),
			"one, of one graph",
			"datasets of many graphs are not read")
	}
	for i, name := range types {
		n := Node{Name: name, at: place{o.file("num-node-dict.csv"), name}}
		if n.Count, err = strconv.ParseInt(counts[0][i], 10, 64); err != nil || n.Count < 1 {
			return n.at.wrong(counts[0][i], "a number of vertices", "download the dataset again")
		}
		if path := o.file("node-feat", name, "node-feat.csv"); path != "" {
			n.Features = []Feature{{Table: plain(path), Col: table.All, at: place{path, ""}}}
		}
		if path := o.file("node-label", name, "node-label.csv"); path != "" {
			n.Label = &Label{Table: plain(path), Task: "classify", at: place{path, ""}}
			if n.Split, err = o.split(name); err != nil {
				return err
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	return nil
}

// plain is a table without a header.
func plain(path string) Source { return Source{Files: []string{path}, Header: "no"} }

// split is the only folder of split that has the type.
func (o ogb) split(name string) (*Split, error) {
	found, err := filepath.Glob(filepath.Join(o.dir, "split", "*", name))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if len(found) > 1 {
		return nil, place{filepath.Join(o.dir, "split"), ""}.wrong(fmt.Sprintf("%s of %s",
			event.Tally(len(found), "split"), name),
			"one",
			"move the others away")
	}
	s := &Split{at: place{found[0], ""}}
	for i, part := range []string{"train", "valid", "test"} {
		path := filepath.Join(found[0], part+".csv.gz")
		if _, err := os.Stat(path); err != nil {
			path = strings.TrimSuffix(path, ".gz")
		}
		s.Files[i] = path
	}
	return s, nil
}

func (o ogb) edges(s *Schema) error {
	_, triplets, err := o.rows("triplet-type-list.csv", "no")
	if err != nil {
		return err
	}
	for _, t := range triplets {
		if len(t) != 3 {
			return &graph.InputError{File: o.file("triplet-type-list.csv"), Found: strings.Join(t, ","),
				Want: "source, relation and target", Fix: "download the dataset again"}
		}
		folder := strings.Join(t, "___")
		path := o.file("relations", folder, "edge.csv")
		if path == "" {
			return place{filepath.Join(o.raw, "relations", folder, "edge.csv.gz"), ""}.wrong("no such file",
				"the edges of the relation", "download the dataset again")
		}
		s.Edges = append(s.Edges, Edge{Source: t[0], Name: t[1], Target: t[2], Table: plain(path), Src: "1", Dst: "2",
			at: place{path, ""}})
	}
	return nil
}
