package dataset

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"starling/dataset/table"
	"starling/event"
)

// Parquet tables: a folder with edge tables (edges*.parquet or edges/*.parquet) and, if
// there is more than structure, vertex tables (nodes*.parquet or nodes/*.parquet); or
// one file of edges.
//
//	edges   src, dst (or source, target; from, to), whole numbers or text; with
//	        Weights also weight
//	nodes   id; label: a class, its name, or a list of 0/1; split: train, val, test, or
//	        train_mask, val_mask, test_mask; features (or feat, x, embedding): a list,
//	        or else every other column of numbers, in the order of the table
//
// Ids become vertices as those of edge lists do. A vertex table must name every
// vertex. Edges are streamed by row groups on all cores; the vertex table is held in memory.

func readParquet(src string, opt ImportOptions) (*read, error) {
	edgeFiles, nodeFiles, err := parquetFiles(src)
	if err != nil {
		return nil, err
	}
	r := &read{name: opt.Name}
	if r.name == "" {
		r.name, _, _ = strings.Cut(baseName(src), ".")
	}
	var nodes *parquetNodes
	if len(nodeFiles) > 0 {
		if nodes, err = readParquetNodes(nodeFiles, opt); err != nil {
			return nil, err
		}
	}
	e, ids, err := parquetEdges(edgeFiles, nodes, opt)
	if err != nil {
		return nil, err
	}
	r.intIDs, r.textIDs = ids.ints, ids.texts
	r.edges = &edgeFeed{nodes: ids.n, expected: e.total, weighted: opt.Weights, fill: e.fill, close: e.Close}
	if r.edges.features, err = parquetEdgeRows(edgeFiles); err == nil && nodes != nil {
		err = nodes.attach(r, ids, opt)
	}
	if err != nil {
		e.Close()
		return nil, err
	}
	if err := r.noteEdgeColumns(edgeFiles, opt); err != nil {
		e.Close()
		return nil, err
	}
	if r.edges.features != nil && opt.Weights {
		r.edges.features = nil
		r.notes = append(r.notes, "features of edges are not kept beside weights: leave out --weights to have them")
	}
	return r, nil
}

// parquetFiles finds the tables.
func parquetFiles(src string) (edges, nodes []string, err error) {
	info, err := os.Stat(src)
	if err != nil {
		return nil, nil, badFile(src, "", "no such file", "a Parquet file or a folder of them", "check the path")
	}
	if !info.IsDir() {
		return []string{src}, nil, nil
	}
	found := matching(src, "*.parquet")
	for _, dir := range matching(src, "*") {
		found = append(found, matching(dir, "*.parquet")...)
	}
	for _, path := range found {
		rel, _ := filepath.Rel(src, path)
		switch name := strings.ToLower(rel); {
		case strings.HasPrefix(name, "edge"):
			edges = append(edges, path)
		case strings.HasPrefix(name, "node"), strings.HasPrefix(name, "vert"):
			nodes = append(nodes, path)
		}
	}
	if len(edges) == 0 {
		return nil, nil, badFile(src, "", "no edges*.parquet",
			"edges*.parquet, and nodes*.parquet for features and labels", "rename the tables")
	}
	return edges, nodes, nil
}

// parquetEdges reads the ends of all edges, as numbers if they are, else as names.
func parquetEdges(paths []string, nodes *parquetNodes, opt ImportOptions) (*edges, *idMap, error) {
	numbers := &ranks{}
	e, err := readParquetEdges(paths, opt, numbers, nil)
	var ids *idMap
	if err == nil && nodes != nil {
		if nodes.texts != nil || !nodes.small() {
			err = errNames
		} else if err = nodes.match(e, numbers); err == nil {
			numbers.add(nodes.numbers())
		}
	}
	if err == nil {
		ids, err = numericIDs(e, numbers, &tables{}, opt)
	}
	if errors.Is(err, errNames) {
		e.Close()
		names := newNameTable()
		var extra tables
		if nodes != nil {
			extra.labels = &labelTable{path: nodes.path, ids: nodes.names()}
		}
		if e, err = readParquetEdges(paths, opt, nil, names); err == nil {
			ids, err = namedIDs(e, names, &extra)
		}
	}
	if err == nil && ids.n == 0 {
		err = badFile(paths[0], "", "no edges", "a source and a target a row", "check that this is the right table")
	}
	if err != nil {
		e.Close()
		return nil, nil, err
	}
	return e, ids, nil
}

var (
	sourceNames = []string{"src", "source", "from", "u", "src_id", "source_id", "head"}
	targetNames = []string{"dst", "target", "to", "v", "dst_id", "target_id", "tail", "dest", "destination"}
	weightNames = []string{"weight", "w", "weights", "value"}
)

// edgeTable is an open table of edges.
type edgeTable struct {
	file             *table.Parquet
	src, dst, weight *table.ParquetColumn
}

func openEdgeTable(path string, opt ImportOptions) (t edgeTable, err error) {
	if t.file, err = table.OpenParquet(path); err != nil {
		return t, err
	}
	t.src, t.dst = t.file.Find(sourceNames...), t.file.Find(targetNames...)
	if opt.Weights {
		t.weight = t.file.Find(weightNames...)
	}
	switch {
	case t.src == nil || t.dst == nil:
		err = t.file.Bad("columns", t.file.Names(), "src and dst (or source and target)")
	case !(t.src.Whole() || t.src.Text()) || t.src.Kind != t.dst.Kind && !(t.src.Whole() && t.dst.Whole()):
		err = t.file.Bad(t.src.Name+", "+t.dst.Name, fmt.Sprintf("%s and %s", t.src.Kind, t.dst.Kind),
			"two columns of whole numbers or of text")
	case opt.Weights && (t.weight == nil || t.weight.List || !t.weight.Number()):
		err = t.file.Bad("columns", t.file.Names(), "a column weight of numbers, as --weights says")
	}
	if err != nil {
		t.file.Close()
	}
	return t, err
}

// readParquetEdges spills the edges of all tables, row groups in parallel. Ends are
// numbered by names if it is not nil; else they must be small numbers.
func readParquetEdges(paths []string, opt ImportOptions, numbers *ranks, names *nameTable) (*edges, error) {
	e := &edges{weighted: opt.Weights}
	var groups []edgeGroup
	for _, path := range paths {
		t, err := openEdgeTable(path, opt)
		if err != nil {
			return nil, err
		}
		defer t.file.Close()
		for g := range t.file.File.RowGroups() {
			groups = append(groups, edgeGroup{table: t, group: g, into: e, numbers: numbers, names: names,
				seen: uint64(len(groups)) << 32})
		}
		if names == nil && t.src.Text() {
			return nil, errNames
		}
	}
	var err error
	if e.file, err = opt.newScratch(); err != nil {
		return nil, err
	}
	parts, errs := readGroups(groups, opt)
	for j := range groups {
		if errs[j] != nil {
			e.Close()
			return nil, errs[j]
		}
		for _, b := range parts[j] {
			e.total += int64(b.edges)
			e.blocks = append(e.blocks, b)
		}
	}
	return e, nil
}

// readGroups reads row groups on all cores.
func readGroups(groups []edgeGroup, opt ImportOptions) (parts [][]*block, errs []error) {
	parts, errs = make([][]*block, len(groups)), make([]error, len(groups))
	var next, done atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(groups)) {
		wg.Go(func() {
			var buffer chunk
			for {
				j := int(next.Add(1) - 1)
				if j >= len(groups) {
					return
				}
				groups[j].x = &buffer
				parts[j], errs[j] = groups[j].read()
				opt.report("read row groups", done.Add(1), int64(len(groups)))
			}
		})
	}
	wg.Wait()
	return parts, errs
}

// edgeGroup reads one row group.
type edgeGroup struct {
	table   edgeTable
	group   int
	into    *edges
	x       *chunk
	numbers *ranks
	names   *nameTable
	seen    uint64
}

// read spills a row group as one or more blocks.
func (g *edgeGroup) read() ([]*block, error) {
	g.x.src, g.x.dst, g.x.weights = g.x.src[:0], g.x.dst[:0], g.x.weights[:0]
	if err := g.end(g.table.src, 0, &g.x.src); err != nil {
		return nil, err
	}
	if err := g.end(g.table.dst, 1, &g.x.dst); err != nil {
		return nil, err
	}
	if g.table.weight != nil {
		if err := g.table.file.Cells(g.group, g.table.weight, func(c table.Cell) error {
			if c.Missing || math.IsNaN(c.Real) || math.IsInf(c.Real, 0) {
				return g.table.file.Bad(g.table.weight.Name, "a weight that is no finite number", "one in every row")
			}
			g.x.weights = append(g.x.weights, float32(c.Real))
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if len(g.x.src) != len(g.x.dst) || g.table.weight != nil && len(g.x.weights) != len(g.x.src) {
		return nil, g.table.file.Bad("columns",
			fmt.Sprintf("%d, %d and %s in a row group", len(g.x.src), len(g.x.dst),
				event.Tally(len(g.x.weights), "value")),
			"as many of each")
	}
	var out []*block
	for lo := 0; lo < len(g.x.src); lo += table.PieceNumbers {
		hi := min(lo+table.PieceNumbers, len(g.x.src))
		b := &block{src: g.x.src[lo:hi], dst: g.x.dst[lo:hi]}
		if g.table.weight != nil {
			b.weights = g.x.weights[lo:hi]
		}
		g.into.put(b)
		if b.err != nil {
			return nil, b.err.err
		}
		b.src, b.dst, b.weights = nil, nil, nil
		out = append(out, b)
	}
	g.numbers.add(g.x.src)
	g.numbers.add(g.x.dst)
	return out, nil
}

// end reads one end of every edge. which distinguishes sources from targets, so that names are
// numbered in the order of the rows.
func (g *edgeGroup) end(c *table.ParquetColumn, which uint64, out *[]uint32) error {
	seen := g.seen + which
	name := func(text []byte) error {
		x, ok := g.names.number(text, seen)
		seen += 2
		if !ok {
			return errTooManyNames
		}
		*out = append(*out, x)
		return nil
	}
	if c.Text() {
		return g.table.file.Cells(g.group, c, func(x table.Cell) error {
			if x.Missing || slices.Contains(x.Text, '\n') {
				return g.table.file.Bad(c.Name, "a missing value, or a name with a line break", "a name in every row")
			}
			return name(x.Text)
		})
	}
	var digits []byte
	return g.table.file.Ints(g.group, c, func(page []int64) error {
		if g.names != nil {
			for _, x := range page {
				digits = c.ID(digits[:0], x)
				if err := name(digits); err != nil {
					return err
				}
			}
			return nil
		}
		for _, x := range page {
			if uint64(x) >= math.MaxUint32 {
				return errNames
			}
			*out = append(*out, uint32(x))
		}
		return nil
	})
}
