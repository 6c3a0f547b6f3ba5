package batch

import (
	"starling/nn"
	"starling/tensor"
)

// A block's edges divided: those from the first of its sources, whose rows are here, and those from the others, whose
// rows travel. Sums over the first are computed meanwhile, and gradients of the others leave first.

// dividedEdges are a block's edges in its form, by destination.
type dividedEdges struct {
	here          int // sources; 0: the edges are not divided
	local, remote sparseRows
}

// Divide separates the edges of a prepared block: those from its first sources and those from the others, which are
// numbered from 0.
func (r *Batch) Divide(block, here int) {
	e := &r.edges[block]
	d := &e.divided
	d.here = here
	d.local.reset()
	d.remote.reset()
	for i := range len(e.in.ptr) - 1 {
		for k := e.in.ptr[i]; k < e.in.ptr[i+1]; k++ {
			to, u := &d.local, e.in.index[k]
			if int(u) >= here {
				to, u = &d.remote, u-uint32(here)
			}
			to.index = append(to.index, u)
			if len(e.in.value) > 0 {
				to.value = append(to.value, e.in.value[k])
			}
		}
		d.local.ptr = append(d.local.ptr, int64(len(d.local.index)))
		d.remote.ptr = append(d.remote.ptr, int64(len(d.remote.index)))
	}
}

func (s *sparseRows) reset() {
	s.ptr, s.index, s.value = append(s.ptr[:0], 0), s.index[:0], s.value[:0]
}

// putDivided puts a block's divided edges on the device.
func (a *Blocks) putDivided(m *onDevice, d *dividedEdges) {
	if m.local, m.remote = nil, nil; d.here == 0 {
		return
	}
	put := func(s *sparseRows, sources int) *tensor.Sparse {
		return tensor.NewSparse(a.dev, m.in.Rows, sources, s.ptr, s.index, orNil(s.value))
	}
	m.local, m.remote = put(&d.local, d.here), put(&d.remote, m.in.Cols-d.here)
}

// SumLocal is Sum over the edges from rows that are here, of a block whose edges are divided.
// SumRemote adds the others.
func (a *Blocks) SumLocal(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	x, m := a.of(layer)
	a.scale(x, m, r.Kind)
	col := first(m.col, m.local.Cols)
	op := tensor.Aggregate{RowScale: m.rows, ColScale: col}
	if len(x.RowWeights) == 0 {
		op.Self = SelfWeight(r)
	}
	a.dev.Aggregate(dst, m.local, src, op)
	if len(x.RowWeights) > 0 {
		a.addOwn(r, dst, src.Slice(0, dst.Rows), m.own, col)
	}
}

// SumRemote adds the sums over the edges from rows that have come.
func (a *Blocks) SumRemote(layer int, r nn.Reduction, dst, rows tensor.Matrix) {
	x, m := a.of(layer)
	a.scale(x, m, r.Kind)
	a.dev.Aggregate(dst, m.remote, rows,
		tensor.Aggregate{RowScale: m.rows, ColScale: after(m.col, m.local.Cols), Add: true})
}

// RemoteGrad is SumGrad for the rows that came, and LocalGrad for those that are here.
func (a *Blocks) RemoteGrad(layer int, r nn.Reduction, drows, ddst tensor.Matrix) {
	x, m := a.of(layer)
	a.scale(x, m, r.Kind)
	here := m.local.Cols
	a.dev.Aggregate(drows, m.out.Slice(here, m.out.Rows), ddst,
		tensor.Aggregate{RowScale: after(m.col, here), ColScale: m.rows})
}

// LocalGrad is SumGrad for the rows that are here.
func (a *Blocks) LocalGrad(layer int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	x, m := a.of(layer)
	a.scale(x, m, r.Kind)
	a.dev.Aggregate(dsrc, m.out.Slice(0, m.local.Cols), ddst,
		tensor.Aggregate{RowScale: first(m.col, m.local.Cols), ColScale: m.rows})
	a.addOwn(r, dsrc.Slice(0, ddst.Rows), ddst, m.col, m.own)
}

// after is a scale from row n on, if there is one.
func after(scale tensor.Matrix, n int) tensor.Matrix {
	if scale.IsZero() {
		return scale
	}
	return scale.Slice(n, scale.Rows)
}
