//go:build linux

package elsewhere

import (
	"slices"

	"starling/tensor"
)

// Every operation finds its matrices where the device can reach them, and queues.

func (d *Device) MatMul(dst, a, b tensor.Matrix, op tensor.MatMul) {
	dst, a, b, op.Epilogue = d.in(dst), d.in(a), d.in(b), d.epilogue(op.Epilogue)
	d.do(func() { d.cpu.MatMul(dst, a, b, op) })
}

func (d *Device) ColumnSum(dst, src tensor.Matrix, add bool) {
	dst, src = d.in(dst), d.in(src)
	d.do(func() { d.cpu.ColumnSum(dst, src, add) })
}

func (d *Device) Aggregate(dst tensor.Matrix, adj *tensor.Sparse, src tensor.Matrix, op tensor.Aggregate) {
	dst, adj, src = d.in(dst), d.sparse(adj), d.in(src)
	op.RowScale, op.ColScale, op.SelfScale = d.in(op.RowScale), d.in(op.ColScale), d.in(op.SelfScale)
	d.do(func() { d.cpu.Aggregate(dst, adj, src, op) })
}

func (d *Device) AggregateMax(dst tensor.Matrix, arg tensor.Index, adj *tensor.Sparse, src tensor.Matrix) {
	dst, arg, adj, src = d.in(dst), d.index(arg), d.sparse(adj), d.in(src)
	d.do(func() { d.cpu.AggregateMax(dst, arg, adj, src) })
}

func (d *Device) AggregateMaxGrad(dsrc tensor.Matrix, adjT *tensor.Sparse, ddst tensor.Matrix, arg tensor.Index) {
	dsrc, adjT, ddst, arg = d.in(dsrc), d.sparse(adjT), d.in(ddst), d.index(arg)
	d.do(func() { d.cpu.AggregateMaxGrad(dsrc, adjT, ddst, arg) })
}

func (d *Device) Attend(dst, stat tensor.Matrix, adj *tensor.Sparse, z, left, right tensor.Matrix,
	op tensor.Attention) {
	dst, stat, adj, z, left = d.in(dst), d.in(stat), d.sparse(adj), d.in(z), d.in(left)
	right, op = d.in(right), d.attention(op)
	d.do(func() { d.cpu.Attend(dst, stat, adj, z, left, right, op) })
}

func (d *Device) AttendGrad(dz, dleft, dright tensor.Matrix, adj, adjT *tensor.Sparse, z, left,
	right, stat, dst, ddst tensor.Matrix, op tensor.Attention) {
	dz, dleft, dright, adj, adjT = d.in(dz), d.in(dleft), d.in(dright), d.sparse(adj), d.sparse(adjT)
	z, left, right, stat, dst = d.in(z), d.in(left), d.in(right), d.in(stat), d.in(dst)
	ddst, op = d.in(ddst), d.attention(op)
	d.do(func() { d.cpu.AttendGrad(dz, dleft, dright, adj, adjT, z, left, right, stat, dst, ddst, op) })
}

func (d *Device) GatherRows(dst, src tensor.Matrix, rows tensor.Index) {
	dst, src, rows = d.in(dst), d.in(src), d.index(rows)
	d.do(func() { d.cpu.GatherRows(dst, src, rows) })
}

func (d *Device) ScatterAdd(dst, src tensor.Matrix, rows tensor.Index) {
	dst, src, rows = d.in(dst), d.in(src), d.index(rows)
	d.do(func() { d.cpu.ScatterAdd(dst, src, rows) })
}

func (d *Device) DropoutValues(dst tensor.Matrix, x *tensor.Sparse, drop tensor.Dropout, transposed bool) {
	dst, x, drop = d.in(dst), d.sparse(x), d.dropout(drop)
	d.do(func() { d.cpu.DropoutValues(dst, x, drop, transposed) })
}

func (d *Device) DynamicAttend(dst, alpha tensor.Matrix, adj *tensor.Sparse, z, right,
	a tensor.Matrix, op tensor.Attention, edges tensor.EdgeInput) {
	dst, alpha, adj, z, right = d.in(dst), d.in(alpha), d.sparse(adj), d.in(z), d.in(right)
	a, op, edges = d.in(a), d.attention(op), d.edges(edges)
	d.do(func() { d.cpu.DynamicAttend(dst, alpha, adj, z, right, a, op, edges) })
}

func (d *Device) DynamicAttendGrad(dz, dright, da tensor.Matrix, adj, adjT *tensor.Sparse, z,
	right, a, alpha, dst, ddst tensor.Matrix, op tensor.Attention, edges tensor.EdgeInput) {
	dz, dright, da, adj, adjT = d.in(dz), d.in(dright), d.in(da), d.sparse(adj), d.sparse(adjT)
	z, right, a, alpha, dst, ddst = d.in(z), d.in(right), d.in(a), d.in(alpha), d.in(dst), d.in(ddst)
	op, edges = d.attention(op), d.edges(edges)
	d.do(func() { d.cpu.DynamicAttendGrad(dz, dright, da, adj, adjT, z, right, a, alpha, dst, ddst, op, edges) })
}

func (d *Device) FilmMean(dst tensor.Matrix, adj *tensor.Sparse, z, film tensor.Matrix, add bool) {
	dst, adj, z, film = d.in(dst), d.sparse(adj), d.in(z), d.in(film)
	d.do(func() { d.cpu.FilmMean(dst, adj, z, film, add) })
}

func (d *Device) FilmMeanGrad(dz, dfilm tensor.Matrix, adj, adjT *tensor.Sparse, z, film, ddst tensor.Matrix) {
	dz, dfilm, adj, adjT, z = d.in(dz), d.in(dfilm), d.sparse(adj), d.sparse(adjT), d.in(z)
	film, ddst = d.in(film), d.in(ddst)
	d.do(func() { d.cpu.FilmMeanGrad(dz, dfilm, adj, adjT, z, film, ddst) })
}

func (d *Device) EdgeSum(dst tensor.Matrix, adj *tensor.Sparse, src tensor.Matrix, edges tensor.EdgeInput) {
	dst, adj, src, edges = d.in(dst), d.sparse(adj), d.in(src), d.edges(edges)
	d.do(func() { d.cpu.EdgeSum(dst, adj, src, edges) })
}

func (d *Device) EdgeSumGrad(dsrc tensor.Matrix, adj, adjT *tensor.Sparse, src, ddst tensor.Matrix,
	edges tensor.EdgeInput) {
	dsrc, adj, adjT, src, ddst = d.in(dsrc), d.sparse(adj), d.sparse(adjT), d.in(src), d.in(ddst)
	edges = d.edges(edges)
	d.do(func() { d.cpu.EdgeSumGrad(dsrc, adj, adjT, src, ddst, edges) })
}

func (d *Device) Zero(x tensor.Matrix) {
	x = d.in(x)
	d.do(func() { d.cpu.Zero(x) })
}

func (d *Device) Copy(dst, src tensor.Matrix) {
	dst, src = d.in(dst), d.in(src)
	d.do(func() { d.cpu.Copy(dst, src) })
}

func (d *Device) Combine(dst tensor.Matrix, a float64, x tensor.Matrix, b float64, y tensor.Matrix) {
	dst, x, y = d.in(dst), d.in(x), d.in(y)
	d.do(func() { d.cpu.Combine(dst, a, x, b, y) })
}

func (d *Device) Multiply(dst, x, y tensor.Matrix) {
	dst, x, y = d.in(dst), d.in(x), d.in(y)
	d.do(func() { d.cpu.Multiply(dst, x, y) })
}

func (d *Device) Activate(dst, src tensor.Matrix, op tensor.Epilogue) {
	dst, src, op = d.in(dst), d.in(src), d.epilogue(op)
	d.do(func() { d.cpu.Activate(dst, src, op) })
}

func (d *Device) ActivateGrad(dx, dy, y tensor.Matrix, op tensor.Epilogue, dbias tensor.Matrix) {
	dx, dy, y, op, dbias = d.in(dx), d.in(dy), d.in(y), d.epilogue(op), d.in(dbias)
	d.do(func() { d.cpu.ActivateGrad(dx, dy, y, op, dbias) })
}

func (d *Device) Dot(dst, x, y tensor.Matrix) {
	dst, x, y = d.in(dst), d.in(x), d.in(y)
	d.do(func() { d.cpu.Dot(dst, x, y) })
}

func (d *Device) ColumnSums(sums, x tensor.Matrix) {
	sums, x = d.in(sums), d.in(x)
	d.do(func() { d.cpu.ColumnSums(sums, x) })
}

func (d *Device) Moments(mv, running, sums tensor.Matrix, count int64, momentum float64) {
	mv, running, sums = d.in(mv), d.in(running), d.in(sums)
	d.do(func() { d.cpu.Moments(mv, running, sums, count, momentum) })
}

func (d *Device) BatchNorm(y, x, mv, gamma, beta tensor.Matrix, eps float64, op tensor.Epilogue) {
	y, x, mv, gamma, beta, op = d.in(y), d.in(x), d.in(mv), d.in(gamma), d.in(beta), d.epilogue(op)
	d.do(func() { d.cpu.BatchNorm(y, x, mv, gamma, beta, eps, op) })
}

func (d *Device) BatchNormSums(gs, dy, x, mv tensor.Matrix, eps float64) {
	gs, dy, x, mv = d.in(gs), d.in(dy), d.in(x), d.in(mv)
	d.do(func() { d.cpu.BatchNormSums(gs, dy, x, mv, eps) })
}

func (d *Device) BatchNormGrad(dx, dy, x, mv, gs, gamma tensor.Matrix, count int64, eps float64) {
	dx, dy, x, mv, gs, gamma = d.in(dx), d.in(dy), d.in(x), d.in(mv), d.in(gs), d.in(gamma)
	d.do(func() { d.cpu.BatchNormGrad(dx, dy, x, mv, gs, gamma, count, eps) })
}

func (d *Device) LayerNorm(y, stat, x, gamma, beta tensor.Matrix, eps float64, op tensor.Epilogue) {
	y, stat, x, gamma, beta = d.in(y), d.in(stat), d.in(x), d.in(gamma), d.in(beta)
	op = d.epilogue(op)
	d.do(func() { d.cpu.LayerNorm(y, stat, x, gamma, beta, eps, op) })
}

func (d *Device) LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma tensor.Matrix) {
	dx, dgamma, dbeta, dy, x = d.in(dx), d.in(dgamma), d.in(dbeta), d.in(dy), d.in(x)
	stat, gamma = d.in(stat), d.in(gamma)
	d.do(func() { d.cpu.LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma) })
}

func (d *Device) Loss(sums, dlogits, logits tensor.Matrix, op tensor.Loss) {
	sums, dlogits, logits = d.in(sums), d.in(dlogits), d.in(logits)
	op.Labels, op.Targets, op.Rows = d.index(op.Labels), d.in(op.Targets), d.index(op.Rows)
	d.do(func() { d.cpu.Loss(sums, dlogits, logits, op) })
}

func (d *Device) CountMarks(counts, logits, targets tensor.Matrix, rows tensor.Index) {
	counts, logits, targets, rows = d.in(counts), d.in(logits), d.in(targets), d.index(rows)
	d.do(func() { d.cpu.CountMarks(counts, logits, targets, rows) })
}

func (d *Device) Softmax(dst, src tensor.Matrix) {
	dst, src = d.in(dst), d.in(src)
	d.do(func() { d.cpu.Softmax(dst, src) })
}

func (d *Device) Argmax(dst tensor.Index, src tensor.Matrix) {
	dst, src = d.index(dst), d.in(src)
	d.do(func() { d.cpu.Argmax(dst, src) })
}

func (d *Device) Adam(p, g, m1, v tensor.Matrix, op tensor.Adam) {
	p, g, m1, v = d.in(p), d.in(g), d.in(m1), d.in(v)
	d.do(func() { d.cpu.Adam(p, g, m1, v, op) })
}

func (d *Device) SGD(p, g, buf tensor.Matrix, op tensor.SGD) {
	p, g, buf = d.in(p), d.in(g), d.in(buf)
	d.do(func() { d.cpu.SGD(p, g, buf, op) })
}

func (d *Device) HeadDot(z tensor.Matrix, dots ...tensor.HeadDot) {
	z, dots = d.in(z), d.dots(dots)
	d.do(func() { d.cpu.HeadDot(z, dots...) })
}

func (d *Device) HeadDotGrad(dz, z tensor.Matrix, dots ...tensor.HeadDot) {
	dz, z, dots = d.in(dz), d.in(z), d.dots(dots)
	d.do(func() { d.cpu.HeadDotGrad(dz, z, dots...) })
}

// Pack waits: the host reads what it writes.
func (d *Device) Pack(dst []byte, src tensor.Matrix, p tensor.Packing) (n int) {
	src, p = d.in(src), d.packing(p)
	d.do(func() { n = d.cpu.Pack(dst, src, p) })
	d.sync()
	return n
}

func (d *Device) Unpack(dst tensor.Matrix, src []byte, p tensor.Packing) {
	dst, p = d.in(dst), d.packing(p)
	mine := slices.Clone(src)
	d.do(func() { d.cpu.Unpack(dst, mine, p) })
}
