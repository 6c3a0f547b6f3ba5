package plexus

import (
	"encoding/binary"
	"fmt"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// blocks is a worker (x, y, z) of a grid. Vertices of the row block z are in the order of their
// owners' x, then y; those of the column block x in the order of z, then y:
//
//	row block     (x0,y0) (x0,y1) … | (x1,y0) …      a slab per x
//	column block  (z0,y0) (z0,y1) … | (z1,y0) …      a slab per z
//
// The slab of (x, z) is in both: the vertices of the workers along y.
type blocks struct {
	w     *exchange.Worker
	moved *exchange.Rows
	grid  grid
	me    grid // where this worker is
	rank  int
	kind  nn.Kind
	rows  bool // products are made by owners

	rowAt []int // where the slab of each x begins in the row block
	colAt []int // where the slab of each z begins in the column block
	slabs [][]int
	edge  *nn.Topology // A_zx; nil: in a dry run of bytes

	kept     map[int]kept // H of layers in the training pass
	constant map[nn.Reduction]kept
}

// kept is H_zy of a layer.
type kept struct {
	sums   tensor.Matrix
	shared bool // it is kept for all passes
}

// size is the number of vertices of a rank.
func (b *blocks) size(rank int) int { return int(b.w.Part.Book.Size(rank)) }

// layout finds where slabs begin.
func (b *blocks) layout() {
	g, me := b.grid, b.me
	b.rowAt, b.colAt = []int{0}, []int{0}
	for x := range g.x {
		b.rowAt = append(b.rowAt, b.rowAt[x]+b.slab(x, me.z))
	}
	for z := range g.z {
		b.colAt = append(b.colAt, b.colAt[z]+b.slab(me.x, z))
	}
}

// slab is the number of vertices of the workers (x, ·, z).
func (b *blocks) slab(x, z int) (n int) {
	for y := range b.grid.y {
		n += b.size(b.grid.rank(x, y, z))
	}
	return n
}

// inSlab is where a rank's vertices begin in their slab.
func (b *blocks) inSlab(rank int) (at int) {
	p := b.grid.at(rank)
	for y := range p.y {
		at += b.size(b.grid.rank(p.x, y, p.z))
	}
	return at
}

// columnOf is where a rank's vertices begin in the column block of their x.
func (b *blocks) columnOf(rank int) (at int) {
	p := b.grid.at(rank)
	for z := range p.z {
		at += b.slab(p.x, z)
	}
	return at + b.inSlab(rank)
}

// What workers send each other before training, to those that need it:
//
//	to (x, ·, z) of this worker's z    per own vertex: what its row is scaled by (float64) and the
//	                                   number of its in-edges from column block x; then their
//	                                   columns, and weights where edges have any
//	to (x, ·, ·) of this worker's x    per own vertex: what its column is scaled by (float64)

// sizeBytes is what a worker announces the length of its message with.
const sizeBytes = 8

// sharesBlock reports whether a worker has edges or degrees for this one's block, and this one for its.
func (b *blocks) sharesBlock(q int) bool {
	p := b.grid.at(q)
	return p.z == b.me.z || p.x == b.me.x
}

// edges are the messages to all workers.
func (b *blocks) edges() [][]byte {
	out := make([][]byte, b.grid.workers())
	var byX [][]byte
	for q := range out {
		p := b.grid.at(q)
		if p.z == b.me.z {
			if byX == nil {
				byX = b.edgesByColumn()
			}
			out[q] = append(out[q], byX[p.x]...)
		}
		if p.x == b.me.x {
			for v := range b.w.Part.Core() {
				out[q] = append(out[q], number64(b.degree(v))...)
			}
		}
	}
	return out
}

// prepared is what the messages take, with what announces their lengths.
func (b *blocks) prepared(out [][]byte) wire.Bytes {
	sent := wire.Bytes{}
	for _, q := range b.w.Peers() {
		if b.sharesBlock(q) {
			sent.Add(b.w.Class(wire.Topology, -1, q), int64(sizeBytes+len(out[q])))
		}
	}
	return sent
}

func number64(x float64) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, x)
	return b
}

// degree is what a vertex's rows are scaled by: nn makes the factor of it.
func (b *blocks) degree(v int) float64 {
	p := b.w.Part
	if b.kind == nn.Symmetric {
		return p.GCNDegree(uint32(v))
	}
	if p.In.Weights == nil {
		return float64(p.Degrees[v])
	}
	d := 0.0
	for _, x := range p.In.Weights[p.In.Indptr[v]:p.In.Indptr[v+1]] {
		d += float64(x)
	}
	return d
}

// source is an in-edge of an own vertex. Its own row counts as one where the reduction has it.
type source struct {
	column uint32
	weight float32
}

// edgesByColumn is this worker's part of the messages to column blocks.
func (b *blocks) edgesByColumn() [][]byte {
	out := make([][]byte, b.grid.x)
	lists := make([][]source, b.grid.x)
	weights := make([][]float32, b.grid.x)
	columns := make([][]uint32, b.grid.x)
	starts := make([]int, b.w.End.Size())
	for q := range starts {
		starts[q] = b.columnOf(q)
	}
	for v := range b.w.Part.Core() {
		for x := range lists {
			lists[x] = lists[x][:0]
		}
		b.eachSource(v, func(owner, local int, weight float32) {
			x := b.grid.at(owner).x
			lists[x] = append(lists[x], source{uint32(starts[owner] + local), weight})
		})
		for x, list := range lists {
			out[x] = append(out[x], number64(b.degree(v))...)
			out[x] = binary.LittleEndian.AppendUint32(out[x], uint32(len(list)))
			for _, s := range list {
				columns[x], weights[x] = append(columns[x], s.column), append(weights[x], s.weight)
			}
		}
	}
	for x := range out {
		out[x], _ = binary.Append(out[x], binary.LittleEndian, columns[x])
		if b.w.Part.Book.Weighted {
			out[x], _ = binary.Append(out[x], binary.LittleEndian, weights[x])
		}
	}
	return out
}

// eachSource calls f for the in-edges of an own vertex under the model's reduction.
func (b *blocks) eachSource(v int, f func(owner, local int, weight float32)) {
	in, book := b.w.Part.In, b.w.Part.Book
	for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
		u, weight := b.w.Global(in.Indices[e]), float32(1)
		if in.Weights != nil {
			weight = in.Weights[e]
		}
		owner := book.Owner(u)
		local := int(int64(u) - book.Offsets[owner])
		if b.kind != nn.Symmetric || owner != b.rank || local != v {
			f(owner, local, weight)
		}
	}
	if b.kind == nn.Symmetric || b.kind == nn.MeanSelf {
		f(b.rank, v, 1)
	}
}

// receiveEdges makes the block A_zx of what its rows' owners have.
func (b *blocks) receiveEdges(out [][]byte) error {
	setup := exchange.NewSetup(b.w)
	in, err := setup.SwapAmong(wire.Topology, b.sharesBlock, out)
	if err != nil {
		return err
	}
	read := make([]*exchange.Reader, len(in))
	for q := range in {
		read[q] = exchange.NewReader(in[q])
	}
	cols := b.colAt[b.grid.z]
	g := &graph.CSR{Indptr: []int64{0}}
	rowScale, colScale := &nn.Degrees{}, &nn.Degrees{}
	for x := range b.grid.x {
		for y := range b.grid.y {
			q := b.grid.rank(x, y, b.me.z)
			if err := b.readRows(g, rowScale, read[q], b.size(q), cols); err != nil {
				return fmt.Errorf("the edges of worker %d: %w", q, err)
			}
		}
	}
	for z := range b.grid.z {
		for y := range b.grid.y {
			q := b.grid.rank(b.me.x, y, z)
			colScale.All = append(colScale.All, read[q].Doubles(b.size(q))...)
			if err := read[q].Err(); err != nil {
				return fmt.Errorf("the degrees of worker %d: %w", q, err)
			}
		}
	}
	b.edge = nn.NewPart(b.w.Dev, g, cols, rowScale, colScale, false)
	return nil
}

// readRows reads the edges of a worker's vertices from this worker's column block.
func (b *blocks) readRows(g *graph.CSR, scale *nn.Degrees, r *exchange.Reader, vertices, cols int) error {
	edges := 0
	for range vertices {
		scale.All = append(scale.All, r.Doubles(1)...)
		n := int(r.Number())
		edges += n
		g.Indptr = append(g.Indptr, g.Indptr[len(g.Indptr)-1]+int64(n))
	}
	columns := r.Numbers(edges)
	r.Below("column", int64(cols), columns...)
	g.Indices = append(g.Indices, columns...)
	if b.w.Part.Book.Weighted {
		g.Weights = append(g.Weights, r.Floats(edges)...)
	}
	return r.Err()
}
