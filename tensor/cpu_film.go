package tensor

import "starling/tensor/simd"

func needFilm(name string, adj *Sparse, z, film Matrix) {
	needRows(name+": z", z, adj.Cols, z.Cols)
	needRows(name+": film", film, adj.Rows, 2*z.Cols)
}

func (c *CPU) FilmMean(dst Matrix, adj *Sparse, z, film Matrix, add bool) {
	needFilm("FilmMean", adj, z, film)
	needRows("FilmMean: dst", dst, adj.Rows, z.Cols)
	shares, cols := edgeShares(adj, z.Cols), z.Cols
	defer shares.done()
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(4*cols)
		defer w.done()
		zj, fi, acc := w.take(cols), w.take(2*cols), w.take(cols)
		for i := x.lo; i < x.hi; i++ {
			row := adj.index[adj.ptr[i]:adj.ptr[i+1]]
			f := film.read(i, fi)
			clear(acc)
			for _, j := range row {
				simd.FilmAdd(w.level, acc, z.read(int(j), zj), f[cols:], f[:cols])
			}
			dst.write(i, acc, 1/float32(max(len(row), 1)), add)
		}
	})
}

// FilmMeanGrad goes over in-edges for dfilm, and over out-edges for dz.
func (c *CPU) FilmMeanGrad(dz, dfilm Matrix, adj, adjT *Sparse, z, film, ddst Matrix) {
	needFilm("FilmMeanGrad", adj, z, film)
	needRows("FilmMeanGrad: ddst", ddst, adj.Rows, z.Cols)
	needRows("FilmMeanGrad: dz", dz, adj.Cols, z.Cols)
	needRows("FilmMeanGrad: dfilm", dfilm, adj.Rows, 2*z.Cols)
	need(adjT.Rows == adj.Cols && adjT.Cols == adj.Rows, "FilmMeanGrad: adjT is not adj's transpose")
	cols := z.Cols
	shares := edgeShares(adj, cols)
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(6*cols)
		defer w.done()
		zj, fi, gi, acc := w.take(cols), w.take(2*cols), w.take(cols), w.take(2*cols)
		for i := x.lo; i < x.hi; i++ {
			row := adj.index[adj.ptr[i]:adj.ptr[i+1]]
			f, g := film.read(i, fi), ddst.read(i, gi)
			clear(acc)
			for _, j := range row {
				simd.FilmGrad(w.level, acc[:cols], acc[cols:], z.read(int(j), zj), f[cols:], f[:cols], g)
			}
			dfilm.write(i, acc, 1/float32(max(len(row), 1)), false)
		}
	})
	shares.done()
	shares = edgeShares(adjT, cols)
	defer shares.done()
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(5*cols)
		defer w.done()
		zj, fi, gi, acc := w.take(cols), w.take(2*cols), w.take(cols), w.take(cols)
		for j := x.lo; j < x.hi; j++ {
			row := z.read(j, zj)
			clear(acc)
			for _, i := range adjT.index[adjT.ptr[j]:adjT.ptr[j+1]] {
				f := film.read(int(i), fi)
				simd.FilmBack(w.level, acc, row, f[cols:], f[:cols], ddst.read(int(i), gi), 1/float32(adj.ptr[i+1]-adj.ptr[i]))
			}
			dz.write(j, acc, 1, false)
		}
	})
}
