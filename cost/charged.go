package cost

import "starling/tensor"

// Charged is a device whose operations are charged: after each, charge is called with the
// seconds that it takes at the given rates. Dense products are charged by multiplications,
// sums over neighbours by the numbers they read, everything else by the bytes of its matrices.
// Uploads and downloads are free. A device below that computes nothing is not told from
// others: what is charged for depends on the structure of graphs, so that must be there.
func Charged(dev tensor.Device, rates Compute, charge func(seconds float64)) tensor.Device {
	return &charged{dev, func(w Work) { charge(rates.Seconds(w)) }}
}

// Counted is a device whose operations are counted: after each, count is called with its work.
func Counted(dev tensor.Device, count func(w Work)) tensor.Device {
	if _, dry := dev.(interface{ DryRun() }); dry { // edges need only be as many: see nn.Topology
		return &dryCounted{charged{dev, count}}
	}
	return &charged{dev, count}
}

// dryCounted computes nothing.
type dryCounted struct{ charged }

func (*dryCounted) DryRun() {}

type charged struct {
	tensor.Device
	count func(w Work)
}

// dense counts a product.
func (d *charged) dense(rows, inner, cols int) {
	d.count(Work{Calls: 1, Dense: 2 * float64(rows) * float64(inner) * float64(cols)})
}

// edges counts an operation on the entries of a sparse matrix, each with a number of columns.
func (d *charged) edges(adj *tensor.Sparse, numbers int) {
	entries := float64(adj.Entries())
	d.count(Work{Calls: 1, Entries: entries, Sparse: entries * float64(numbers)})
}

// bytes counts reading or writing matrices.
func (d *charged) bytes(list ...tensor.Matrix) {
	var n int64
	for _, m := range list {
		n += m.Bytes()
	}
	d.count(Work{Calls: 1, Memory: float64(n)})
}

func (d *charged) MatMul(dst, a, b tensor.Matrix, op tensor.MatMul) {
	d.Device.MatMul(dst, a, b, op)
	inner := a.Cols
	if op.TransA {
		inner = a.Rows
	}
	d.dense(dst.Rows, inner, dst.Cols)
}

func (d *charged) ColumnSum(dst, src tensor.Matrix, add bool) {
	d.Device.ColumnSum(dst, src, add)
	d.bytes(dst, src)
}

func (d *charged) Aggregate(dst tensor.Matrix, adj *tensor.Sparse, src tensor.Matrix, op tensor.Aggregate) {
	d.Device.Aggregate(dst, adj, src, op)
	d.edges(adj, src.Cols)
}

func (d *charged) AggregateMax(dst tensor.Matrix, arg tensor.Index, adj *tensor.Sparse, src tensor.Matrix) {
	d.Device.AggregateMax(dst, arg, adj, src)
	d.edges(adj, src.Cols)
}

func (d *charged) AggregateMaxGrad(dsrc tensor.Matrix, adjT *tensor.Sparse, ddst tensor.Matrix, arg tensor.Index) {
	d.Device.AggregateMaxGrad(dsrc, adjT, ddst, arg)
	d.edges(adjT, ddst.Cols)
}

func (d *charged) HeadDot(z tensor.Matrix, dots ...tensor.HeadDot) {
	d.Device.HeadDot(z, dots...)
	d.bytes(z)
}

func (d *charged) HeadDotGrad(dz, z tensor.Matrix, dots ...tensor.HeadDot) {
	d.Device.HeadDotGrad(dz, z, dots...)
	d.bytes(dz, dz, z)
}

func (d *charged) Attend(dst, stat tensor.Matrix, adj *tensor.Sparse, z, left, right tensor.Matrix,
	op tensor.Attention) {
	d.Device.Attend(dst, stat, adj, z, left, right, op)
	d.edges(adj, z.Cols+2*op.Heads)
}

func (d *charged) AttendGrad(dz, dleft, dright tensor.Matrix, adj, adjT *tensor.Sparse,
	z, left, right, stat, dst, ddst tensor.Matrix, op tensor.Attention) {
	d.Device.AttendGrad(dz, dleft, dright, adj, adjT, z, left, right, stat, dst, ddst, op)
	d.edges(adj, 2*z.Cols+4*op.Heads)
}

func (d *charged) GatherRows(dst, src tensor.Matrix, rows tensor.Index) {
	d.Device.GatherRows(dst, src, rows)
	d.bytes(dst, dst)
}

func (d *charged) ScatterAdd(dst, src tensor.Matrix, rows tensor.Index) {
	d.Device.ScatterAdd(dst, src, rows)
	d.bytes(src, src, src)
}

func (d *charged) DropoutValues(dst tensor.Matrix, s *tensor.Sparse, drop tensor.Dropout, transposed bool) {
	d.Device.DropoutValues(dst, s, drop, transposed)
	d.bytes(dst, dst)
}

func (d *charged) DynamicAttend(dst, alpha tensor.Matrix, adj *tensor.Sparse, z, right, a tensor.Matrix,
	op tensor.Attention, edges tensor.EdgeInput) {
	d.Device.DynamicAttend(dst, alpha, adj, z, right, a, op, edges)
	d.edges(adj, 2*z.Cols)
}

func (d *charged) DynamicAttendGrad(dz, dright, da tensor.Matrix, adj, adjT *tensor.Sparse,
	z, right, a, alpha, dst, ddst tensor.Matrix, op tensor.Attention, edges tensor.EdgeInput) {
	d.Device.DynamicAttendGrad(dz, dright, da, adj, adjT, z, right, a, alpha, dst, ddst, op, edges)
	d.edges(adj, 4*z.Cols)
}

func (d *charged) FilmMean(dst tensor.Matrix, adj *tensor.Sparse, z, film tensor.Matrix, add bool) {
	d.Device.FilmMean(dst, adj, z, film, add)
	d.edges(adj, z.Cols)
}

func (d *charged) FilmMeanGrad(dz, dfilm tensor.Matrix, adj, adjT *tensor.Sparse, z, film, ddst tensor.Matrix) {
	d.Device.FilmMeanGrad(dz, dfilm, adj, adjT, z, film, ddst)
	d.edges(adj, 2*z.Cols)
}

func (d *charged) EdgeSum(dst tensor.Matrix, adj *tensor.Sparse, src tensor.Matrix, edges tensor.EdgeInput) {
	d.Device.EdgeSum(dst, adj, src, edges)
	d.edges(adj, src.Cols)
}

func (d *charged) EdgeSumGrad(dsrc tensor.Matrix, adj, adjT *tensor.Sparse, src, ddst tensor.Matrix,
	edges tensor.EdgeInput) {
	d.Device.EdgeSumGrad(dsrc, adj, adjT, src, ddst, edges)
	d.edges(adj, 2*src.Cols)
}

func (d *charged) Zero(m tensor.Matrix) {
	d.Device.Zero(m)
	d.bytes(m)
}

func (d *charged) Copy(dst, src tensor.Matrix) {
	d.Device.Copy(dst, src)
	d.bytes(dst, src)
}

func (d *charged) Combine(dst tensor.Matrix, a float64, x tensor.Matrix, b float64, y tensor.Matrix) {
	d.Device.Combine(dst, a, x, b, y)
	d.bytes(dst, x, y)
}

func (d *charged) Multiply(dst, x, y tensor.Matrix) {
	d.Device.Multiply(dst, x, y)
	d.bytes(dst, x, y)
}

func (d *charged) Activate(dst, src tensor.Matrix, op tensor.Epilogue) {
	d.Device.Activate(dst, src, op)
	d.bytes(dst, src)
}

func (d *charged) ActivateGrad(dx, dy, y tensor.Matrix, op tensor.Epilogue, dbias tensor.Matrix) {
	d.Device.ActivateGrad(dx, dy, y, op, dbias)
	d.bytes(dx, dy, y)
}

func (d *charged) Dot(dst, x, y tensor.Matrix) {
	d.Device.Dot(dst, x, y)
	d.bytes(x, y)
}

func (d *charged) ColumnSums(sums, x tensor.Matrix) {
	d.Device.ColumnSums(sums, x)
	d.bytes(x)
}

func (d *charged) BatchNorm(y, x, mv, gamma, beta tensor.Matrix, eps float64, op tensor.Epilogue) {
	d.Device.BatchNorm(y, x, mv, gamma, beta, eps, op)
	d.bytes(y, x)
}

func (d *charged) BatchNormSums(gs, dy, x, mv tensor.Matrix, eps float64) {
	d.Device.BatchNormSums(gs, dy, x, mv, eps)
	d.bytes(dy, x)
}

func (d *charged) BatchNormGrad(dx, dy, x, mv, gs, gamma tensor.Matrix, count int64, eps float64) {
	d.Device.BatchNormGrad(dx, dy, x, mv, gs, gamma, count, eps)
	d.bytes(dx, dy, x)
}

func (d *charged) LayerNorm(y, stat, x, gamma, beta tensor.Matrix, eps float64, op tensor.Epilogue) {
	d.Device.LayerNorm(y, stat, x, gamma, beta, eps, op)
	d.bytes(y, x, stat)
}

func (d *charged) LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma tensor.Matrix) {
	d.Device.LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma)
	d.bytes(dx, dy, x, stat)
}

func (d *charged) Loss(sums, dlogits, logits tensor.Matrix, op tensor.Loss) {
	d.Device.Loss(sums, dlogits, logits, op)
	d.bytes(dlogits, logits)
}

func (d *charged) CountMarks(counts, logits, targets tensor.Matrix, rows tensor.Index) {
	d.Device.CountMarks(counts, logits, targets, rows)
	d.bytes(logits, targets)
}

func (d *charged) Softmax(dst, src tensor.Matrix) {
	d.Device.Softmax(dst, src)
	d.bytes(dst, src)
}

func (d *charged) Argmax(dst tensor.Index, src tensor.Matrix) {
	d.Device.Argmax(dst, src)
	d.bytes(src)
}

func (d *charged) Adam(p, g, m, v tensor.Matrix, op tensor.Adam) {
	d.Device.Adam(p, g, m, v, op)
	d.bytes(p, g, m, v, p, m, v)
}

func (d *charged) SGD(p, g, buf tensor.Matrix, op tensor.SGD) {
	d.Device.SGD(p, g, buf, op)
	d.bytes(p, g, buf, p)
}

func (d *charged) Pack(dst []byte, src tensor.Matrix, p tensor.Packing) int {
	n := d.Device.Pack(dst, src, p)
	d.bytes(src, src)
	return n
}

func (d *charged) Unpack(dst tensor.Matrix, src []byte, p tensor.Packing) {
	d.Device.Unpack(dst, src, p)
	d.bytes(dst, dst)
}
