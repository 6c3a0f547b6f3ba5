package plexus

import (
	"starling/exchange"
	"starling/nn"
	"starling/wire"
)

// What a worker sends is known from the sizes of parts and the widths of layers: each of these is the numbers that a
// step sends to a peer of its group.

// leaves is own rows in a peer's columns.
func (b *blocks) leaves(axis, cols, peer int) int64 {
	return int64(b.size(b.rank)) * int64(b.width(axis, peer, cols))
}

// returns is a peer's rows in this worker's columns.
func (b *blocks) returns(axis, cols, peer int) int64 {
	return int64(b.size(peer)) * int64(b.width(axis, b.rank, cols))
}

// Numbers are what sums alone send.
func (b *blocks) Numbers(cols int, backward bool, peer int) (n int64) {
	w := int64(b.width(alongY, b.rank, cols))
	for _, axis := range b.axesTo(peer) {
		switch axis {
		case alongY:
			n += b.leaves(alongY, cols, peer) + b.returns(alongY, cols, peer)
		case alongX: // slabs of sums to their workers, or this worker's to all
			n += w * int64(b.slab(b.grid.at(b.either(backward, b.rank, peer)).x, b.me.z))
		case alongZ:
			n += w * int64(b.slab(b.me.x, b.grid.at(b.either(!backward, b.rank, peer)).z))
		}
	}
	return n
}

func (b *blocks) either(first bool, x, y int) int {
	if first {
		return x
	}
	return y
}

// axesTo is the axis along which a peer is in a group with this worker; none: it is in none.
func (b *blocks) axesTo(peer int) (list []int) {
	for axis := range 3 {
		group := b.grid.group(axis, b.rank)
		if i := b.grid.place(axis, peer); peer != b.rank && group[i] == peer {
			list = append(list, axis)
		}
	}
	return list
}

// Plan is what the worker will send where the grid multiplies. Layers over sparse features make sums alone.
func (on *multiplying) Plan(model *nn.Model) *wire.Plan {
	p, m := wire.NewPlan(), on.by
	p.Shared = true
	p.Prepare.AddAll(on.Prepare, 1)
	epoch := wire.Bytes{}
	sparse := m.w.SparseFeatures()
	training, measuring := model.Traffic(sparse, m.w.FirstSum(), true), model.Traffic(sparse, m.w.FirstSum(), false)
	for i, t := range training {
		l, ok := model.Product(i, sparse, true)
		if !ok {
			on.PlanSum(p.Measure, rowsOf(t.Layer), measuring[i].Forward.Rows)
			on.PlanSum(epoch, rowsOf(t.Layer), t.Forward.Rows)
			on.PlanSum(epoch, gradsOf(t.Layer), t.Backward.Rows)
			continue
		}
		measured, _ := model.Product(i, sparse, false)
		once := l.Constant && m.w.CacheFirst
		switch later := measured.Constant && m.w.CacheFirst; {
		case once:
			m.planSums(p.Once, features, l)
		case later: // dropout is drawn on the features in training only
			m.planSums(p.OnceMeasured, features, l)
			m.planSums(epoch, rowsOf(l.Layer), l)
		default:
			m.planSums(p.Measure, rowsOf(l.Layer), l)
			m.planSums(epoch, rowsOf(l.Layer), l)
		}
		m.planProducts(p.Measure, l)
		m.planProducts(epoch, l)
		m.planGrads(epoch, l)
	}
	p.Epoch = func(int) wire.Bytes {
		out := wire.Bytes{}
		out.AddAll(epoch, 1)
		return out
	}
	return p
}

func rowsOf(layer int) exchange.Tag { return exchange.Tag{Layer: layer, Kind: wire.Activation} }

func gradsOf(layer int) exchange.Tag {
	return exchange.Tag{Layer: layer, Kind: wire.Gradient, Backward: true}
}

// plan adds what a function sends to each peer of a group.
func (m *products) plan(into wire.Bytes, t exchange.Tag, axis int, numbers func(peer int) int64) {
	size := int64(m.w.Dev.RowType(m.w.Rows).Size())
	for _, q := range m.peers(axis) {
		into.Add(m.w.Class(t.Kind, t.Layer, q), size*numbers(q))
	}
}

// planSums is H_zy: own rows along y, slabs along z, and the all-reduce along x.
func (m *products) planSums(into wire.Bytes, t exchange.Tag, l nn.Product) {
	w := int64(m.width(alongY, m.rank, l.In))
	m.plan(into, t, alongY, func(q int) int64 { return m.leaves(alongY, l.In, q) })
	m.plan(into, t, alongZ, func(int) int64 { return w * int64(m.slab(m.me.x, m.me.z)) })
	m.planAllReduce(into, t, w)
}

func (m *products) planAllReduce(into wire.Bytes, t exchange.Tag, width int64) {
	m.plan(into, t, alongX, func(q int) int64 {
		return width * int64(m.slab(m.grid.at(q).x, m.me.z)+m.slab(m.me.x, m.me.z))
	})
}

// planProducts is Q_zx: slabs along y, and rows to their owners along x.
func (m *products) planProducts(into wire.Bytes, l nn.Product) {
	w := int64(m.width(alongX, m.rank, l.Out))
	m.plan(into, rowsOf(l.Layer), alongY, func(q int) int64 { return w * int64(m.productRows(m.grid.at(q).y)) })
	m.plan(into, rowsOf(l.Layer), alongX, func(q int) int64 { return m.returns(alongX, l.Out, q) })
}

// planGrads is the way back.
func (m *products) planGrads(into wire.Bytes, l nn.Product) {
	t, out := gradsOf(l.Layer), int64(m.width(alongX, m.rank, l.Out))
	m.plan(into, t, alongX, func(q int) int64 { return m.leaves(alongX, l.Out, q) })
	m.plan(into, t, alongY, func(int) int64 { return out * int64(m.productRows(m.me.y)) })
	if !l.WantDX {
		return
	}
	in := int64(m.width(alongY, m.rank, l.In))
	m.planAllReduce(into, t, in)
	m.plan(into, t, alongZ, func(q int) int64 { return in * int64(m.slab(m.me.x, m.grid.at(q).z)) })
	m.plan(into, t, alongY, func(q int) int64 { return m.returns(alongY, l.In, q) })
}
