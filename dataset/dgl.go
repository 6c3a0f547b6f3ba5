package dataset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// Folders of dgl.distributed.partition_graph: NAME.json, and one folder per part with
// graph.dgl, node_feat.dgl and edge_feat.dgl (see dgl_tensors.go). The parts are
// joined again, in DGL's new numbering: part p has the vertices
// node_map[p][0] to node_map[p][1]-1. Every part lists the edges into its own vertices, and
// replicas of others', which are left out.
//
// Features are the vertex data feat (or feature, features, x), labels label (or labels,
// y), splits train_mask, val_mask and test_mask. If there is orig_id, it is kept as the
// vertices' names. Heterogeneous graphs are refused.

type dglBook struct {
	Name     string                       `json:"graph_name"`
	Nodes    int64                        `json:"num_nodes"`
	Edges    int64                        `json:"num_edges"`
	Parts    int                          `json:"num_parts"`
	NodeMap  map[string]json.RawMessage   `json:"node_map"`
	NTypes   map[string]int               `json:"ntypes"`
	ETypes   map[string]int               `json:"etypes"`
	Files    map[string]map[string]string `json:"-"`
	dir      string
	path     string
	vertices [][2]int64 // of the parts
}

const maxBookBytes = 64 << 20

func readDGL(src string, opt ImportOptions) (*read, error) {
	b, err := readBook(src)
	if err != nil {
		return nil, err
	}
	r := &read{name: cmp.Or(opt.Name, b.Name), edges: &edgeFeed{nodes: int(b.Nodes), expected: b.Edges,
		fill: func(s *graph.Sorter) error { return b.fill(s, opt) }}}
	return r, b.vertexData(r)
}

// readBook reads NAME.json, or the only one in a folder.
func readBook(src string) (*dglBook, error) {
	path := src
	if info, err := os.Stat(src); err == nil && info.IsDir() {
		found := matching(src, "*.json")
		if len(found) != 1 {
			return nil, badFile(src, "", fmt.Sprintf("%s *.json", event.Tally(len(found), "file")),
				"NAME.json of one partition",
				"name the json file itself")
		}
		path = found[0]
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxBookBytes {
		return nil, badFile(path, "", "no such file", "NAME.json of a DGL partition", "check the path")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	b := &dglBook{dir: filepath.Dir(path), path: path, Files: map[string]map[string]string{}}
	var all map[string]json.RawMessage
	if err = json.Unmarshal(text, b); err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil || all == nil {
		return nil, b.bad("", "no JSON of a partition", "graph_name, num_nodes, node_map, part-0 …")
	}
	return b, b.check(all)
}

func (b *dglBook) bad(field, found, want string) error {
	return badFile(b.path, field, found, want,
		"this is no DGL partition of a graph of one kind, or it is damaged: partition again")
}

func (b *dglBook) check(all map[string]json.RawMessage) error {
	switch {
	case len(b.NTypes) > 1 || len(b.ETypes) > 1 || len(b.NodeMap) != 1:
		return b.bad("ntypes, etypes", fmt.Sprintf("%d kinds of vertices, %d of edges",
			max(len(b.NTypes), len(b.NodeMap)), len(b.ETypes)), "one of each")
	case b.Nodes < 1 || b.Nodes > graph.MaxNodes || b.Edges < 0 || b.Edges > graph.MaxEdges:
		return b.bad("num_nodes, num_edges", fmt.Sprint(b.Nodes, b.Edges), "fewer than 2^32 vertices and at most 2^42 edges")
	case b.Parts < 1 || b.Parts > len(all):
		return b.bad("num_parts", fmt.Sprint(b.Parts), "as many as there are part-N")
	}
	for _, ranges := range b.NodeMap {
		if json.Unmarshal(ranges, &b.vertices) != nil || len(b.vertices) != b.Parts {
			return b.bad("node_map", fmt.Sprintf("%.60s", ranges), "a [first, end) for each part")
		}
	}
	var at int64
	for p, v := range b.vertices {
		if v[0] != at || v[1] < at {
			return b.bad("node_map", fmt.Sprintf("part %d from %d to %d", p, v[0], v[1]), fmt.Sprintf("from %d", at))
		}
		at = v[1]
		key := fmt.Sprintf("part-%d", p)
		var files map[string]string
		if json.Unmarshal(all[key], &files) != nil || files["part_graph"] == "" {
			return b.bad(key, fmt.Sprintf("%.60s", all[key]),
				"part_graph and node_feats (a partition with use_graphbolt=True has others, which cannot be read)")
		}
		for _, name := range files {
			if !filepath.IsLocal(name) {
				return b.bad(key, fmt.Sprintf("%.60q", name), "files inside the folder")
			}
		}
		b.Files[key] = files
	}
	if at != b.Nodes {
		return b.bad("node_map", fmt.Sprintf("%s in all", event.Tally(at, "vertex")), fmt.Sprintf("num_nodes (%d)",
			b.Nodes))
	}
	return nil
}

// open opens a file of a part.
func (b *dglBook) open(part int, which string) (*dglFile, error) {
	return openDGL(filepath.Join(b.dir, b.Files[fmt.Sprintf("part-%d", part)][which]))
}

// fill adds the edges of every part into its own vertices.
func (b *dglBook) fill(s *graph.Sorter, opt ImportOptions) error {
	var seq int64
	for p := range b.vertices {
		e, err := b.part(p)
		if err != nil {
			return err
		}
		for lo := 0; lo < len(e.src); lo += table.PieceNumbers {
			hi := min(lo+table.PieceNumbers, len(e.src))
			if err := s.Add(seq, e.src[lo:hi], e.dst[lo:hi], nil); err != nil {
				return inPath(b.path, err)
			}
			seq++
		}
		opt.report("read parts", int64(p+1), int64(b.Parts))
	}
	if s.Listed() != b.Edges {
		return b.bad("num_edges", fmt.Sprint(b.Edges), fmt.Sprintf("%d, as the parts have", s.Listed()))
	}
	return nil
}

// part reads the edges of one part, in the numbering of the whole graph.
func (b *dglBook) part(p int) (*chunk, error) {
	d, err := b.open(p, "part_graph")
	if err != nil {
		return nil, err
	}
	defer d.f.Close()
	g := d.graph()
	if d.err != nil {
		return nil, d.err
	}
	id, ok := g.vertexData["_ID"]
	if !ok {
		return nil, badFile(d.path, "vertex data", "no _ID", "the vertices' numbers in the whole graph",
			"partition again")
	}
	ids, err := d.indices(id, "_ID")
	if err != nil {
		return nil, err
	}
	x, err := d.ends(&g, len(ids))
	if err != nil {
		return nil, err
	}
	own, err := d.own(&g, len(x.src))
	if err != nil {
		return nil, err
	}
	kept := 0
	for i := range x.src {
		u, v := ids[x.src[i]], ids[x.dst[i]]
		if inside := int64(v) >= b.vertices[p][0] && int64(v) < b.vertices[p][1]; own == nil && inside ||
			own != nil && own[i] != 0 {
			x.src[kept], x.dst[kept] = u, v
			kept++
		}
	}
	x.src, x.dst = x.src[:kept], x.dst[:kept]
	return x, nil
}

// own marks the edges that belong to the part; nil if the file does not.
func (d *dglFile) own(g *dglPart, edges int) ([]uint32, error) {
	a, ok := g.edgeData["inner_edge"]
	if !ok {
		return nil, nil
	}
	own, err := d.indices(a, "inner_edge")
	if err == nil && len(own) != edges {
		err = badFile(d.path, "inner_edge", event.Tally(len(own), "mark"),
			fmt.Sprintf("one per edge (%d)", edges), "partition again")
	}
	return own, err
}

// ends are both ends of every edge, in the order of the edges' numbers.
func (d *dglFile) ends(g *dglPart, n int) (*chunk, error) {
	row, err := d.indices(g.row, "row")
	if err != nil {
		return nil, err
	}
	col, err := d.indices(g.col, "col")
	if err != nil {
		return nil, err
	}
	if g.byRows {
		if len(row) == 0 || row[0] != 0 || !slices.IsSorted(row) || int(row[len(row)-1]) != len(col) {
			return nil, d.badEdges("offsets that fall", n)
		}
		row = expandOffsets(row)
	}
	if len(row) != len(col) {
		return nil, d.badEdges(fmt.Sprintf("%d and %s", len(row), event.Tally(len(col), "end")), n)
	}
	for i, u := range row {
		if int(max(u, col[i])) >= n {
			return nil, d.badEdges(fmt.Sprintf("%d → %d", u, col[i]), n)
		}
	}
	if g.form == 3 { // columns: the rows are targets
		row, col = col, row
	}
	return d.byNumber(g, &chunk{src: row, dst: col}, n)
}

func (d *dglFile) badEdges(found string, n int) error {
	return badFile(d.path, "edges", found, fmt.Sprintf("pairs of %s", event.Tally(n, "vertex")),
		"the file is damaged: partition again")
}

// expandOffsets is the row of every element.
func expandOffsets(offsets []uint32) []uint32 {
	rows := make([]uint32, offsets[len(offsets)-1])
	for v := range len(offsets) - 1 {
		for i := offsets[v]; i < offsets[v+1]; i++ {
			rows[i] = uint32(v)
		}
	}
	return rows
}

// byNumber orders edges by their numbers, if they have any.
func (d *dglFile) byNumber(g *dglPart, in *chunk, n int) (*chunk, error) {
	order, err := d.indices(g.edges, "edge numbers")
	if err != nil || len(order) == 0 {
		return in, err
	}
	edges := len(in.src)
	if len(order) != edges {
		return nil, d.badEdges(fmt.Sprintf("%s of %s", event.Tally(len(order), "number"),
			event.Tally(edges, "edge")), n)
	}
	x := &chunk{src: make([]uint32, edges), dst: make([]uint32, edges)}
	for i, e := range order {
		if int(e) >= edges {
			return nil, d.badEdges(fmt.Sprintf("edge number %d", e), n)
		}
		x.src[e], x.dst[e] = in.src[i], in.dst[i]
	}
	return x, nil
}

// vertexData finds features, labels and splits in the parts' node_feat.dgl.
func (b *dglBook) vertexData(r *read) error {
	parts := make([]map[string]dglArray, len(b.vertices))
	for p := range parts {
		if b.Files[fmt.Sprintf("part-%d", p)]["node_feats"] == "" {
			return nil
		}
		d, err := b.open(p, "node_feats")
		if err != nil {
			return err
		}
		parts[p] = d.tensors()
		d.f.Close()
		if d.err != nil {
			return d.err
		}
		for name, a := range parts[p] {
			if n := b.vertices[p][1] - b.vertices[p][0]; len(a.shape) == 0 || a.shape[0] != n {
				return badFile(d.path, name, fmt.Sprintf("shape %v", a.shape),
					fmt.Sprintf("a row for each of %s", event.Tally(n, "vertex")), "partition again")
			}
		}
	}
	b.edgeData(r)
	data := dglColumns{b, parts}
	if err := data.labels(r); err != nil {
		return err
	}
	if err := data.splits(r); err != nil {
		return err
	}
	if err := data.ids(r); err != nil {
		return err
	}
	return data.features(r)
}

// edgeData notes edge data, which is not read.
func (b *dglBook) edgeData(r *read) {
	d, err := b.open(0, "edge_feats")
	if err != nil {
		return // not needed
	}
	defer d.f.Close()
	if names := d.tensors(); d.err == nil && len(names) > 0 {
		r.notes = append(r.notes, fmt.Sprintf("data of edges is not read: %s",
			strings.Join(slices.Sorted(maps.Keys(names)), ", ")))
	}
}

// dglColumns is vertex data, by part and name.
type dglColumns struct {
	b     *dglBook
	parts []map[string]dglArray
}

// find is the full name of the first that all parts have, with or without its type.
func (c dglColumns) find(names ...string) string {
	for _, want := range names {
		for name := range c.parts[0] {
			if _, short, _ := strings.Cut(name, "/"); short != want && name != want {
				continue
			}
			everywhere := true
			for _, p := range c.parts {
				_, ok := p[name]
				everywhere = everywhere && ok
			}
			if everywhere {
				return name
			}
		}
	}
	return ""
}

// each calls f with the numbers of one part after the other.
func (c dglColumns) each(name string, f func(part int, a *table.Array, path string) error) error {
	for p := range c.parts {
		d, err := c.b.open(p, "node_feats")
		if err != nil {
			return err
		}
		a, err := d.stream(c.parts[p][name])
		if err == nil {
			err = f(p, a, d.path)
		}
		d.f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// width is the numbers per row; 0 if the parts differ.
func (c dglColumns) width(name string) int64 {
	all := int64(-1)
	for _, p := range c.parts {
		w := int64(1)
		for _, n := range p[name].shape[1:] {
			w *= n
		}
		if all >= 0 && w != all {
			return 0
		}
		all = w
	}
	return all
}

// rows calls put with whole rows of every part.
func (c dglColumns) rows(name string, cols int, put func([]float32) error) error {
	x := make([]float32, max(1, table.PieceNumbers/cols)*cols)
	return c.each(name, func(_ int, a *table.Array, path string) error {
		for a.Left > 0 {
			part := x[:min(int64(len(x)), a.Left)]
			if err := a.Reals(part); err != nil {
				return badFile(path, name, graph.Sentence(err.Error()), "numbers", "partition again")
			}
			if err := put(part); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c dglColumns) features(r *read) error {
	name := c.find("feat", "feature", "features", "x")
	if name == "" {
		r.notes = append(r.notes, "no vertex data feat: the dataset has no features")
		return nil
	}
	cols := c.width(name)
	if cols < 1 || cols > 1<<31-1 {
		return c.b.bad(name, "rows of different width in the parts", "one width")
	}
	r.rows = &rowFeed{file: c.b.path, rows: int(c.b.Nodes), cols: int(cols),
		each: func(put func([]float32) error) error { return c.rows(name, int(cols), put) }}
	return nil
}

func (c dglColumns) labels(r *read) (err error) {
	name := c.find("label", "labels", "y")
	if name == "" {
		return nil
	}
	cols := c.width(name)
	if cols < 1 || cols > maxClasses {
		return c.b.bad(name, "labels of different width in the parts", "one width")
	}
	l := labelRows{file: c.b.path}
	if err := c.rows(name, int(cols), func(x []float32) error {
		return l.add(x, int(cols), int(c.b.Nodes))
	}); err != nil {
		return err
	}
	r.labels, err = l.labels(int(c.b.Nodes))
	return err
}

func (c dglColumns) splits(r *read) error {
	for _, s := range []struct {
		name string
		ids  *[]uint32
	}{{"train_mask", &r.splits.Train}, {"val_mask", &r.splits.Val}, {"test_mask", &r.splits.Test}} {
		name := c.find(s.name)
		if name == "" {
			continue
		}
		if c.width(name) != 1 {
			return c.b.bad(name, "several numbers per vertex", "0 or 1")
		}
		v := uint32(0)
		if err := c.rows(name, 1, func(x []float32) error {
			for _, m := range x {
				if m != 0 && (r.labels == nil || r.labels.Has(int(v))) {
					*s.ids = append(*s.ids, v)
				}
				v++
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c dglColumns) ids(r *read) error {
	name := c.find("orig_id")
	if name == "" || c.width(name) != 1 {
		return nil
	}
	return c.each(name, func(_ int, a *table.Array, path string) error {
		x := make([]uint32, a.Left)
		if err := a.Indices(x); err != nil {
			return badFile(path, name, graph.Sentence(err.Error()), "vertex numbers", "partition again")
		}
		for _, v := range x {
			r.intIDs = append(r.intIDs, int64(v))
		}
		return nil
	})
}
