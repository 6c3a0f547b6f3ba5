package store

import "starling/sample"

// Known is what was learned of the vertices of a batch, row by row.
type Known struct {
	IDs     []uint32  // in the dataset
	NoLoops []float64 // degrees without loops, by weight
	All     []float64 // degrees, by weight; of destinations only
	// EdgeFeatures are the features of the edges, by block and in its order.
	EdgeFeatures [][]float32
}

// begin forgets all vertices.
func (k *Known) begin(blocks int) {
	k.IDs, k.NoLoops, k.All = k.IDs[:0], k.NoLoops[:0], k.All[:0]
	for len(k.EdgeFeatures) < blocks {
		k.EdgeFeatures = append(k.EdgeFeatures, nil)
	}
}

// grow makes place for more rows.
func (k *Known) grow(rows int) {
	for len(k.IDs) < rows {
		k.IDs, k.NoLoops = append(k.IDs, 0), append(k.NoLoops, 0)
	}
}

// destination learns of a row from what it drew.
func (k *Known) destination(row int, d *drawn, at int) {
	if row == len(k.All) {
		k.All = append(k.All, d.all[at])
	}
	if len(d.own) > 0 {
		k.IDs[row], k.NoLoops[row] = d.own[at], d.ownNoLoops[at]
	}
}

// source learns of a row that is the source of an edge.
func (k *Known) source(row uint32, d *drawn, at uint32) {
	if int(row) >= len(k.IDs) {
		k.grow(int(row) + 1)
	}
	k.IDs[row], k.NoLoops[row] = d.about(at)
}

// induced makes a batch's block of all edges between its vertices, which rows numbers. visit goes through what they
// drew, in their order, and each is given that too.
func (k *Known) induced(b *sample.Batch, dim int, visit func(f func(i int, d *drawn, at int)), rows *rowTable,
	each func(d *drawn, at int)) {
	x := &b.Blocks[0]
	features := k.EdgeFeatures[0][:0]
	x.Dst, x.Src = len(b.Vertices), len(b.Vertices)
	visit(func(i int, d *drawn, at int) {
		k.destination(i, d, at)
		features = d.appendTo(x, features, at, dim, func(u uint32) uint32 {
			row, _ := rows.find(d.source(u))
			return row
		})
		each(d, at)
	})
	k.EdgeFeatures[0] = features
}

// restriction leaves of a batch, and of what is known of it, what some seeds need.
type restriction struct {
	sample.Restriction
	old Known
}

func (r *restriction) restrict(b *sample.Batch, known *Known, mine []bool, layers, dim int) {
	if len(b.Blocks) == 1 && b.Blocks[0].OwnDegrees {
		known.ownDegrees(&b.Blocks[0])
	}
	edges := r.Restrict(b, mine, layers)
	r.old.IDs = append(r.old.IDs[:0], known.IDs...)
	r.old.NoLoops = append(r.old.NoLoops[:0], known.NoLoops...)
	r.old.All = append(r.old.All[:0], known.All...)
	known.IDs, known.NoLoops, known.All = known.IDs[:0], known.NoLoops[:0], known.All[:0]
	dst := 0
	for i := range b.Blocks {
		dst = max(dst, b.Blocks[i].Dst)
	}
	for i, row := range r.Rows {
		known.IDs, known.NoLoops = append(known.IDs, r.old.IDs[row]), append(known.NoLoops, r.old.NoLoops[row])
		if i < dst {
			known.All = append(known.All, r.old.All[row])
		}
	}
	for l, list := range edges {
		rows, kept := known.EdgeFeatures[l], make([]float32, 0, len(list)*dim)
		for _, e := range list {
			kept = append(kept, rows[int(e)*dim:(int(e)+1)*dim]...)
		}
		known.EdgeFeatures[l] = kept
	}
}

// ownDegrees makes known degrees those in a block.
func (k *Known) ownDegrees(x *sample.Block) {
	for i := range x.Dst {
		k.All[i], k.NoLoops[i] = x.OwnDegree(i)
	}
}
