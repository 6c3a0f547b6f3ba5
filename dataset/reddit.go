package dataset

import (
	"cmp"
	"fmt"
	"path/filepath"

	"starling/dataset/table"
	"starling/graph"
)

// Reddit as DGL ships it: a folder with
//
//	reddit_data.npz     feature [vertices, 602], label, node_types (1 train, 2 validate, 3 test)
//	reddit_graph.npz    scipy COO: row, col, data, shape; an edge goes from row to col
//
// Both are deflated and streamed.

func readReddit(dir string, opt ImportOptions) (*read, error) {
	r := &read{name: cmp.Or(opt.Name, "reddit")}
	z, err := openNPZ(filepath.Join(dir, "reddit_graph.npz"))
	if err != nil {
		return nil, err
	}
	z.kind = "scipy COO"
	r.edges, err = z.coo()
	if err == nil {
		err = redditData(filepath.Join(dir, "reddit_data.npz"), r.edges.nodes, r)
	}
	if err != nil {
		z.zip.Close()
		return nil, err
	}
	return r, nil
}

// coo streams the edges of a scipy COO matrix.
func (z *npz) coo() (*edgeFeed, error) {
	n, err := z.square()
	if err != nil {
		return nil, err
	}
	row, err := z.stream("row")
	if err != nil {
		return nil, err
	}
	row.Close()
	col, err := z.stream("col")
	if err != nil {
		return nil, err
	}
	col.Close()
	if len(row.Shape) != 1 || len(col.Shape) != 1 || row.Shape[0] != col.Shape[0] || row.Shape[0] > graph.MaxEdges {
		return nil, z.bad("row, col", fmt.Sprintf("shapes %v and %v", row.Shape, col.Shape), "a number of each an edge")
	}
	edges := row.Shape[0]
	return &edgeFeed{nodes: n, expected: edges, close: func() { z.zip.Close() }, fill: func(s *graph.Sorter) error {
		row, err := z.stream("row")
		if err != nil {
			return err
		}
		defer row.Close()
		col, err := z.stream("col")
		if err != nil {
			return err
		}
		defer col.Close()
		return z.named("row, col", addPairs(s, prefetch(row, edges, true), prefetch(col, edges, true)))
	}}, nil
}

func redditData(path string, n int, r *read) error {
	z, err := openNPZ(path)
	if err != nil {
		return err
	}
	defer z.zip.Close()
	z.kind = "DGL Reddit"
	if r.labels, err = z.classes("label", n); err != nil {
		return err
	}
	a, err := z.array("node_types")
	if err != nil {
		return err
	}
	types, err := a.int64s()
	if err != nil || len(types) != n {
		return z.bad("node_types", fmt.Sprintf("shape %v of %s", a.shape, a.descr),
			fmt.Sprintf("one number per vertex (%d)", n))
	}
	for v, t := range types {
		switch t {
		case 0:
		case 1:
			r.splits.Train = append(r.splits.Train, uint32(v))
		case 2:
			r.splits.Val = append(r.splits.Val, uint32(v))
		case 3:
			r.splits.Test = append(r.splits.Test, uint32(v))
		default:
			return z.bad("node_types", fmt.Sprintf("%d at vertex %d", t, v), "1, 2 or 3")
		}
	}
	r.rows, err = rowsOf(path, "feature", n,
		func() (*table.Array, error) { return openInNPZ(path, "DGL Reddit", "feature") })
	return err
}
