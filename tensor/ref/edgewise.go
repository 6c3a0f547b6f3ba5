package ref

import "math"

// of is the edge's row: features_e · weight + bias; zeros without features.
func edgeRow(x *EdgeInput, e int64, width int) []float64 {
	t := make([]float64, width)
	if x.Features.IsZero() {
		return t
	}
	for k, f := range rowOf(x.Features, int(e)) {
		addScaled(t, rowOf(x.Weight, k), f)
	}
	if !x.Bias.IsZero() {
		addScaled(t, rowOf(x.Bias, 0), 1)
	}
	return t
}

// learn adds what the gradient of the edge's row says of weight and bias.
func edgeGrad(x *EdgeInput, e int64, dt []float64) {
	if x.Features.IsZero() {
		return
	}
	for k, f := range rowOf(x.Features, int(e)) {
		addScaled(rowOf(x.DWeight, k), dt, f)
	}
	if !x.DBias.IsZero() {
		addScaled(rowOf(x.DBias, 0), dt, 1)
	}
}

func (r *Device) DynamicAttend(dst, alpha Matrix, adj *Sparse, z, right, a Matrix, op Attention, edges EdgeInput) {
	w := z.Cols / op.Heads
	r.Zero(dst)
	for i := range adj.Rows {
		lo, hi := ptrOf(adj)[i], ptrOf(adj)[i+1]
		for h := range op.Heads {
			from, to := h*w, (h+1)*w
			score := make([]float64, hi-lo)
			top, sum := math.Inf(-1), 0.0
			for e := lo; e < hi; e++ {
				t, zj, ri := edgeRow(&edges, e, z.Cols), rowOf(z, int(indexOf(adj)[e])), rowOf(right, i)
				for c := from; c < to; c++ {
					score[e-lo] += rowOf(a, 0)[c] * leaky(zj[c]+ri[c]+t[c], op.Slope)
				}
				top = max(top, score[e-lo])
			}
			for _, s := range score {
				sum += math.Exp(s - top)
			}
			for e := lo; e < hi; e++ {
				j := int(indexOf(adj)[e])
				p := math.Exp(score[e-lo]-top) / sum
				if !alpha.IsZero() {
					rowOf(alpha, int(e))[h] = p
				}
				addScaled(rowOf(dst, i)[from:to], rowOf(z, j)[from:to], p*coefficientFactor(op, i, j, h))
			}
		}
	}
}

func (r *Device) DynamicAttendGrad(dz, dright, da Matrix, adj, _ *Sparse, z, right, a, alpha, dst, ddst Matrix,
	op Attention, edges EdgeInput) {
	w := z.Cols / op.Heads
	deltas := softmaxTerms(ddst, dst, op.Heads)
	r.Zero(dz)
	r.Zero(dright)
	for i := range adj.Rows {
		g := rowOf(ddst, i)
		for e := ptrOf(adj)[i]; e < ptrOf(adj)[i+1]; e++ {
			j := int(indexOf(adj)[e])
			t, zj := edgeRow(&edges, e, z.Cols), rowOf(z, j)
			ds := make([]float64, z.Cols)
			for h := range op.Heads {
				from, to := h*w, (h+1)*w
				p, drop := rowOf(alpha, int(e))[h], coefficientFactor(op, i, j, h)
				de := scoreGrad(p, drop*dot64(g[from:to], zj[from:to]), deltas[i*op.Heads+h])
				addScaled(rowOf(dz, j)[from:to], g[from:to], p*drop)
				for c := from; c < to; c++ {
					s := zj[c] + rowOf(right, i)[c] + t[c]
					rowOf(da, 0)[c] += de * leaky(s, op.Slope)
					ds[c] = de * rowOf(a, 0)[c]
					if s <= 0 {
						ds[c] *= op.Slope
					}
				}
			}
			addScaled(rowOf(dz, j), ds, 1)
			addScaled(rowOf(dright, i), ds, 1)
			edgeGrad(&edges, e, ds)
		}
	}
}

func (r *Device) EdgeDot(dst Matrix, adj *Sparse, q, k Matrix) {
	w := q.Cols / dst.Cols
	for i := range adj.Rows {
		for e := ptrOf(adj)[i]; e < ptrOf(adj)[i+1]; e++ {
			for h := range dst.Cols {
				rowOf(dst, int(e))[h] = dot64(rowOf(q, i)[h*w:(h+1)*w], rowOf(k, int(indexOf(adj)[e]))[h*w:(h+1)*w])
			}
		}
	}
}

func (r *Device) EdgeDotGrad(dq, dk Matrix, adj, _ *Sparse, q, k, ddst Matrix) {
	w := q.Cols / ddst.Cols
	r.Zero(dq)
	r.Zero(dk)
	for i := range adj.Rows {
		for e := ptrOf(adj)[i]; e < ptrOf(adj)[i+1]; e++ {
			j := int(indexOf(adj)[e])
			for h, d := range rowOf(ddst, int(e)) {
				from, to := h*w, (h+1)*w
				addScaled(rowOf(dq, i)[from:to], rowOf(k, j)[from:to], d)
				addScaled(rowOf(dk, j)[from:to], rowOf(q, i)[from:to], d)
			}
		}
	}
}

func (r *Device) FilmMean(dst Matrix, adj *Sparse, z, film Matrix, add bool) {
	if !add {
		r.Zero(dst)
	}
	for i := range adj.Rows {
		row := indexOf(adj)[ptrOf(adj)[i]:ptrOf(adj)[i+1]]
		f, d := rowOf(film, i), rowOf(dst, i)
		for _, j := range row {
			for c, x := range rowOf(z, int(j)) {
				d[c] += max(0, f[z.Cols+c]*x+f[c]) / float64(len(row))
			}
		}
	}
}

func (r *Device) FilmMeanGrad(dz, dfilm Matrix, adj, _ *Sparse, z, film, ddst Matrix) {
	r.Zero(dz)
	r.Zero(dfilm)
	for i := range adj.Rows {
		row := indexOf(adj)[ptrOf(adj)[i]:ptrOf(adj)[i+1]]
		f, df := rowOf(film, i), rowOf(dfilm, i)
		for _, j := range row {
			for c, x := range rowOf(z, int(j)) {
				if f[z.Cols+c]*x+f[c] > 0 {
					g := rowOf(ddst, i)[c] / float64(len(row))
					df[c] += g
					df[z.Cols+c] += g * x
					rowOf(dz, int(j))[c] += g * f[z.Cols+c]
				}
			}
		}
	}
}

func (r *Device) EdgeSum(dst Matrix, adj *Sparse, src Matrix, edges EdgeInput) {
	r.Zero(dst)
	for i := range adj.Rows {
		for e := ptrOf(adj)[i]; e < ptrOf(adj)[i+1]; e++ {
			t := edgeRow(&edges, e, src.Cols)
			for c, x := range rowOf(src, int(indexOf(adj)[e])) {
				rowOf(dst, i)[c] += max(0, x+t[c])
			}
		}
	}
}

func (r *Device) EdgeSumGrad(dsrc Matrix, adj, _ *Sparse, src, ddst Matrix, edges EdgeInput) {
	r.Zero(dsrc)
	for i := range adj.Rows {
		for e := ptrOf(adj)[i]; e < ptrOf(adj)[i+1]; e++ {
			j := int(indexOf(adj)[e])
			t := edgeRow(&edges, e, src.Cols)
			for c, x := range rowOf(src, j) {
				if x+t[c] > 0 {
					t[c] = rowOf(ddst, i)[c]
				} else {
					t[c] = 0
				}
			}
			addScaled(rowOf(dsrc, j), t, 1)
			edgeGrad(&edges, e, t)
		}
	}
}
