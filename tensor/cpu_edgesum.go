package tensor

import "starling/tensor/simd"

// A message relu(src_j + t_e) is FiLM's with γ = 1 and β = t_e.

func (c *CPU) EdgeSum(dst Matrix, adj *Sparse, src Matrix, edges EdgeInput) {
	needRows("EdgeSum: src", src, adj.Cols, src.Cols)
	needRows("EdgeSum: dst", dst, adj.Rows, src.Cols)
	edges.need("EdgeSum", adj, src.Cols)
	shares, cols := edgeShares(adj, src.Cols), src.Cols
	defer shares.done()
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(5*cols)
		defer w.done()
		xj, te, none, one, acc := w.take(cols), w.take(cols), w.zeros(cols), w.ones(cols), w.take(cols)
		for i := x.lo; i < x.hi; i++ {
			clear(acc)
			for e := adj.ptr[i]; e < adj.ptr[i+1]; e++ {
				simd.FilmAdd(w.level, acc, src.read(int(adj.index[e]), xj), one, edges.add(w, te, none, e))
			}
			dst.write(i, acc, 1, false)
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
func (c *CPU) EdgeSumGrad(dsrc Matrix, adj, adjT *Sparse, src, ddst Matrix, edges EdgeInput) {
	needRows("EdgeSumGrad: src", src, adj.Cols, src.Cols)
	needRows("EdgeSumGrad: ddst", ddst, adj.Rows, src.Cols)
	needRows("EdgeSumGrad: dsrc", dsrc, adj.Cols, src.Cols)
	needPlaces("EdgeSumGrad", adj, adjT)
	edges.need("EdgeSumGrad", adj, src.Cols)
	cols := src.Cols
	shares := edgeShares(adj, cols)
	sums := c.partials(len(shares.list), edges.size())
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(7*cols)
		defer w.done()
		xj, te, none, one, gi, dt, unused := w.take(cols), w.take(cols), w.zeros(cols), w.ones(cols), w.take(cols), w.take(cols), w.zeros(cols)
		for i := x.lo; i < x.hi; i++ {
			g := ddst.read(i, gi)
			for e := adj.ptr[i]; e < adj.ptr[i+1]; e++ {
				clear(dt)
				simd.FilmGrad(w.level, dt, unused, src.read(int(adj.index[e]), xj), one, edges.add(w, te, none, e), g)
				edges.learnInto(w, sums.sum.row(k), dt, e)
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
			row := src.read(j, xj)
			clear(acc)
			for q := adjT.ptr[j]; q < adjT.ptr[j+1]; q++ {
				t := edges.add(w, te, none, int64(adjT.perm[q]))
				simd.FilmBack(w.level, acc, row, one, t, ddst.read(int(adjT.index[q]), gi), 1)
			}
			dsrc.write(j, acc, 1, false)
		}
	})
}
