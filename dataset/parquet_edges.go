package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/dataset/table"
)

var edgeFeatureNames = []string{"features", "feat", "edge_features", "edge_feat", "edge_attr"}

// parquetEdgeRows streams the lists of features in tables of edges, in the order of the
// rows; nil if there are none. Other columns are never taken for features.
func parquetEdgeRows(paths []string) (*rowFeed, error) {
	with, dim := 0, 0
	for _, path := range paths {
		err := eachEdgeList(path, func(n *parquetNodes) error {
			if n != nil {
				with, dim = with+1, n.dim
			}
			return errEnough // one row group is enough
		})
		if err != nil && err != errEnough {
			return nil, err
		}
	}
	switch {
	case with == 0:
		return nil, nil
	case with < len(paths):
		return nil, badFile(paths[0], "columns", "features of edges in some tables and not in others",
			"them in all or in none", "write the tables again")
	}
	return &rowFeed{file: paths[0], cols: dim, each: func(put func(x []float32) error) error {
		for _, path := range paths {
			if err := eachEdgeList(path, func(n *parquetNodes) error {
				if n.dim != dim {
					return badFile(path, "features", fmt.Sprintf("lists of %d", n.dim),
						fmt.Sprintf("%d, as in the first table", dim), "write the tables again")
				}
				return put(n.values)
			}); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// noteEdgeColumns names the columns of tables of edges that are not read, and how to have them read.
func (r *read) noteEdgeColumns(paths []string, opt ImportOptions) error {
	var unused []string
	hint := ""
	for _, path := range paths {
		t, err := openEdgeTable(path, opt)
		if err != nil {
			return err
		}
		for _, name := range t.unread() {
			if !slices.Contains(unused, name) {
				unused = append(unused, name)
			}
		}
		if w := t.file.Find(weightNames...); w != nil && w != t.weight && !w.List && w.Number() {
			hint = ", and --weights takes " + w.Name
		}
		t.file.Close()
	}
	if len(unused) > 0 {
		r.notes = append(r.notes, fmt.Sprintf("columns of edges that are not used: %.200s; features of edges are lists "+
			"in one column, features%s", strings.Join(unused, ", "), hint))
	}
	return nil
}

// unread are the columns other than the ends, the weights and the lists of features.
func (t *edgeTable) unread() (names []string) {
	features := t.file.Find(edgeFeatureNames...)
	for i := range t.file.Cols {
		c := &t.file.Cols[i]
		if c != t.src && c != t.dst && c != t.weight && !(c == features && c.List && c.Number()) {
			names = append(names, c.Name)
		}
	}
	return names
}

// errEnough ends a pass over row groups early.
var errEnough = errors.New("enough")

// eachEdgeList calls do with the features of each row group that has rows; with nil,
// once, if the table has no such column.
func eachEdgeList(path string, do func(n *parquetNodes) error) error {
	p, err := table.OpenParquet(path)
	if err != nil {
		return err
	}
	defer p.Close()
	c := p.Find(edgeFeatureNames...)
	if c == nil || !c.List || !c.Number() {
		return do(nil)
	}
	n := &parquetNodes{path: path}
	for g, group := range p.File.RowGroups() {
		n.values = n.values[:0]
		if err := n.addFeatures(p, g, []*table.ParquetColumn{c}, int(group.NumRows())); err != nil {
			return err
		}
		if group.NumRows() == 0 {
			continue
		}
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}
