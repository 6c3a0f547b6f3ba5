package cpu

import "starling/tensor/cpu/simd"

// A message relu(src_j + t_e) is FiLM's with γ = 1 and β = t_e.

func (c *Device) EdgeSum(dst Matrix, adj *Sparse, src Matrix, edges EdgeInput) {
	csr := compressedOf(adj)
	needRows("EdgeSum: src", src, adj.Cols, src.Cols)
	needRows("EdgeSum: dst", dst, adj.Rows, src.Cols)
	needEdges(&edges, "EdgeSum", adj, src.Cols)
	shares, cols := edgeShares(adj, src.Cols), src.Cols
	defer shares.done()
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(5*cols)
		defer w.done()
		xj, te, none, one, acc := w.take(cols), w.take(cols), w.zeros(cols), w.ones(cols), w.take(cols)
		for i := x.lo; i < x.hi; i++ {
			clear(acc)
			for e := csr.ptr[i]; e < csr.ptr[i+1]; e++ {
				simd.FilmAdd(w.level, acc, readRow(src, int(csr.index[e]), xj), one, addEdge(&edges, w, te, none, e))
			}
			writeRow(dst, i, acc, 1, false)
		}
	})
}

func (w *edgewise) ones(n int) []float32 {
	out := w.take(n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// EdgeSumGrad goes over in-edges for the linear map, and over out-edges for dsrc.
func (c *Device) EdgeSumGrad(dsrc Matrix, adj, adjT *Sparse, src, ddst Matrix, edges EdgeInput) {
	csr := compressedOf(adj)
	csc := compressedOf(adjT)
	needRows("EdgeSumGrad: src", src, adj.Cols, src.Cols)
	needRows("EdgeSumGrad: ddst", ddst, adj.Rows, src.Cols)
	needRows("EdgeSumGrad: dsrc", dsrc, adj.Cols, src.Cols)
	needPlaces("EdgeSumGrad", adj, adjT)
	needEdges(&edges, "EdgeSumGrad", adj, src.Cols)
	cols := src.Cols
	shares := edgeShares(adj, cols)
	sums := c.partials(len(shares.list), edgeGradSize(&edges))
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(7*cols)
		defer w.done()
		xj, te, none, one, gi, dt, unused := w.take(cols), w.take(cols), w.zeros(cols), w.ones(cols), w.take(cols), w.take(cols), w.zeros(cols)
		for i := x.lo; i < x.hi; i++ {
			g := readRow(ddst, i, gi)
			for e := csr.ptr[i]; e < csr.ptr[i+1]; e++ {
				clear(dt)
				simd.FilmGrad(w.level, dt, unused, readRow(src, int(csr.index[e]), xj), one,
					addEdge(&edges, w, te, none, e), g)
				addEdgeGrad(&edges, w, rowOf(sums.sum, k), dt, e)
			}
		}
	})
	sums.addTo(edges.DWeight, 0)
	sums.addTo(edges.DBias, edges.Features.Cols*cols)
	sums.done()
	shares.done()
	shares = edgeShares(adjT, cols)
	defer shares.done()
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(6*cols)
		defer w.done()
		xj, te, none, one, gi, acc := w.take(cols), w.take(cols), w.zeros(cols), w.ones(cols), w.take(cols), w.take(cols)
		for j := x.lo; j < x.hi; j++ {
			row := readRow(src, j, xj)
			clear(acc)
			for q := csc.ptr[j]; q < csc.ptr[j+1]; q++ {
				t := addEdge(&edges, w, te, none, int64(csc.perm[q]))
				simd.FilmBack(w.level, acc, row, one, t, readRow(ddst, int(csc.index[q]), gi), 1)
			}
			writeRow(dsrc, j, acc, 1, false)
		}
	})
}
