package tensor

import "math"

// of is the edge's row: features_e · weight + bias; zeros without features.
func (x *EdgeInput) of(e int64, width int) []float64 {
	t := make([]float64, width)
	if x.Features.IsZero() {
		return t
	}
	for k, f := range x.Features.row64(int(e)) {
		addScaled(t, x.Weight.row64(k), f)
	}
	if !x.Bias.IsZero() {
		addScaled(t, x.Bias.row64(0), 1)
	}
	return t
}

// learn adds what the gradient of the edge's row says of weight and bias.
func (x *EdgeInput) learn(e int64, dt []float64) {
	if x.Features.IsZero() {
		return
	}
	for k, f := range x.Features.row64(int(e)) {
		addScaled(x.DWeight.row64(k), dt, f)
	}
	if !x.DBias.IsZero() {
		addScaled(x.DBias.row64(0), dt, 1)
	}
}

func (r *Ref) DynamicAttend(dst, alpha Matrix, adj *Sparse, z, right, a Matrix, op Attention, edges EdgeInput) {
	w := z.Cols / op.Heads
	r.Zero(dst)
	for i := range adj.Rows {
		lo, hi := adj.ptr[i], adj.ptr[i+1]
		for h := range op.Heads {
			from, to := h*w, (h+1)*w
			score := make([]float64, hi-lo)
			top, sum := math.Inf(-1), 0.0
			for e := lo; e < hi; e++ {
				t, zj, ri := edges.of(e, z.Cols), z.row64(int(adj.index[e])), right.row64(i)
				for c := from; c < to; c++ {
					score[e-lo] += a.row64(0)[c] * leaky(zj[c]+ri[c]+t[c], op.Slope)
				}
				top = max(top, score[e-lo])
			}
			for _, s := range score {
				sum += math.Exp(s - top)
			}
			for e := lo; e < hi; e++ {
				j := int(adj.index[e])
				p := math.Exp(score[e-lo]-top) / sum
				if !alpha.IsZero() {
					alpha.row64(int(e))[h] = p
				}
				addScaled(dst.row64(i)[from:to], z.row64(j)[from:to], p*op.coefficientFactor(i, j, h))
			}
		}
	}
}

func (r *Ref) DynamicAttendGrad(dz, dright, da Matrix, adj, _ *Sparse, z, right, a, alpha, dst, ddst Matrix, op Attention, edges EdgeInput) {
	w := z.Cols / op.Heads
	deltas := softmaxTerms(ddst, dst, op.Heads)
	r.Zero(dz)
	r.Zero(dright)
	for i := range adj.Rows {
		g := ddst.row64(i)
		for e := adj.ptr[i]; e < adj.ptr[i+1]; e++ {
			j := int(adj.index[e])
			t, zj := edges.of(e, z.Cols), z.row64(j)
			ds := make([]float64, z.Cols)
			for h := range op.Heads {
				from, to := h*w, (h+1)*w
				p, drop := alpha.row64(int(e))[h], op.coefficientFactor(i, j, h)
				de := p * (drop*dot64(g[from:to], zj[from:to]) - deltas[i*op.Heads+h])
				addScaled(dz.row64(j)[from:to], g[from:to], p*drop)
				for c := from; c < to; c++ {
					s := zj[c] + right.row64(i)[c] + t[c]
					da.row64(0)[c] += de * leaky(s, op.Slope)
					ds[c] = de * a.row64(0)[c]
					if s <= 0 {
						ds[c] *= op.Slope
					}
				}
			}
			addScaled(dz.row64(j), ds, 1)
			addScaled(dright.row64(i), ds, 1)
			edges.learn(e, ds)
		}
	}
}

func (r *Ref) FilmMean(dst Matrix, adj *Sparse, z, film Matrix, add bool) {
	if !add {
		r.Zero(dst)
	}
	for i := range adj.Rows {
		row := adj.index[adj.ptr[i]:adj.ptr[i+1]]
		f, d := film.row64(i), dst.row64(i)
		for _, j := range row {
			for c, x := range z.row64(int(j)) {
				d[c] += max(0, f[z.Cols+c]*x+f[c]) / float64(len(row))
			}
		}
	}
}

func (r *Ref) FilmMeanGrad(dz, dfilm Matrix, adj, _ *Sparse, z, film, ddst Matrix) {
	r.Zero(dz)
	r.Zero(dfilm)
	for i := range adj.Rows {
		row := adj.index[adj.ptr[i]:adj.ptr[i+1]]
		f, df := film.row64(i), dfilm.row64(i)
		for _, j := range row {
			for c, x := range z.row64(int(j)) {
				if f[z.Cols+c]*x+f[c] > 0 {
					g := ddst.row64(i)[c] / float64(len(row))
					df[c] += g
					df[z.Cols+c] += g * x
					dz.row64(int(j))[c] += g * f[z.Cols+c]
				}
			}
		}
	}
}

func (r *Ref) EdgeSum(dst Matrix, adj *Sparse, src Matrix, edges EdgeInput) {
	r.Zero(dst)
	for i := range adj.Rows {
		for e := adj.ptr[i]; e < adj.ptr[i+1]; e++ {
			t := edges.of(e, src.Cols)
			for c, x := range src.row64(int(adj.index[e])) {
				dst.row64(i)[c] += max(0, x+t[c])
			}
		}
	}
}

func (r *Ref) EdgeSumGrad(dsrc Matrix, adj, _ *Sparse, src, ddst Matrix, edges EdgeInput) {
	r.Zero(dsrc)
	for i := range adj.Rows {
		for e := adj.ptr[i]; e < adj.ptr[i+1]; e++ {
			j := int(adj.index[e])
			t := edges.of(e, src.Cols)
			for c, x := range src.row64(j) {
				if x+t[c] > 0 {
					t[c] = ddst.row64(i)[c]
				} else {
					t[c] = 0
				}
			}
			addScaled(dsrc.row64(j), t, 1)
			edges.learn(e, t)
		}
	}
}
