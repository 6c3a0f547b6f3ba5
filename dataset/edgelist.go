package dataset

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"starling/event"
)

// Edge lists: one line per edge, source then target, separated by tabs, commas,
// semicolons or blanks; more columns are ignored, except that with Weights the
// third is a weight. A header may name other columns (columns.go). Lines that start with #
// or % are comments (SNAP, KONECT). A first line that is no edge is a header; lines that
// repeat it are left out. Files may be compressed with gzip.
//
// Ids that are exactly 0..N-1 stay; so do all when Nodes is given. Other whole
// numbers become 0..N-1 in ascending order; names become 0..N-1 in order of first
// appearance, in the edges first, then in the labels, then in the features. The
// ids are kept in the dataset.
//
// The file is split into blocks of whole lines and parsed on all cores. The edges are spilled to
// a nameless file, eight bytes each (twelve with weights), and from there, when all
// ids are known, go to the sorter: memory holds the ids, never the edges.

// UsualSplit is how labelled vertices are divided where nothing else is said.
var UsualSplit = SplitOptions{Train: 0.6, Val: 0.2, Test: 0.2}

func readEdgeList(path string, opt ImportOptions) (*read, error) {
	tables, err := readTables(opt)
	if err != nil {
		return nil, err
	}
	lay, err := sniff(path, opt)
	if err != nil {
		return nil, err
	}
	numbers := &ranks{}
	e, err := readEdges(path, lay, opt, parseNumbers(numbers))
	var ids *idMap
	if err == nil {
		ids, err = numericIDs(e, numbers, &tables, opt)
	}
	if errors.Is(err, errNames) {
		if opt.Nodes > 0 {
			return nil, badFile(path, "", "ids that are no whole numbers below 2^32",
				fmt.Sprintf("0 to %d, as --nodes says", opt.Nodes-1), "leave --nodes out to have ids mapped")
		}
		e.Close()
		names := newNameTable()
		if e, err = readEdges(path, lay, opt, parseNames(names)); err == nil {
			ids, err = namedIDs(e, names, &tables)
		}
	}
	if err != nil {
		e.Close()
		return nil, err
	}
	if ids.n == 0 {
		e.Close()
		fix := "check that this is the right file"
		if lay.skip > 0 && opt.Header == "" {
			fix += "; --header no takes its first line for an edge"
		}
		return nil, badFile(path, "", "no edges", "a source and a target per line", fix)
	}
	r := &read{name: opt.Name, intIDs: ids.ints, textIDs: ids.texts}
	if r.name == "" {
		r.name, _, _ = strings.Cut(filepath.Base(path), ".")
	}
	r.notes = lay.notes(e, opt)
	r.edges = &edgeFeed{nodes: ids.n, expected: e.total, weighted: opt.Weights, fill: e.fill, close: e.Close}
	if err := r.attach(tables, ids, opt); err != nil {
		e.Close()
		return nil, err
	}
	return r, nil
}

// notes explains how the file was read if that is not obvious.
func (lay *layout) notes(e *edges, opt ImportOptions) (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if first, _ := lay.next([]byte(lay.header)); opt.Header == "" && lay.skip > 0 &&
		!slices.Contains(headerWords, strings.ToLower(string(first))) {
		note("the first line, %.60q, is taken for names of columns; --header no takes it for an edge", lay.header)
	}
	if e.comments > 0 {
		note("lines between edges that start with # or %% are taken for comments: %d; names that do so need quotes",
			e.comments)
	}
	if e.headers > 0 {
		note("lines that repeat the names of columns, %.60q, are left out: %d", lay.header, e.headers)
	}
	switch {
	case lay.at != nil && opt.Weights:
		note("by their names, %.60q, sources are column %d, targets column %d, weights column %d", lay.header,
			lay.at[0]+1, lay.at[1]+1, lay.at[2]+1)
	case lay.at != nil && (lay.at[0] != 0 || lay.at[1] != 1):
		note("by their names, %.60q, sources are column %d, targets column %d", lay.header, lay.at[0]+1, lay.at[1]+1)
	case lay.columns > 2 && !opt.Weights && lay.weightName() == "":
		note("%s of the edge list %s not used; if one is a weight, call it weight and give --weights",
			event.Range("column", 3, lay.columns), are(lay.columns-2))
	}
	if name := lay.weightName(); name != "" && !opt.Weights {
		note("the column %.40q is not used: --weights takes it for the weights of the edges", name)
	}
	return notes
}

// are is the verb after n things.
func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// weightName is the header's name of a column of weights; "": it has none.
func (lay *layout) weightName() string {
	if lay.skip == 0 {
		return ""
	}
	names := lay.split([]byte(lay.header))
	if at := named(names, weightNames); at >= 0 {
		return names[at]
	}
	return ""
}

// attach adds labels, splits and features.
func (r *read) attach(t tables, ids *idMap, opt ImportOptions) (err error) {
	r.notes = append(r.notes, t.notes...)
	if t.labels != nil {
		if r.labels, err = t.labels.known(ids, opt.Task, &r.notes); err != nil {
			return err
		}
	}
	switch {
	case t.splits != nil:
		err = t.splits.attach(r, ids)
	case r.labels != nil:
		r.splits, err = opt.Split.or(UsualSplit).split(r.labels, opt.Seed)
	}
	if err != nil {
		return err
	}
	switch {
	case t.features != nil:
		err = t.features.matrix(r, ids)
	case opt.Features != "":
		r.features, err = readMatrix(opt.Features, ids.n)
		r.featureFile = opt.Features
		// The order of the rows cannot be checked: report which one is assumed.
		switch {
		case ids.texts != nil:
			r.notes = append(r.notes, "row i of the features is taken for the vertex on line i of ids.txt, in which names stand as they first appear; to be sure give a file of id,x,y,... lines")
		case ids.ints != nil:
			r.notes = append(r.notes, "row i of the features is taken for the vertex of ids.npy[i], in which ids ascend")
		}
	}
	return err
}
