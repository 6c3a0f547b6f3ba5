package cuda

import "starling/tensor"

// edgeArgs is EdgeArgs of kernels/edgewise.cu.
type edgeArgs struct {
	rows                      rowArgs
	dst, z, right, ddst, film mat
	a                         uintptr
	alpha, de, delta          mat
	heads, width              int64
	slope                     float64
	drop                      drop
	srcIDs, perm              uintptr
	features, weight          mat
	bias, ptr                 uintptr
	piece, kind, add          int64
	part                      uintptr
	which                     int64
}

func edgesOf(z Matrix, x EdgeInput) edgeArgs {
	a := edgeArgs{z: of(z), features: of(x.Features), weight: of(x.Weight), heads: 1, width: int64(z.Cols)}
	if !x.Features.IsZero() {
		a.bias = vector("the edges' bias", x.Bias, z.Cols)
	}
	if x.Features.Rows*x.Features.Cols == 0 {
		a.features = mat{}
	}
	return a
}

func dynamicOf(z, right, v Matrix, op Attention, x EdgeInput) edgeArgs {
	a := edgesOf(z, x)
	a.right, a.a, a.heads, a.width = of(right), vector("the scores' vector", v, z.Cols), int64(op.Heads), int64(z.Cols/op.Heads)
	a.slope, a.drop, a.srcIDs = op.Slope, dropOf(op.Dropout), atIndex(op.SrcIDs)
	return a
}

// columns runs a kernel over rows and columns, whose result is dst.
func (d *Device) columns(name string, s *Sparse, dst Matrix, a edgeArgs) {
	if dst.Rows*dst.Cols == 0 {
		return
	}
	a.dst = of(dst)
	d.overRows(s, dst.Cols, func(r rowArgs) {
		a.rows = r
		launch(d, "edgewise", name, tiles32(r.n, dst.Cols), oneBlock, &a)
	}, d.joinTo(dst, a.add != 0))
}

// heads runs a kernel over rows and heads, whose results are of entries.
func (d *Device) heads(name string, s *Sparse, a edgeArgs) {
	d.overRows(s, 1, func(r rowArgs) {
		a.rows = r
		launch(d, "edgewise", name, warps(int(r.n*a.heads)), oneBlock, &a)
	}, func(*plan, uintptr) {})
}

func (d *Device) DynamicAttend(dst, alpha Matrix, adj *Sparse, z, right, a Matrix, op Attention, edges EdgeInput) {
	tensor.NeedShape("DynamicAttend: dst", dst, adj.Rows, z.Cols, F32, BF16)
	if adj.Rows == 0 {
		return
	}
	defer d.enter()()
	scores := alpha
	if alpha.IsZero() {
		n := tensor.PartsOf(adj).Index.Len()
		scores = d.scratch(F32, n, op.Heads)
	}
	e := dynamicOf(z, right, a, op, edges)
	e.alpha = of(scores)
	if scores.Rows > 0 {
		d.heads("dynamic_score", adj, e)
	} else {
		e.alpha.p = at(dst) // no entry reads it
	}
	t := attentionOf(z, op)
	t.edge, t.alpha = mat{}, e.alpha
	d.statistics(adj, t)
	d.attend(dst, adj, z, t)
	if alpha.IsZero() {
		d.release(scores)
	}
}

func (d *Device) DynamicAttendGrad(dz, dright, da Matrix, adj, adjT *Sparse, z, right, a, alpha, dst, ddst Matrix,
	op Attention, edges EdgeInput) {
	defer d.enter()()
	e := dynamicOf(z, right, a, op, edges)
	delta := d.deltas(dst, ddst, attentionOf(z, op))
	de := d.scratch(F32, alpha.Rows, op.Heads)
	e.ddst, e.alpha, e.de, e.delta = of(ddst), of(alpha), of(de), of(delta)
	e.perm = atIndex(tensor.PartsOf(adjT).Perm)
	d.heads("dynamic_score_grad", adj, e)
	d.columns("dynamic_grad_target", adj, dright, e)
	d.columns("dynamic_grad_source", adjT, dz, e)
	d.edgeColumns(adj, e, 0, da)
	d.edgeWeights(adj, e, edges)
	d.release(de)
	d.release(delta)
}

// edgeColumns adds a sum over all entries to a row.
func (d *Device) edgeColumns(adj *Sparse, a edgeArgs, which int, dst Matrix) {
	n, cols := int(adj.Entries()), int(a.z.cols)
	if n == 0 || cols == 0 || dst.IsZero() {
		return
	}
	a.rows, _ = d.rowsOf(adj)
	pieces := max(1, min((n+255)/256, 8*max(1, d.run.GPU.Processors)))
	a.piece, a.which = int64((n+pieces-1)/pieces), int64(which)
	part := d.scratch(F64, pieces, cols)
	a.part = at(part)
	launch(d, "edgewise", "edge_columns", size3{X: (cols + 31) / 32, Y: pieces}, size3{X: 32, Y: 8}, &a)
	d.finish(part, pieces, 1, cols, true, dst)
	d.release(part)
}

// edgeWeights adds the gradient of the edges' weight, row by row.
func (d *Device) edgeWeights(adj *Sparse, a edgeArgs, x EdgeInput) {
	for k := range x.Features.Cols {
		d.edgeColumns(adj, a, k+1, x.DWeight.Slice(k, k+1))
	}
}

func (d *Device) EdgeDot(dst Matrix, adj *Sparse, q, k Matrix) {
	tensor.NeedShape("EdgeDot: k", k, adj.Cols, q.Cols, q.Type())
	if adj.Entries() == 0 {
		return
	}
	defer d.enter()()
	a := edgesOf(k, EdgeInput{})
	a.right, a.alpha, a.heads, a.width = of(q), of(dst), int64(dst.Cols), int64(q.Cols/dst.Cols)
	d.heads("edge_dot", adj, a)
}

func (d *Device) EdgeDotGrad(dq, dk Matrix, adj, adjT *Sparse, q, k, ddst Matrix) {
	tensor.NeedShape("EdgeDotGrad: dq", dq, adj.Rows, q.Cols, F32, BF16)
	tensor.NeedShape("EdgeDotGrad: dk", dk, adj.Cols, q.Cols, F32, BF16)
	defer d.enter()()
	grad := func(dst Matrix, s *Sparse, z Matrix, perm uintptr) {
		if s.Entries() == 0 {
			d.zero(dst)
			return
		}
		a := edgesOf(z, EdgeInput{})
		a.de, a.perm, a.heads, a.width = of(ddst), perm, int64(ddst.Cols), int64(z.Cols/ddst.Cols)
		d.columns("edge_dot_grad", s, dst, a)
	}
	grad(dq, adj, k, 0)
	grad(dk, adjT, q, atIndex(tensor.PartsOf(adjT).Perm))
}

func (d *Device) FilmMean(dst Matrix, adj *Sparse, z, film Matrix, add bool) {
	defer d.enter()()
	a := edgesOf(z, EdgeInput{})
	a.film, a.add = of(film), number(add)
	d.columns("film_mean", adj, dst, a)
}

func (d *Device) FilmMeanGrad(dz, dfilm Matrix, adj, adjT *Sparse, z, film, ddst Matrix) {
	defer d.enter()()
	a := edgesOf(z, EdgeInput{})
	a.film, a.ddst, a.ptr = of(film), of(ddst), at(tensor.PartsOf(adj).Ptr)
	d.columns("film_grad_target", adj, dfilm, a)
	d.columns("film_grad_source", adjT, dz, a)
}

func (d *Device) EdgeSum(dst Matrix, adj *Sparse, src Matrix, edges EdgeInput) {
	defer d.enter()()
	d.columns("edge_sum", adj, dst, edgesOf(src, edges))
}

func (d *Device) EdgeSumGrad(dsrc Matrix, adj, adjT *Sparse, src, ddst Matrix, edges EdgeInput) {
	defer d.enter()()
	a := edgesOf(src, edges)
	a.ddst, a.kind, a.perm = of(ddst), 1, atIndex(tensor.PartsOf(adjT).Perm)
	d.columns("edge_sum_grad", adjT, dsrc, a)
	if !edges.Features.IsZero() {
		d.edgeColumns(adj, a, 0, edges.DBias)
	}
	d.edgeWeights(adj, a, edges)
}
