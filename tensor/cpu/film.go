package cpu

import (
	"starling/tensor"
	"starling/tensor/cpu/simd"
)

func needFilm(name string, adj *Sparse, z, film Matrix) {
	needRows(name+": z", z, adj.Cols, z.Cols)
	needRows(name+": film", film, adj.Rows, 2*z.Cols)
}

func (c *Device) FilmMean(dst Matrix, adj *Sparse, z, film Matrix, add bool) {
	csr := compressedOf(adj)
	needFilm("FilmMean", adj, z, film)
	needRows("FilmMean: dst", dst, adj.Rows, z.Cols)
	shares, cols := edgeShares(adj, z.Cols), z.Cols
	defer shares.done()
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(4*cols)
		defer w.done()
		zj, fi, acc := w.take(cols), w.take(2*cols), w.take(cols)
		for i := x.lo; i < x.hi; i++ {
			row := csr.row(i)
			f := readRow(film, i, fi)
			clear(acc)
			for _, j := range row {
				simd.FilmAdd(w.level, acc, readRow(z, int(j), zj), f[cols:], f[:cols])
			}
			writeRow(dst, i, acc, 1/float32(max(len(row), 1)), add)
		}
	})
}

// FilmMeanGrad goes over in-edges for dfilm, and over out-edges for dz.
func (c *Device) FilmMeanGrad(dz, dfilm Matrix, adj, adjT *Sparse, z, film, ddst Matrix) {
	csr := compressedOf(adj)
	csc := compressedOf(adjT)
	needFilm("FilmMeanGrad", adj, z, film)
	needRows("FilmMeanGrad: ddst", ddst, adj.Rows, z.Cols)
	needRows("FilmMeanGrad: dz", dz, adj.Cols, z.Cols)
	needRows("FilmMeanGrad: dfilm", dfilm, adj.Rows, 2*z.Cols)
	tensor.Need(adjT.Rows == adj.Cols && adjT.Cols == adj.Rows, "FilmMeanGrad: adjT is not adj's transpose")
	cols := z.Cols
	shares := edgeShares(adj, cols)
	c.run(len(shares.list), func(k, _ int) {
		x, w := shares.list[k], c.work(6*cols)
		defer w.done()
		zj, fi, gi, acc := w.take(cols), w.take(2*cols), w.take(cols), w.take(2*cols)
		for i := x.lo; i < x.hi; i++ {
			row := csr.row(i)
			f, g := readRow(film, i, fi), readRow(ddst, i, gi)
			clear(acc)
			for _, j := range row {
				simd.FilmGrad(w.level, acc[:cols], acc[cols:], readRow(z, int(j), zj), f[cols:], f[:cols], g)
			}
			writeRow(dfilm, i, acc, 1/float32(max(len(row), 1)), false)
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
			row := readRow(z, j, zj)
			clear(acc)
			for _, i := range csc.row(j) {
				f := readRow(film, int(i), fi)
				simd.FilmBack(w.level, acc, row, f[cols:], f[:cols], readRow(ddst, int(i), gi), 1/float32(csr.ptr[i+1]-csr.ptr[i]))
			}
			writeRow(dz, j, acc, 1, false)
		}
	})
}
