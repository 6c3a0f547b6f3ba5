package plexus

import (
	"starling/exchange"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// multiplying is the aggregator whose products with weights are made by the grid too.
type multiplying struct {
	*exchange.Summed
	by *products
}

func (m *multiplying) Multiply(layer int, r nn.Reduction, y, x, w tensor.Matrix, constant, training bool) {
	m.by.multiply(layer, r, y, x, w, constant, training)
}

func (m *multiplying) MultiplyGrad(layer int, r nn.Reduction, dx, dw, dy, w tensor.Matrix) {
	m.by.multiplyGrad(layer, r, dx, dw, dy, w)
}

// products makes them. The rows of the workers (·, y, z) are a product's slab: they are parts of all slabs of the row
// block.
type products struct{ *blocks }

// ranges are where the vertices of the workers (·, y, z) are in the row block.
func (m *products) ranges(y int) (list [][2]int) {
	for x := range m.grid.x {
		q := m.grid.rank(x, y, m.me.z)
		lo := m.rowAt[x] + m.inSlab(q)
		list = append(list, [2]int{lo, lo + m.size(q)})
	}
	return list
}

// productRows is the number of vertices of the workers (·, y, z).
func (m *products) productRows(y int) (n int) {
	for x := range m.grid.x {
		n += m.size(m.grid.rank(x, y, m.me.z))
	}
	return n
}

// multiply makes H_zy and Q_zx, and gives own rows of Q to their owners along x.
func (m *products) multiply(layer int, r nn.Reduction, y, x, w tensor.Matrix, constant, training bool) {
	t := exchange.Tag{Layer: layer, Kind: wire.Activation}
	h := m.sums(t, r, x, constant)
	if training {
		m.kept[layer] = h
	}
	slab := m.w.Dev.Scratch(y.Type(), m.productRows(m.me.y), m.width(alongX, m.rank, w.Cols))
	block := m.weights(w)
	m.reduce(t, alongY, stepProduct, slab, m.productRows, func(at int, part tensor.Matrix) {
		m.eachRange(at, func(lo, hi, to int) {
			m.matMul(part.Slice(to, to+hi-lo), h.sums.Slice(lo, hi), block, tensor.MatMul{})
		})
	})
	m.toOwners(t, alongX, y, slab)
	m.free(slab)
	if !training && !h.shared {
		m.free(h.sums)
	}
}

// weights is W_yx, or a block of its gradient.
func (m *products) weights(w tensor.Matrix) tensor.Matrix {
	lo, hi := m.part(alongY, m.rank, w.Rows)
	return w.Slice(lo, hi).Columns(m.part(alongX, m.rank, w.Cols))
}

// eachRange calls f for the ranges of a product's slab, and where they are in it.
func (m *products) eachRange(y int, f func(lo, hi, to int)) {
	to := 0
	for _, r := range m.ranges(y) {
		if r[0] < r[1] {
			f(r[0], r[1], to)
		}
		to += r[1] - r[0]
	}
}

// matMul is a product whose sides may have no columns.
func (m *products) matMul(dst, a, w tensor.Matrix, op tensor.MatMul) {
	switch {
	case dst.Rows*dst.Cols == 0:
	case a.Cols == 0:
		m.w.Dev.Zero(dst)
	default:
		m.w.Dev.MatMul(dst, a, w, op)
	}
}

// sums is H_zy, which is made once of constant features.
func (m *products) sums(t exchange.Tag, r nn.Reduction, x tensor.Matrix, constant bool) kept {
	constant = constant && m.w.CacheFirst
	if h, ok := m.constant[r]; ok && constant {
		return h
	}
	if constant {
		t = features
	}
	f := m.inputs(t, x)
	h := kept{m.w.Dev.Scratch(x.Type(), m.rowAt[m.grid.x], f.Cols), constant}
	m.allReduce(t, h.sums, func(lo int, part tensor.Matrix) { m.sum(r, part, f, lo, false) })
	m.free(f)
	if constant {
		m.constant[r] = h
	}
	return h
}

// features is the exchange of constant features.
var features = exchange.Tag{Layer: -1, Kind: wire.Feature}

// allReduce sums a row block over the workers along x: each sums a slab, and all get it. compute makes rows from lo on.
func (m *products) allReduce(t exchange.Tag, block tensor.Matrix, compute func(lo int, part tensor.Matrix)) {
	m.reduce(t, alongX, stepSums, block.Slice(m.rowAt[m.me.x], m.rowAt[m.me.x+1]), slabRows(m.rowAt),
		func(x int, part tensor.Matrix) { compute(m.rowAt[x], part) })
	m.gather(t, alongX, stepShare, block, m.rowAt)
}

// multiplyGrad goes back: dQ is gathered along y, dH all-reduced along x, dF reduce-scattered along z.
func (m *products) multiplyGrad(layer int, r nn.Reduction, dx, dw, dy, w tensor.Matrix) {
	t := exchange.Tag{Layer: layer, Kind: wire.Gradient, Backward: true}
	h := m.kept[layer]
	delete(m.kept, layer)
	dq := m.outputGrads(t, dy)
	if dq.Rows > 0 && h.sums.Cols*dq.Cols > 0 {
		m.w.Dev.MatMul(m.weights(dw), h.sums, dq, tensor.MatMul{TransA: true, Add: true})
	}
	if !h.shared {
		m.free(h.sums)
	}
	if !dx.IsZero() {
		dh := m.w.Dev.Scratch(dy.Type(), dq.Rows, m.width(alongY, m.rank, w.Rows))
		block := m.weights(w)
		m.allReduce(t, dh, func(lo int, part tensor.Matrix) {
			m.matMul(part, dq.Slice(lo, lo+part.Rows), block, tensor.MatMul{TransB: true})
		})
		m.inputGrads(t, r, dx, dh)
		m.free(dh)
	}
	m.free(dq)
}

// outputGrads is dQ_zx of own rows.
func (m *products) outputGrads(t exchange.Tag, own tensor.Matrix) tensor.Matrix {
	dev, cols := m.w.Dev, m.width(alongX, m.rank, own.Cols)
	slabs := dev.Scratch(own.Type(), m.rowAt[m.grid.x], cols) // in the order of y, then x
	at := []int{0}
	for y := range m.grid.y {
		at = append(at, at[y]+m.productRows(y))
	}
	m.leave(t, alongX, stepGrads, slabs.Slice(at[m.me.y], at[m.me.y+1]), own)
	m.gather(t, alongY, stepBlocks, slabs, at)
	block := dev.Scratch(own.Type(), slabs.Rows, cols)
	for y := range m.grid.y {
		m.eachRange(y, func(lo, hi, to int) {
			m.copy(block.Slice(lo, hi), slabs.Slice(at[y]+to, at[y]+to+hi-lo))
		})
	}
	m.free(slabs)
	return block
}
