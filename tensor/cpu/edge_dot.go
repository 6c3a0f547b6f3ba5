package cpu

import (
	"starling/tensor"
	"starling/tensor/cpu/simd"
)

func needEdgeDot(name string, adj *Sparse, q, k, score Matrix) {
	csr := compressedOf(adj)
	needRows(name+": q", q, adj.Rows, q.Cols)
	needRows(name+": k", k, adj.Cols, q.Cols)
	tensor.Need(score.Cols > 0 && q.Cols%score.Cols == 0, "%s: %d columns for %d heads", name, q.Cols, score.Cols)
	tensor.Need(score.Type() == F32 && score.Contiguous() && score.Rows >= int(csr.ptr[adj.Rows]),
		"%s: scores are %v", name, score)
}

// EdgeDot goes once over the entries.
func (c *Device) EdgeDot(dst Matrix, adj *Sparse, q, k Matrix) {
	needEdgeDot("EdgeDot", adj, q, k, dst)
	csr, cols, heads := compressedOf(adj), q.Cols, dst.Cols
	wide, out := cols/heads, f32Of(dst)
	shares := edgeShares(adj, cols)
	defer shares.done()
	c.run(len(shares.list), func(n, _ int) {
		x, w := shares.list[n], c.work(2*cols)
		defer w.done()
		qi, kj := w.take(cols), w.take(cols)
		for i := x.lo; i < x.hi; i++ {
			query := readRow(q, i, qi)
			for e := csr.ptr[i]; e < csr.ptr[i+1]; e++ {
				key, to := readRow(k, int(csr.index[e]), kj), out[int(e)*heads:][:heads]
				for h := range to {
					to[h] = simd.DotProduct(w.level, query[h*wide:(h+1)*wide], key[h*wide:(h+1)*wide])
				}
			}
		}
	})
}

// EdgeDotGrad goes over in-edges for dq, and over out-edges for dk.
func (c *Device) EdgeDotGrad(dq, dk Matrix, adj, adjT *Sparse, q, k, ddst Matrix) {
	needEdgeDot("EdgeDotGrad", adj, q, k, ddst)
	needRows("EdgeDotGrad: dq", dq, adj.Rows, q.Cols)
	needRows("EdgeDotGrad: dk", dk, adj.Cols, q.Cols)
	needPlaces("EdgeDotGrad", adj, adjT)
	c.sumByEntry(dq, adj, k, ddst, nil)
	c.sumByEntry(dk, adjT, q, ddst, compressedOf(adjT).perm)
}

// sumByEntry: dst_i = the sum over entries e = (i,j) of by_eh · src_j, per head; entry e's numbers are in row perm[e] of by.
func (c *Device) sumByEntry(dst Matrix, adj *Sparse, src, by Matrix, perm []uint32) {
	csr, cols, heads := compressedOf(adj), dst.Cols, by.Cols
	wide, numbers := cols/heads, f32Of(by)
	shares := edgeShares(adj, cols)
	defer shares.done()
	c.run(len(shares.list), func(n, _ int) {
		x, w := shares.list[n], c.work(2*cols)
		defer w.done()
		sj, acc := w.take(cols), w.take(cols)
		for i := x.lo; i < x.hi; i++ {
			clear(acc)
			for e := csr.ptr[i]; e < csr.ptr[i+1]; e++ {
				row, at := readRow(src, int(csr.index[e]), sj), int(e)
				if perm != nil {
					at = int(perm[e])
				}
				for h, d := range numbers[at*heads:][:heads] {
					simd.AddScaled(w.level, acc[h*wide:(h+1)*wide], row[h*wide:(h+1)*wide], d)
				}
			}
			writeRow(dst, i, acc, 1, false)
		}
	})
}
