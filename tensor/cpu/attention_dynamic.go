package cpu

import (
	"math"

	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/tensor/draw"
)

func needDynamic(name string, adj *Sparse, z, right, a, alpha Matrix, op Attention) {
	csr := compressedOf(adj)
	tensor.Need(op.Heads > 0 && z.Cols%op.Heads == 0, "%s: %d columns for %d heads", name, z.Cols, op.Heads)
	needRows(name+": z", z, adj.Cols, z.Cols)
	needRows(name+": right", right, adj.Rows, z.Cols)
	needScores(name+": a", a, 1, z.Cols)
	if !alpha.IsZero() {
		tensor.Need(alpha.Cols == op.Heads && alpha.Type() == F32 && alpha.Rows >= int(csr.ptr[adj.Rows]),
			"%s: alpha is %v", name, alpha)
	}
}

// DynamicAttend goes twice over a row's entries: for their scores, and for the sum.
func (c *Device) DynamicAttend(dst, alpha Matrix, adj *Sparse, z, right, a Matrix, op Attention, edges EdgeInput) {
	csr := compressedOf(adj)
	needDynamic("DynamicAttend", adj, z, right, a, alpha, op)
	needRows("DynamicAttend: dst", dst, adj.Rows, z.Cols)
	needEdges(&edges, "DynamicAttend", adj, z.Cols)
	shares := edgeShares(adj, z.Cols)
	defer shares.done()
	c.run(len(shares.list), func(k, _ int) {
		x := shares.list[k]
		w := c.work(4*z.Cols + op.Heads*(longest(csr.ptr[x.lo:x.hi+1])+1))
		defer w.done()
		d := dynamic{edgewise: w, adj: adj, csr: csr, z: z, right: right, a: rowOf(a, 0), alpha: alpha, op: op,
			edges: edges, width: z.Cols / op.Heads}
		zj, ri, re, acc, sum := w.take(z.Cols), w.take(z.Cols), w.take(z.Cols), w.take(z.Cols), w.take(op.Heads)
		for i := x.lo; i < x.hi; i++ {
			p := d.coefficients(i)
			d.score(p, i, zj, ri, re)
			softmaxEntries(p, sum)
			clear(acc)
			key := attentionRowKey(&op, i)
			for e, j := range csr.row(i) {
				row := readRow(z, int(j), zj)
				for h := range op.Heads {
					from, to := h*d.width, (h+1)*d.width
					simd.AddScaled(w.level, acc[from:to], row[from:to],
						p[e*op.Heads+h]*entryFactor(&op, key, int(j), h))
				}
			}
			writeRow(dst, i, acc, 1, false)
		}
	})
}

// dynamic is GATv2's attention on some rows.
type dynamic struct {
	*edgewise
	adj      *Sparse
	csr      compressed
	z, right Matrix
	a        []float32
	alpha    Matrix
	op       Attention
	edges    EdgeInput
	width    int
}

// coefficients are the coefficients of row i's entries: where they are kept, or in scratch.
func (d *dynamic) coefficients(i int) []float32 {
	lo, hi := d.csr.ptr[i], d.csr.ptr[i+1]
	if d.alpha.IsZero() {
		return d.free[:int(hi-lo)*d.op.Heads]
	}
	return f32Of(d.alpha)[int(lo)*d.op.Heads : int(hi)*d.op.Heads]
}

func (d *dynamic) score(p []float32, i int, zj, ri, re []float32) {
	r := readRow(d.right, i, ri)
	for e := d.csr.ptr[i]; e < d.csr.ptr[i+1]; e++ {
		row, both := readRow(d.z, int(d.csr.index[e]), zj), addEdge(&d.edges, d.edgewise, re, r, e)
		for h := range d.op.Heads {
			from, to := h*d.width, (h+1)*d.width
			p[int(e-d.csr.ptr[i])*d.op.Heads+h] = simd.LeakyDot(d.level, row[from:to], both[from:to], d.a[from:to],
				float32(d.op.Slope))
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

// rowKey is the key of the draws of destination i, and entryFactor what a draw makes of
// the coefficient from source j.
func attentionRowKey(op *Attention, i int) uint64 {
	if op.Dropout.P == 0 {
		return 0
	}
	return draw.RowKey(op.Dropout.Key, tensor.RowID(op.Dropout, i))
}

func entryFactor(op *Attention, key uint64, j, h int) float32 {
	if op.Dropout.P == 0 {
		return 1
	}
	src := uint32(j)
	if entriesOf(op.SrcIDs) != nil {
		src = entriesOf(op.SrcIDs)[j]
	}
	if draw.Attention(key, src, h) < op.Dropout.Threshold() {
		return 0
	}
	return float32(op.Dropout.Scale())
}

// DynamicAttendGrad goes over in-edges for what belongs to destinations, edges and a,
// leaving the gradient of each score and its coefficient behind, and then over
// out-edges for what belongs to sources.
func (c *Device) DynamicAttendGrad(dz, dright, da Matrix, adj, adjT *Sparse, z, right, a, alpha, dst, ddst Matrix,
	op Attention, edges EdgeInput) {
	csr := compressedOf(adj)
	needDynamic("DynamicAttendGrad", adj, z, right, a, alpha, op)
	needRows("DynamicAttendGrad: dz", dz, adj.Cols, z.Cols)
	needRows("DynamicAttendGrad: dright", dright, adj.Rows, z.Cols)
	needRows("DynamicAttendGrad: ddst", ddst, adj.Rows, z.Cols)
	needScores("DynamicAttendGrad: da", da, 1, z.Cols)
	needPlaces("DynamicAttendGrad", adj, adjT)
	needEdges(&edges, "DynamicAttendGrad", adj, z.Cols)
	dscore := c.Scratch(F32, len(csr.index), op.Heads)
	defer c.Free(dscore)
	d := dynamic{adj: adj, csr: csr, z: z, right: right, a: rowOf(a, 0), alpha: alpha, op: op, edges: edges,
		width: z.Cols / op.Heads}
	c.dynamicByDestination(d, dright, da, dscore, dst, ddst)
	c.dynamicBySource(d, dz, adjT, dscore, ddst)
}

// needPlaces checks that entries of the transpose know theirs in adj.
func needPlaces(name string, adj, adjT *Sparse) {
	csc := compressedOf(adjT)
	tensor.Need(adjT.Rows == adj.Cols && adjT.Cols == adj.Rows && int64(len(csc.perm)) >= csc.ptr[adjT.Rows],
		"%s: adjT is not adj's transpose from SparseTranspose", name)
}

func (c *Device) dynamicByDestination(d dynamic, dright, da, dscore, dst, ddst Matrix) {
	shares := edgeShares(d.adj, d.z.Cols)
	defer shares.done()
	cols, heads := d.z.Cols, d.op.Heads
	sums := c.partials(len(shares.list), cols+edgeGradSize(&d.edges))
	defer sums.done()
	c.run(len(shares.list), func(k, _ int) {
		d, x := d, shares.list[k]
		d.edgewise = c.work(6*cols + heads)
		defer d.done()
		zj, ri, re, gi, acc, ds, delta := d.take(cols), d.take(cols), d.take(cols), d.take(cols), d.take(cols), d.take(cols), d.take(heads)
		sum := rowOf(sums.sum, k)
		for i := x.lo; i < x.hi; i++ {
			r, g := readRow(d.right, i, ri), readRow(ddst, i, gi)
			for h, y := 0, readRow(dst, i, zj); h < heads; h++ {
				delta[h] = simd.DotProduct(d.level, g[h*d.width:(h+1)*d.width], y[h*d.width:(h+1)*d.width])
			}
			clear(acc)
			key := attentionRowKey(&d.op, i)
			for e := d.csr.ptr[i]; e < d.csr.ptr[i+1]; e++ {
				j := int(d.csr.index[e])
				row, both := readRow(d.z, j, zj), addEdge(&d.edges, d.edgewise, re, r, e)
				to := acc
				if !d.edges.Features.IsZero() {
					clear(ds)
					to = ds
				}
				alpha, des := f32Of(d.alpha)[int(e)*heads:][:heads], f32Of(dscore)[int(e)*heads:][:heads]
				for h := range heads {
					lo, hi := h*d.width, (h+1)*d.width
					p, drop := &alpha[h], entryFactor(&d.op, key, j, h)
					var de float32 // stays zero for a coefficient of 1
					if *p != 1 {
						de = *p * (drop*simd.DotProduct(d.level, g[lo:hi], row[lo:hi]) - delta[h])
					}
					*p *= drop
					des[h] = de
					simd.LeakyGrad(d.level, to[lo:hi], sum[lo:hi], row[lo:hi], both[lo:hi], d.a[lo:hi], de,
						float32(d.op.Slope))
				}
				if !d.edges.Features.IsZero() {
					simd.AddScaled(d.level, acc, ds, 1)
					addEdgeGrad(&d.edges, d.edgewise, sum[cols:], ds, e)
				}
			}
			writeRow(dright, i, acc, 1, false)
		}
	})
	sums.addTo(da, 0)
	sums.addTo(d.edges.DWeight, cols)
}

func (c *Device) dynamicBySource(d dynamic, dz Matrix, adjT *Sparse, dscore, ddst Matrix) {
	csc := compressedOf(adjT)
	shares := edgeShares(adjT, d.z.Cols)
	defer shares.done()
	cols := d.z.Cols
	c.run(len(shares.list), func(k, _ int) {
		d, x := d, shares.list[k]
		d.edgewise = c.work(5 * cols)
		defer d.done()
		zj, ri, re, gi, acc := d.take(cols), d.take(cols), d.take(cols), d.take(cols), d.take(cols)
		for j := x.lo; j < x.hi; j++ {
			row := readRow(d.z, j, zj)
			clear(acc)
			for q := csc.ptr[j]; q < csc.ptr[j+1]; q++ {
				i, e := int(csc.index[q]), int64(csc.perm[q])
				both, g := addEdge(&d.edges, d.edgewise, re, readRow(d.right, i, ri), e), readRow(ddst, i, gi)
				heads := d.op.Heads
				alpha, des := f32Of(d.alpha)[int(e)*heads:][:heads], f32Of(dscore)[int(e)*heads:][:heads]
				for h := range heads {
					lo, hi := h*d.width, (h+1)*d.width
					simd.LeakyBack(d.level, acc[lo:hi], row[lo:hi], both[lo:hi], d.a[lo:hi], g[lo:hi], des[h], alpha[h],
						float32(d.op.Slope))
				}
			}
			writeRow(dz, j, acc, 1, false)
		}
	})
}
