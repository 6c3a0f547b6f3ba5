package dataset

import (
	"errors"
	"fmt"

	"starling/graph"
	"starling/rng"
)

// writeEdgeFeatures draws features of edges as they are written. They are normal noise,
// the same in both directions of an edge; the first is larger by Signal where both ends
// are of one class, so that there is something to learn from them.
func (p Params) writeEdgeFeatures(w *graph.Writer, g *graph.CSR, class func(v uint64) int) error {
	dim := p.EdgeFeatures
	a, err := w.Array("edge_features.npy", "<f4", g.Edges(), int64(dim))
	if err != nil {
		return err
	}
	w.Meta.EdgeDim = dim
	key := rng.New(p.Seed).Fold(edgeFeatureStream)
	var rows []float32
	flush := func() error {
		defer func() { rows = rows[:0] }()
		return graph.WriteSlice(a, rows)
	}
	for v := range uint32(g.Nodes()) {
		for _, u := range g.Neighbors(v) {
			rows = appendEdge(rows, key, u, v, dim)
			if class != nil && p.Classes > 0 && class(uint64(u)) == class(uint64(v)) {
				rows[len(rows)-dim] += float32(p.Signal)
			}
		}
		if len(rows) >= 1<<18 {
			if err := flush(); err != nil {
				a.Abort()
				return err
			}
		}
	}
	if err := flush(); err != nil {
		a.Abort()
		return err
	}
	return a.Close()
}

// appendEdge appends the noise of an edge between u and v.
func appendEdge(rows []float32, key rng.Key, u, v uint32, dim int) []float32 {
	of := key.Fold(uint64(min(u, v))).Fold(uint64(max(u, v)))
	for c := range uint64(dim) {
		rows = append(rows, float32(of.Normal(c)))
	}
	return rows
}

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
			return errEnough // one row group tells
		})
		if err != nil && err != errEnough {
			return nil, err
		}
	}
	switch {
	case with == 0:
		return nil, nil
	case with < len(paths):
		return nil, badFile(paths[0], "columns", "features of edges in some tables and not in others", "them in all or in none", "write the tables again")
	}
	return &rowFeed{file: paths[0], cols: dim, each: func(put func(x []float32) error) error {
		for _, path := range paths {
			if err := eachEdgeList(path, func(n *parquetNodes) error {
				if n.dim != dim {
					return badFile(path, "features", fmt.Sprintf("lists of %d", n.dim), fmt.Sprintf("%d, as in the first table", dim), "write the tables again")
				}
				return put(n.values)
			}); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// errEnough ends a pass over row groups early.
var errEnough = errors.New("enough")

// eachEdgeList hands over the features of each row group of a table that has rows; nil,
// once, if the table has no such column.
func eachEdgeList(path string, do func(n *parquetNodes) error) error {
	p, err := openParquet(path)
	if err != nil {
		return err
	}
	defer p.Close()
	c := p.find(edgeFeatureNames...)
	if c == nil || !c.list || !c.number() {
		return do(nil)
	}
	n := &parquetNodes{path: path}
	for g, group := range p.pf.RowGroups() {
		n.values = n.values[:0]
		if err := n.addFeatures(p, g, []*parquetColumn{c}, int(group.NumRows())); err != nil {
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
