package tensor

import (
	"math"

	"starling/tensor/simd"
)

func needDynamic(name string, adj *Sparse, z, right, a, alpha Matrix, op Attention) {
	need(op.Heads > 0 && z.Cols%op.Heads == 0, "%s: %d columns for %d heads", name, z.Cols, op.Heads)
	needRows(name+": z", z, adj.Cols, z.Cols)
	needRows(name+": right", right, adj.Rows, z.Cols)
	needScores(name+": a", a, 1, z.Cols)
	if !alpha.IsZero() {
		need(alpha.Cols == op.Heads && alpha.dtype == F32 && alpha.Rows >= int(adj.ptr[adj.Rows]), "%s: alpha is %v", name, alpha)
	}
}

// DynamicAttend goes twice over a row's entries: for their scores, and for the sum.
func (c *CPU) DynamicAttend(dst, alpha Matrix, adj *Sparse, z, right, a Matrix, op Attention, edges EdgeInput) {
	needDynamic("DynamicAttend", adj, z, right, a, alpha, op)
	needRows("DynamicAttend: dst", dst, adj.Rows, z.Cols)
	edges.need("DynamicAttend", adj, z.Cols)
	shares := edgeShares(adj, z.Cols)
	defer shares.done()
	c.run(len(shares.list), func(k, _ int) {
		x := shares.list[k]
		w := c.work(4*z.Cols + op.Heads*(longest(adj.ptr[x.lo:x.hi+1])+1))
		defer w.done()
		d := dynamic{edgewise: w, adj: adj, z: z, right: right, a: a.row(0), alpha: alpha, op: op, edges: edges, width: z.Cols / op.Heads}
		zj, ri, re, acc, sum := w.take(z.Cols), w.take(z.Cols), w.take(z.Cols), w.take(z.Cols), w.take(op.Heads)
		for i := x.lo; i < x.hi; i++ {
			p := d.coefficients(i)
			d.score(p, i, zj, ri, re)
			softmaxEntries(p, sum)
			clear(acc)
			key := op.rowKey(i)
			for e, j := range adj.index[adj.ptr[i]:adj.ptr[i+1]] {
				row := z.read(int(j), zj)
				for h := range op.Heads {
					from, to := h*d.width, (h+1)*d.width
					simd.AddScaled(w.level, acc[from:to], row[from:to], p[e*op.Heads+h]*op.entryFactor(key, int(j), h))
				}
			}
			dst.write(i, acc, 1, false)
		}
	})
}

// dynamic is GATv2's attention on some rows.
type dynamic struct {
	*edgewise
	adj      *Sparse
	z, right Matrix
	a        []float32
	alpha    Matrix
	op       Attention
	edges    EdgeInput
	width    int
}

// coefficients are those of row i's entries: where they are kept, or in scratch.
func (d *dynamic) coefficients(i int) []float32 {
	lo, hi := d.adj.ptr[i], d.adj.ptr[i+1]
	if d.alpha.IsZero() {
		return d.free[:int(hi-lo)*d.op.Heads]
	}
	return d.alpha.f32[int(lo)*d.op.Heads : int(hi)*d.op.Heads]
}

func (d *dynamic) score(p []float32, i int, zj, ri, re []float32) {
	r := d.right.read(i, ri)
	for e := d.adj.ptr[i]; e < d.adj.ptr[i+1]; e++ {
		row, both := d.z.read(int(d.adj.index[e]), zj), d.edges.add(d.edgewise, re, r, e)
		for h := range d.op.Heads {
			from, to := h*d.width, (h+1)*d.width
			p[int(e-d.adj.ptr[i])*d.op.Heads+h] = simd.LeakyDot(d.level, row[from:to], both[from:to], d.a[from:to], float32(d.op.Slope))
		}
	}
}

// softmaxEntries makes scores (entries x heads) coefficients.
func softmaxEntries(p, sum []float32) {
	heads := len(sum)
	for h := range sum {
		top := float32(math.Inf(-1))
		for k := h; k < len(p); k += heads {
			top = max(top, p[k])
		}
		sum[h] = 0
		for k := h; k < len(p); k += heads {
			p[k] = simd.Exp(p[k] - top)
			sum[h] += p[k]
		}
	}
	for h := range sum {
		sum[h] = 1 / sum[h]
	}
	for ; len(p) > 0; p = p[heads:] {
		for h, s := range sum {
			p[h] *= s
		}
	}
}

// rowKey is that of the draws of destination i, and entryFactor what a draw makes of
// the coefficient from source j.
func (op *Attention) rowKey(i int) uint64 {
	if op.Dropout.P == 0 {
		return 0
	}
	return simd.RowKey(op.Dropout.Key, op.Dropout.id(i))
}

func (op *Attention) entryFactor(key uint64, j, h int) float32 {
	if op.Dropout.P == 0 {
		return 1
	}
	src := uint32(j)
	if op.SrcIDs.v != nil {
		src = op.SrcIDs.v[j]
	}
	if simd.AttentionDraw(key, src, h) < op.Dropout.threshold() {
		return 0
	}
	return float32(op.Dropout.scale())
}

// DynamicAttendGrad goes over in-edges for what belongs to destinations, edges and a,
// leaving the gradient of each score and its coefficient behind, and then over
// out-edges for what belongs to sources.
func (c *CPU) DynamicAttendGrad(dz, dright, da Matrix, adj, adjT *Sparse, z, right, a, alpha, dst, ddst Matrix, op Attention, edges EdgeInput) {
	needDynamic("DynamicAttendGrad", adj, z, right, a, alpha, op)
	needRows("DynamicAttendGrad: dz", dz, adj.Cols, z.Cols)
	needRows("DynamicAttendGrad: dright", dright, adj.Rows, z.Cols)
	needRows("DynamicAttendGrad: ddst", ddst, adj.Rows, z.Cols)
	needScores("DynamicAttendGrad: da", da, 1, z.Cols)
	needPlaces("DynamicAttendGrad", adj, adjT)
	edges.need("DynamicAttendGrad", adj, z.Cols)
	dscore := c.Scratch(F32, len(adj.index), op.Heads)
	defer c.Free(dscore)
	d := dynamic{adj: adj, z: z, right: right, a: a.row(0), alpha: alpha, op: op, edges: edges, width: z.Cols / op.Heads}
	c.dynamicByDestination(d, dright, da, dscore, dst, ddst)
	c.dynamicBySource(d, dz, adjT, dscore, ddst)
}

// needPlaces checks that entries of the transpose know theirs in adj.
func needPlaces(name string, adj, adjT *Sparse) {
	need(adjT.Rows == adj.Cols && adjT.Cols == adj.Rows && int64(len(adjT.perm)) >= adjT.ptr[adjT.Rows],
		"%s: adjT is not adj's transpose from SparseTranspose", name)
}

func (c *CPU) dynamicByDestination(d dynamic, dright, da, dscore, dst, ddst Matrix) {
	shares := edgeShares(d.adj, d.z.Cols)
	defer shares.done()
	cols, heads := d.z.Cols, d.op.Heads
	sums := c.partials(len(shares.list), cols+d.edges.size())
	defer sums.done()
	c.run(len(shares.list), func(k, _ int) {
		d, x := d, shares.list[k]
		d.edgewise = c.work(6*cols + heads)
		defer d.done()
		zj, ri, re, gi, acc, ds, delta := d.take(cols), d.take(cols), d.take(cols), d.take(cols), d.take(cols), d.take(cols), d.take(heads)
		sum := sums.sum.row(k)
		for i := x.lo; i < x.hi; i++ {
			r, g := d.right.read(i, ri), ddst.read(i, gi)
			for h, y := 0, dst.read(i, zj); h < heads; h++ {
				delta[h] = simd.DotProduct(d.level, g[h*d.width:(h+1)*d.width], y[h*d.width:(h+1)*d.width])
			}
			clear(acc)
			key := d.op.rowKey(i)
			for e := d.adj.ptr[i]; e < d.adj.ptr[i+1]; e++ {
				j := int(d.adj.index[e])
				row, both := d.z.read(j, zj), d.edges.add(d.edgewise, re, r, e)
				to := acc
				if !d.edges.Features.IsZero() {
					clear(ds)
					to = ds
				}
				alpha, des := d.alpha.f32[int(e)*heads:][:heads], dscore.f32[int(e)*heads:][:heads]
				for h := range heads {
					lo, hi := h*d.width, (h+1)*d.width
					p, drop := &alpha[h], d.op.entryFactor(key, j, h)
					de := *p * (drop*simd.DotProduct(d.level, g[lo:hi], row[lo:hi]) - delta[h])
					*p *= drop
					des[h] = de
					simd.LeakyGrad(d.level, to[lo:hi], sum[lo:hi], row[lo:hi], both[lo:hi], d.a[lo:hi], de, float32(d.op.Slope))
				}
				if !d.edges.Features.IsZero() {
					simd.AddScaled(d.level, acc, ds, 1)
					d.edges.learnInto(d.edgewise, sum[cols:], ds, e)
				}
			}
			dright.write(i, acc, 1, false)
		}
	})
	sums.addTo(da, 0)
	sums.addTo(d.edges.DWeight, cols)
}

func (c *CPU) dynamicBySource(d dynamic, dz Matrix, adjT *Sparse, dscore, ddst Matrix) {
	shares := edgeShares(adjT, d.z.Cols)
	defer shares.done()
	cols := d.z.Cols
	c.run(len(shares.list), func(k, _ int) {
		d, x := d, shares.list[k]
		d.edgewise = c.work(5 * cols)
		defer d.done()
		zj, ri, re, gi, acc := d.take(cols), d.take(cols), d.take(cols), d.take(cols), d.take(cols)
		for j := x.lo; j < x.hi; j++ {
			row := d.z.read(j, zj)
			clear(acc)
			for q := adjT.ptr[j]; q < adjT.ptr[j+1]; q++ {
				i, e := int(adjT.index[q]), int64(adjT.perm[q])
				both, g := d.edges.add(d.edgewise, re, d.right.read(i, ri), e), ddst.read(i, gi)
				heads := d.op.Heads
				alpha, des := d.alpha.f32[int(e)*heads:][:heads], dscore.f32[int(e)*heads:][:heads]
				for h := range heads {
					lo, hi := h*d.width, (h+1)*d.width
					simd.LeakyBack(d.level, acc[lo:hi], row[lo:hi], both[lo:hi], d.a[lo:hi], g[lo:hi], des[h], alpha[h], float32(d.op.Slope))
				}
			}
			dz.write(j, acc, 1, false)
		}
	})
}
