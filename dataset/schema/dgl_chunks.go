package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// The chunked graph format of DGL's distributed partitioning, a folder with metadata.json:
//
//	{"graph_name": "mag", "node_type": ["paper", "author"], "num_nodes_per_chunk": [[3, 2], [2, 2]],
//	 "edge_type": ["author:writes:paper"], "num_edges_per_chunk": [[4, 3]],
//	 "edges": {"author:writes:paper": {"format": {"name": "csv", "delimiter": " "}, "data": ["w0.txt", "w1.txt"]}},
//	 "node_data": {"paper": {"feat": {"format": {"name": "numpy"}, "data": ["f0.npy", "f1.npy"]}}}, "edge_data": {}}
//
// Vertices are named by their numbers within their type. Files of edges have two columns and no header. num_nodes_per_type
// and num_edges_per_type, one number for each type, may stand instead of the lists. Data of edges is left out, but for
// weight and feat of a graph without types; what becomes of data of vertices is as in a CSVDataset.

// isChunks tells whether a file is the metadata of a chunked graph.
func isChunks(t *tree) bool { return t.get("node_type") != nil && t.get("edge_type") != nil }

// chunks is metadata.json.
type chunks struct {
	*tree
	of string // its name
}

func (s *Schema) dglChunks(t *tree) error {
	err := t.only("graph_name", "node_type", "num_nodes_per_chunk", "num_nodes_per_type", "edge_type", "num_edges_per_chunk",
		"num_edges_per_type", "edges", "node_data", "edge_data")
	if err != nil {
		return err
	}
	name, err := t.get("graph_name").scalar()
	if err != nil {
		return err
	}
	if name != "" {
		s.Name = name
	}
	c := &chunks{t, filepath.Base(t.file)}
	if err := c.nodes(s); err != nil {
		return err
	}
	if err := c.edges(s); err != nil {
		return err
	}
	s.dglUntyped()
	return nil
}

// types are the names of types or relations, and the numbers of each: of every chunk, or one in all.
func (c *chunks) types(what, sizes string) (names []string, numbers [][]int64, each bool, err error) {
	if names, err = c.get(what).scalars(); err != nil {
		return nil, nil, false, err
	}
	list, each := c.get(sizes+"_per_chunk"), true
	if list == nil {
		list, each = c.get(sizes+"_per_type"), false
	}
	if list == nil || list.kind != isList || len(list.list) != len(names) {
		return nil, nil, false, c.wrong(what+" of "+event.Tally(len(names), "name")+" and other sizes",
			sizes+"_per_chunk, a list of numbers for each name", "write the file again")
	}
	for _, x := range list.list {
		texts, err := x.scalars()
		if err != nil {
			return nil, nil, false, err
		}
		var of []int64
		for _, text := range texts {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 || n > graph.MaxEdges {
				return nil, nil, false, x.wrong(fmt.Sprintf("%.40q", text), "a number of rows", "correct it")
			}
			of = append(of, n)
		}
		numbers = append(numbers, of)
	}
	return names, numbers, each, nil
}

func sum(numbers []int64) (total int64) {
	for _, n := range numbers {
		total += n
	}
	return total
}

// source is the files of an entry, {format: {name: …}, data: […]}. sizes are the rows of each; nil: not said.
func (c *chunks) source(x *tree, sizes []int64) (s Source, err error) {
	if err := x.only("format", "data"); err != nil {
		return s, err
	}
	format := x.get("format")
	if format == nil || format.kind != isFields {
		return s, x.wrong("no format", `format: {"name": "csv", "parquet" or "numpy"}`, "add it")
	}
	name, err := format.get("name").scalar()
	if err != nil {
		return s, err
	}
	known := map[string]string{"csv": "csv", "parquet": "parquet", "numpy": "npy"}
	if s.Format = known[name]; s.Format == "" {
		return s, format.wrong(fmt.Sprintf("the format %.40q", name), "csv, parquet or numpy", "save the files as one of these")
	}
	if name == "csv" {
		s.Header = "no"
		if s.Separator, err = separator(format.get("delimiter"), ','); err != nil {
			return s, err
		}
	}
	files, err := x.get("data").scalars()
	if err != nil {
		return s, err
	}
	if len(files) == 0 {
		return s, x.wrong("no data", "the files of the chunks", "add data: [FILE, …]")
	}
	if sizes != nil && len(sizes) != len(files) {
		return s, x.get("data").wrong(event.Tally(len(files), "file"), fmt.Sprintf("%d, one for each chunk", len(sizes)),
			"list a file for every chunk")
	}
	for i, path := range files {
		path = besides(c.file, path)
		if sizes != nil {
			if sizes[i] == 0 && sum(sizes) > 0 && isEmpty(path) {
				continue
			}
			s.Rows, s.RowsBy = append(s.Rows, sizes[i]), c.of
		}
		s.Files = append(s.Files, path)
	}
	return s, nil
}

// isEmpty tells whether there is nothing in a file, as in that of a chunk without edges.
func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == 0
}

func (c *chunks) nodes(s *Schema) error {
	names, sizes, each, err := c.types("node_type", "num_nodes")
	if err != nil {
		return err
	}
	data := c.get("node_data")
	if data != nil && data.kind == isFields {
		for i, name := range data.names {
			if !slices.Contains(names, name) {
				return data.fields[i].wrong("data of the type "+name, "types of node_type: "+strings.Join(names, ", "),
					suggest(name, names, "correct the name"))
			}
		}
	}
	for i, name := range names {
		n := Node{Name: name, Count: sum(sizes[i]), at: place{c.file, "node_type " + name}, why: map[string]string{}}
		if n.Count < 1 || n.Count > graph.MaxNodes {
			return n.at.wrong(event.Tally(n.Count, "vertex"), "1 to 2^32", "leave the type out, or split the graph")
		}
		if !each {
			sizes[i] = nil
		}
		if data != nil {
			if err := c.nodeData(&n, data.get(name), sizes[i]); err != nil {
				return err
			}
		}
		for dropped, why := range n.why {
			s.note("data %s of %s is left out: %s", dropped, name, why)
		}
		s.Nodes = append(s.Nodes, n)
	}
	slices.Sort(s.Notes)
	return nil
}

// nodeData says what becomes of the data of a type.
func (c *chunks) nodeData(n *Node, t *tree, sizes []int64) error {
	if t == nil || t.kind == isNull {
		return nil
	}
	if t.kind != isFields {
		return t.wrong(t.describe(), "names of data, each with format and data", "correct it")
	}
	var columns []table.Column
	sources := map[string]Source{}
	for i, name := range t.names {
		s, err := c.source(t.fields[i], sizes)
		if err != nil {
			return err
		}
		sources[name] = s
		columns = append(columns, table.Column{Name: name, Kind: table.Real})
	}
	n.dglColumns(columns, func(name string) Source { return sources[name] })
	if n.Label != nil {
		n.Label.Col = ""
	}
	if n.Split != nil {
		for _, m := range n.Split.Masks {
			if m != nil {
				m.Col = ""
			}
		}
	}
	return n.wide()
}

// wide has features of several columns be one for each.
func (n *Node) wide() error {
	named := n.Features
	n.Features = nil
	for _, f := range named {
		t, err := f.Table.open()
		if err != nil {
			return err
		}
		if f.Table.Format == "csv" {
			f.Col = table.All
			n.Features = append(n.Features, f)
			continue
		}
		for i := range t.Columns {
			one := f
			one.Col = t.Columns[i].Name
			n.Features = append(n.Features, one)
		}
	}
	return nil
}

func (c *chunks) edges(s *Schema) error {
	names, sizes, each, err := c.types("edge_type", "num_edges")
	if err != nil {
		return err
	}
	for i, name := range names {
		ends := strings.Split(name, ":")
		e := Edge{at: place{c.file, "edge_type " + name}, Untyped: &UntypedEdge{Repeats: "keep", SelfLoops: true}}
		if len(ends) != 3 || slices.Contains(ends, "") {
			return e.at.wrong(fmt.Sprintf("%.60q", name), "SOURCE:NAME:TARGET", "correct it")
		}
		e.Source, e.Name, e.Target = ends[0], ends[1], ends[2]
		files := c.get("edges").get(name)
		if files == nil {
			return e.at.wrong("no edges", "their files under edges", "add them, or leave the relation out")
		}
		if !each {
			sizes[i] = nil
		}
		if e.Table, err = c.source(files, sizes[i]); err != nil {
			return err
		}
		e.Table.Columns = true
		t, err := e.Table.open()
		if err != nil {
			return err
		}
		if len(t.Columns) < 2 {
			return e.at.wrong(event.Tally(len(t.Columns), "column")+" in "+t.Files[0], "two, of source and target", "write both")
		}
		e.Src, e.Dst = t.Columns[0].Name, t.Columns[1].Name
		s.Edges = append(s.Edges, e)
	}
	if data := c.get("edge_data"); data != nil && len(data.names) > 0 {
		s.note("data of edges is left out: %s", strings.Join(data.names, ", "))
	}
	return nil
}
