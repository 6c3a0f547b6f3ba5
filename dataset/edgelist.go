package dataset

import (
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"starling/graph"
)

// Edge lists: a line an edge, source then target, separated by tabs, commas,
// semicolons or blanks; more columns are ignored, except that with Weights the
// third is a weight. Lines that start with # or % are comments (SNAP, KONECT). A
// first line that is no edge is a header. Files may be packed with gzip.
//
// Ids that are exactly 0..N-1 stay; so do all when Nodes is given. Other whole
// numbers become 0..N-1 in ascending order; names become 0..N-1 in order of first
// appearance, in the edges first, then in the labels, then in the features. The
// ids are kept in the dataset.
//
// The file is cut into blocks at line ends and parsed on all cores. What is held
// is eight bytes an edge (twelve with weights), then the graph.

var edgeSplit = SplitOptions{Train: 0.6, Val: 0.2, Test: 0.2}

func readEdgeList(path string, opt ImportOptions) (*read, error) {
	tables, err := readTables(opt)
	if err != nil {
		return nil, err
	}
	lay, err := sniff(path, opt)
	if err != nil {
		return nil, err
	}
	e, err := readEdges(path, lay, opt, parseNumbers)
	var ids *idMap
	if err == nil {
		ids, err = numericIDs(e, tables, opt)
	}
	if errors.Is(err, errNames) {
		if opt.Nodes > 0 {
			return nil, badFile(path, "", "ids that are no whole numbers below 2^32", fmt.Sprintf("0 to %d, as --nodes says", opt.Nodes-1), "leave --nodes out to have ids mapped")
		}
		names := newNameTable()
		if e, err = readEdges(path, lay, opt, parseNames(names)); err == nil {
			ids, err = namedIDs(e, names, tables)
		}
	}
	if err != nil {
		return nil, err
	}
	if ids.n == 0 {
		return nil, badFile(path, "", "no edges", "a source and a target a line", "check that this is the right file")
	}
	r := &read{name: opt.Name, intIDs: ids.ints, textIDs: ids.texts}
	if r.name == "" {
		r.name, _, _ = strings.Cut(filepath.Base(path), ".")
	}
	if lay.columns > 2 && !opt.Weights {
		r.notes = append(r.notes, fmt.Sprintf("columns 3 to %d of the edge list are not used", lay.columns))
	}
	if err := r.buildFrom(e, ids.n, opt); err != nil {
		return nil, err
	}
	return r, r.attach(tables, ids, opt)
}

// buildFrom is build without a second copy of the edges.
func (r *read) buildFrom(e *edges, n int, opt ImportOptions) (err error) {
	r.graph, err = graph.FromSource(n, e.total, opt.Weights, e.source, graph.BuildOptions{
		Symmetrise: opt.Symmetrise, DropDuplicates: !opt.KeepDuplicates, DropSelfLoops: !opt.KeepSelfLoops})
	if err == nil {
		r.note(e.total, opt)
	}
	return err
}

// attach adds labels, splits and features.
func (r *read) attach(t tables, ids *idMap, opt ImportOptions) (err error) {
	if t.labels != nil {
		if r.labels, err = t.labels.classes(ids, &r.notes); err != nil {
			return err
		}
		if r.splits, err = opt.Split.or(edgeSplit).split(r.labels, opt.Seed); err != nil {
			return err
		}
	}
	switch {
	case t.features != nil:
		r.features, err = t.features.matrix(ids)
	case opt.Features != "":
		r.features, err = readMatrix(opt.Features, ids.n)
	}
	return err
}

// edges is the parsed list, block by block in file order.
type edges struct {
	blocks []*block
	first  []int64 // by block: number of edges before it
	total  int64
}

// source gives the builder the edges of any range.
func (e *edges) source(lo int64, src, dst []uint32, w []float32) {
	b := sort.Search(len(e.blocks), func(b int) bool { return e.first[b+1] > lo })
	for at := 0; at < len(src); b++ {
		from := e.blocks[b]
		skip := lo + int64(at) - e.first[b]
		n := copy(src[at:], from.src[skip:])
		copy(dst[at:], from.dst[skip:])
		if w != nil {
			copy(w[at:], from.weights[skip:])
		}
		at += n
	}
}
