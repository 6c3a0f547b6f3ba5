package sample

import "slices"

// Restriction makes of a batch the part that some of its seeds need. Its memory is reused.
type Restriction struct {
	// Rows are the rows of the batch that are left, in their new order.
	Rows []uint32

	row    []int32 // of an old row: its new one, or -1
	blocks []Block
	edges  [][]int64 // of an old block: which of its edges are left
}

// Restrict leaves of b what the seeds marked need, over the given layers where one block serves all
// of them. It returns the edges that are left of each block, in their order. A block's OwnDegrees
// no longer holds: degrees are the degrees in the batch before, which the caller knows.
func (r *Restriction) Restrict(b *Batch, mine []bool, layers int) (edges [][]int64) {
	r.begin(b)
	seeds, weights := b.Seeds, b.SeedWeights
	b.Seeds, b.SeedWeights = nil, nil
	for i, row := range seeds {
		if mine[i] {
			b.Seeds = append(b.Seeds, r.add(row))
			if len(weights) > 0 {
				b.SeedWeights = append(b.SeedWeights, weights[i])
			}
		}
	}
	if len(b.Blocks) == 1 && layers > 1 {
		r.subgraph(&b.Blocks[0], layers)
	} else {
		for l := len(b.Blocks) - 1; l >= 0; l-- {
			x := &b.Blocks[l]
			r.rows(x, &r.blocks[l], l, len(r.Rows))
		}
	}
	for l := range b.Blocks {
		b.Blocks[l], r.blocks[l] = r.blocks[l], b.Blocks[l]
	}
	old := slices.Clone(b.Vertices)
	b.Vertices = b.Vertices[:0]
	for _, row := range r.Rows {
		b.Vertices = append(b.Vertices, old[row])
	}
	return r.edges
}

func (r *Restriction) begin(b *Batch) {
	r.Rows, r.row = r.Rows[:0], slices.Grow(r.row[:0], len(b.Vertices))[:len(b.Vertices)]
	for i := range r.row {
		r.row[i] = -1
	}
	for len(r.blocks) < len(b.Blocks) {
		r.blocks, r.edges = append(r.blocks, Block{}), append(r.edges, nil)
	}
	r.edges = r.edges[:len(b.Blocks)]
	for l := range r.edges {
		x := &r.blocks[l]
		r.edges[l] = r.edges[l][:0]
		*x = Block{Indptr: append(x.Indptr[:0], 0), Indices: x.Indices[:0], Weights: x.Weights[:0],
			RowWeights: x.RowWeights[:0], Places: x.Places[:0]}
	}
}

// add is the new row of an old one.
func (r *Restriction) add(old uint32) uint32 {
	if r.row[old] < 0 {
		r.row[old] = int32(len(r.Rows))
		r.Rows = append(r.Rows, old)
	}
	return uint32(r.row[old])
}

// rows copies a block's edges of the first n rows that are left, beginning with those that to has
// not yet.
func (r *Restriction) rows(from, to *Block, block, n int) {
	for i := len(to.Indptr) - 1; i < n; i++ {
		old := r.Rows[i]
		for e := from.Indptr[old]; e < from.Indptr[old+1]; e++ {
			to.Indices = append(to.Indices, r.add(from.Indices[e]))
			r.edges[block] = append(r.edges[block], e)
			if len(from.Weights) > 0 {
				to.Weights = append(to.Weights, from.Weights[e])
			}
			if len(from.Places) > 0 {
				to.Places = append(to.Places, from.Places[e])
			}
		}
		if len(from.RowWeights) > 0 {
			to.RowWeights = append(to.RowWeights, from.RowWeights[old])
		}
		to.Indptr = append(to.Indptr, int64(len(to.Indices)))
	}
	to.Dst, to.Src = n, len(r.Rows)
}

// subgraph leaves the rows within layers hops of the seeds, and the edges into all but the
// farthest, whose sums no seed needs.
func (r *Restriction) subgraph(from *Block, layers int) {
	to := &r.blocks[0]
	for range layers {
		r.rows(from, to, 0, len(r.Rows))
	}
	for len(to.Indptr) <= len(r.Rows) {
		to.Indptr = append(to.Indptr, int64(len(to.Indices)))
	}
	to.Dst, to.Src = len(r.Rows), len(r.Rows)
}
