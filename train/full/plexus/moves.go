package plexus

import (
	"slices"

	"starling/exchange"
	"starling/nn"
	"starling/tensor"
)

// Each step of a layer is an exchange in a group along one axis, and has a number, which tells its messages from those
// of other steps.
const (
	stepLeave   = iota // own rows to blocks of columns, along y
	stepGather         // slabs of a column block, along z
	stepSums           // sums of blocks, along x
	stepShare          // the sums to all of the group, along x
	stepProduct        // products of blocks, along y
	stepReturn         // blocks to their owners
	stepGrads          // own rows of gradients to blocks, along x
	stepBlocks         // slabs of gradients, along y
	stepScatter        // gradients of inputs, along z
)

// peers are the other ranks of a group, beginning with the next.
func (b *blocks) peers(axis int) []int {
	group := b.grid.group(axis, b.rank)
	at := b.grid.place(axis, b.rank)
	return slices.Concat(group[at+1:], group[:at])
}

// part is the columns of a member of a group, of some that the group divides.
func (b *blocks) part(axis, rank, cols int) (lo, hi int) {
	i, n := b.grid.place(axis, rank), b.grid.along(axis)
	return exchange.Cut(cols, i, n), exchange.Cut(cols, i+1, n)
}

func (b *blocks) width(axis, rank, cols int) int {
	lo, hi := b.part(axis, rank, cols)
	return hi - lo
}

// columns is a member's part of own rows.
func (b *blocks) columns(axis, rank int, m tensor.Matrix) tensor.Matrix {
	return m.Columns(b.part(axis, rank, m.Cols))
}

// rowsOf are where the vertices of the group's members begin in a slab of them.
func (b *blocks) rowsOf(axis int) (at []int) {
	at = []int{0}
	for _, q := range b.grid.group(axis, b.rank) {
		at = append(at, at[len(at)-1]+b.size(q))
	}
	return at
}

// leave turns own rows into a slab: the rows of all members of a group, in this worker's columns.
func (b *blocks) leave(t exchange.Tag, axis, step int, slab, own tensor.Matrix) {
	x, at := b.moved.Regroup(t), b.rowsOf(axis)
	for _, q := range b.peers(axis) {
		i := b.grid.place(axis, q)
		x.Receive(q, step, slab.Slice(at[i], at[i+1]))
	}
	for _, q := range b.peers(axis) {
		x.Send(q, step, b.columns(axis, q, own))
	}
	i := b.grid.place(axis, b.rank)
	b.copy(slab.Slice(at[i], at[i+1]), b.columns(axis, b.rank, own))
	x.Wait()
	x.Done()
}

// toOwners turns a slab into own rows: leave, reversed.
func (b *blocks) toOwners(t exchange.Tag, axis int, own, slab tensor.Matrix) {
	x, at := b.moved.Regroup(t), b.rowsOf(axis)
	for _, q := range b.peers(axis) {
		x.Receive(q, stepReturn, b.columns(axis, q, own))
	}
	for _, q := range b.peers(axis) {
		i := b.grid.place(axis, q)
		x.Send(q, stepReturn, slab.Slice(at[i], at[i+1]))
	}
	i := b.grid.place(axis, b.rank)
	b.copy(b.columns(axis, b.rank, own), slab.Slice(at[i], at[i+1]))
	x.Wait()
	x.Done()
}

// gather fills a block with the slabs of all members of a group; slab is this worker's, in its place already.
func (b *blocks) gather(t exchange.Tag, axis, step int, block tensor.Matrix, at []int) {
	x, me := b.moved.Regroup(t), b.grid.place(axis, b.rank)
	for _, q := range b.peers(axis) {
		i := b.grid.place(axis, q)
		x.Receive(q, step, block.Slice(at[i], at[i+1]))
	}
	for _, q := range b.peers(axis) {
		x.Send(q, step, block.Slice(at[me], at[me+1]))
	}
	x.Wait()
	x.Done()
}

// reduce sums over a group what its members have for this worker's slab, in their order. compute makes a member's slab
// of this worker's part: it leaves while the next is made.
func (b *blocks) reduce(t exchange.Tag, axis, step int, sum tensor.Matrix, rows func(place int) int,
	compute func(place int, slab tensor.Matrix)) {
	dev, x, me := b.w.Dev, b.moved.Regroup(t), b.grid.place(axis, b.rank)
	theirs := make([]tensor.Matrix, b.grid.along(axis))
	for _, q := range b.peers(axis) {
		i := b.grid.place(axis, q)
		theirs[i] = dev.Scratch(sum.Type(), sum.Rows, sum.Cols)
		x.Receive(q, step, theirs[i])
	}
	for _, q := range b.peers(axis) {
		i := b.grid.place(axis, q)
		slab := dev.Scratch(sum.Type(), rows(i), sum.Cols)
		compute(i, slab)
		x.Give(q, step, slab)
	}
	theirs[me] = dev.Scratch(sum.Type(), sum.Rows, sum.Cols)
	compute(me, theirs[me])
	x.Wait()
	for i, m := range theirs {
		if sum.Rows*sum.Cols > 0 && i == 0 {
			dev.Copy(sum, m)
		} else if sum.Rows*sum.Cols > 0 {
			dev.Combine(sum, 1, sum, 1, m)
		}
		dev.Free(m)
	}
	x.Done()
}

func (b *blocks) copy(dst, src tensor.Matrix) {
	if dst.Rows*dst.Cols > 0 {
		b.w.Dev.Copy(dst, src)
	}
}

// sum is rows from lo on of the block's sums; backward of its columns' gradients.
func (b *blocks) sum(r nn.Reduction, dst, src tensor.Matrix, lo int, backward bool) {
	switch {
	case dst.Rows*dst.Cols == 0:
	case src.Rows == 0:
		b.w.Dev.Zero(dst)
	case backward:
		b.edge.SumGradOf(r, dst, src, lo)
	default:
		b.edge.SumOf(r, dst, src, lo, false)
	}
}

// inputs is F_xy of own rows: rows of the column block, in this worker's columns.
func (b *blocks) inputs(t exchange.Tag, own tensor.Matrix) tensor.Matrix {
	f := b.w.Dev.Scratch(own.Type(), b.colAt[b.grid.z], b.width(alongY, b.rank, own.Cols))
	b.leave(t, alongY, stepLeave, f.Slice(b.colAt[b.me.z], b.colAt[b.me.z+1]), own)
	b.gather(t, alongZ, stepGather, f, b.colAt)
	return f
}

// slabRows are the rows of the slabs of a block.
func slabRows(at []int) func(int) int { return func(i int) int { return at[i+1] - at[i] } }

// Sum: dst = A·src, rows by their owners. The block's sums are reduce-scattered along x.
func (b *blocks) Sum(t exchange.Tag, r nn.Reduction, dst, src tensor.Matrix) {
	f := b.inputs(t, src)
	slab := b.w.Dev.Scratch(src.Type(), slabRows(b.rowAt)(b.me.x), f.Cols)
	b.reduce(t, alongX, stepSums, slab, slabRows(b.rowAt), func(x int, part tensor.Matrix) {
		b.sum(r, part, f, b.rowAt[x], false)
	})
	b.toOwners(t, alongY, dst, slab)
	b.free(f, slab)
}

// SumGrad: dsrc = Aᵀ·ddst: gathered along x, reduce-scattered along z.
func (b *blocks) SumGrad(t exchange.Tag, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	h := b.w.Dev.Scratch(ddst.Type(), b.rowAt[b.grid.x], b.width(alongY, b.rank, ddst.Cols))
	b.leave(t, alongY, stepLeave, h.Slice(b.rowAt[b.me.x], b.rowAt[b.me.x+1]), ddst)
	b.gather(t, alongX, stepShare, h, b.rowAt)
	b.inputGrads(t, r, dsrc, h)
	b.free(h)
}

// inputGrads is the gradient of own rows, of H's.
func (b *blocks) inputGrads(t exchange.Tag, r nn.Reduction, own, h tensor.Matrix) {
	slab := b.w.Dev.Scratch(own.Type(), slabRows(b.colAt)(b.me.z), h.Cols)
	b.reduce(t, alongZ, stepScatter, slab, slabRows(b.colAt), func(z int, part tensor.Matrix) {
		b.sum(r, part, h, b.colAt[z], true)
	})
	b.toOwners(t, alongY, own, slab)
	b.free(slab)
}

func (b *blocks) free(list ...tensor.Matrix) {
	for _, m := range list {
		b.w.Dev.Free(m)
	}
}
