package tensor

import (
	"math"

	"starling/tensor/simd"
)

// entry is the value of entry e, one where the matrix has none.
func (s *Sparse) entry(e int64) float64 {
	switch {
	case s.value.f32 != nil:
		return float64(s.value.f32[e])
	case s.value.f64 != nil:
		return s.value.f64[e]
	}
	return 1
}

// at is entry i of a column vector, one where there is no vector.
func (m Matrix) at(i int) float64 {
	if m.IsZero() {
		return 1
	}
	return m.row64(i)[0]
}

func (r *Ref) Aggregate(dst Matrix, adj *Sparse, src Matrix, op Aggregate) {
	sum := make([]float64, dst.Cols)
	for i := range adj.Rows {
		clear(sum)
		for e := adj.ptr[i]; e < adj.ptr[i+1]; e++ {
			j := int(adj.index[e])
			addScaled(sum, src.row64(j), adj.entry(e)*op.ColScale.at(j))
		}
		if op.Self != 0 {
			addScaled(sum, src.row64(op.First+i), op.Self*op.ColScale.at(op.First+i)*op.SelfScale.at(op.First+i))
		}
		d := dst.row64(i)
		if !op.Add {
			clear(d)
		}
		addScaled(d, sum, op.RowScale.at(i))
	}
}

func addScaled(dst, src []float64, by float64) {
	for j, x := range src {
		dst[j] += by * x
	}
}

func (r *Ref) AggregateMax(dst Matrix, arg Index, adj *Sparse, src Matrix) {
	for i := range adj.Rows {
		d, a := dst.row64(i), arg.v[i*dst.Cols:(i+1)*dst.Cols]
		for c := range d {
			d[c], a[c] = 0, ^uint32(0)
			for _, j := range adj.index[adj.ptr[i]:adj.ptr[i+1]] {
				if x := src.row64(int(j))[c]; a[c] == ^uint32(0) || x > d[c] {
					d[c], a[c] = x, j
				}
			}
		}
	}
}

func (r *Ref) AggregateMaxGrad(dsrc Matrix, adjT *Sparse, ddst Matrix, arg Index) {
	r.Zero(dsrc)
	for i := range ddst.Rows {
		for c, g := range ddst.row64(i) {
			if j := arg.v[i*ddst.Cols+c]; j != ^uint32(0) {
				dsrc.row64(int(j))[c] += g
			}
		}
	}
}

func (r *Ref) HeadDot(z Matrix, dots ...HeadDot) {
	for _, d := range dots {
		w := z.Cols / d.Score.Cols
		for i := range d.Score.Rows {
			s := d.Score.row64(i)
			clear(s)
			for c, x := range z.row64(i) {
				s[c/w] += x * d.A.row64(0)[c]
			}
		}
	}
}

func (r *Ref) HeadDotGrad(dz, z Matrix, dots ...HeadDot) {
	for _, d := range dots {
		w := z.Cols / d.Score.Cols
		for i := range d.Score.Rows {
			ds := d.Score.row64(i)
			for c, x := range z.row64(i) {
				if !dz.IsZero() {
					dz.row64(i)[c] += ds[c/w] * d.A.row64(0)[c]
				}
				d.DA.row64(0)[c] += ds[c/w] * x
			}
		}
	}
}

// leaky is the leaky ReLU of attention scores.
func leaky(x, slope float64) float64 {
	if x > 0 {
		return x
	}
	return slope * x
}

// coefficientFactor is what dropout multiplies the coefficient of edge j -> i, head h, by.
func (op Attention) coefficientFactor(i, j, h int) float64 {
	src := uint32(j)
	if op.SrcIDs.v != nil {
		src = op.SrcIDs.v[j]
	}
	key := simd.RowKey(op.Dropout.Key, op.Dropout.id(i))
	return op.Dropout.outcome(simd.AttentionDraw(key, src, h) >= op.Dropout.threshold())
}

// edge is what an entry adds to the score of head h.
func (op Attention) edge(e int64, h int) float64 {
	if op.Edge.IsZero() {
		return 0
	}
	return op.Edge.row64(int(e))[h]
}

func (r *Ref) Attend(dst, stat Matrix, adj *Sparse, z, left, right Matrix, op Attention) {
	w := z.Cols / op.Heads
	r.Zero(dst)
	for i := range adj.Rows {
		row := adj.index[adj.ptr[i]:adj.ptr[i+1]]
		for h := range op.Heads {
			score := func(k int) float64 {
				return leaky(left.row64(int(row[k]))[h]+right.row64(i)[h]+op.edge(adj.ptr[i]+int64(k), h), op.Slope)
			}
			top, sum := math.Inf(-1), 0.0
			for k := range row {
				top = max(top, score(k))
			}
			for k := range row {
				sum += math.Exp(score(k) - top)
			}
			if len(row) == 0 {
				top, sum = 0, 1
			}
			stat.row64(i)[h], stat.row64(i)[op.Heads+h] = top, 1/sum
			for k, j := range row {
				alpha := math.Exp(score(k)-top) / sum * op.coefficientFactor(i, int(j), h)
				addScaled(dst.row64(i)[h*w:(h+1)*w], z.row64(int(j))[h*w:(h+1)*w], alpha)
			}
		}
	}
}

func (r *Ref) AttendGrad(dz, dleft, dright Matrix, adj, _ *Sparse, z, left, right, stat, dst, ddst Matrix, op Attention) {
	w := z.Cols / op.Heads
	deltas := softmaxTerms(ddst, dst, op.Heads)
	r.Zero(dz)
	r.Zero(dleft)
	r.Zero(dright)
	for i := range adj.Rows {
		for h := range op.Heads {
			g := ddst.row64(i)[h*w : (h+1)*w]
			delta := deltas[i*op.Heads+h]
			for e := adj.ptr[i]; e < adj.ptr[i+1]; e++ {
				j := adj.index[e]
				pre := left.row64(int(j))[h] + right.row64(i)[h] + op.edge(e, h)
				alpha := math.Exp(leaky(pre, op.Slope)-stat.row64(i)[h]) * stat.row64(i)[op.Heads+h]
				drop := op.coefficientFactor(i, int(j), h)
				de := alpha * (drop*dot64(g, z.row64(int(j))[h*w:(h+1)*w]) - delta)
				if pre <= 0 {
					de *= op.Slope
				}
				addScaled(dz.row64(int(j))[h*w:(h+1)*w], g, alpha*drop)
				dleft.row64(int(j))[h] += de
				dright.row64(i)[h] += de
				if !op.DEdge.IsZero() {
					op.DEdge.row64(int(e))[h] = de
				}
			}
		}
	}
}

// softmaxTerms are the softmax's backward terms of each row and head, the sums over k of
// α_ik·dα_ik, which are these dot products.
func softmaxTerms(ddst, dst Matrix, heads int) (terms []float64) {
	w := dst.Cols / heads
	for i := range dst.Rows {
		for h := range heads {
			terms = append(terms, dot64(ddst.row64(i)[h*w:(h+1)*w], dst.row64(i)[h*w:(h+1)*w]))
		}
	}
	return terms
}

func dot64(a, b []float64) float64 {
	s := 0.0
	for i, x := range a {
		s += x * b[i]
	}
	return s
}

func (r *Ref) GatherRows(dst, src Matrix, rows Index) {
	for k, i := range rows.v {
		copy(dst.row64(k), src.row64(int(i)))
	}
}

func (r *Ref) ScatterAdd(dst, src Matrix, rows Index) {
	for k, i := range rows.v {
		addScaled(dst.row64(int(i)), src.row64(k), 1)
	}
}

func (r *Ref) DropoutValues(dst Matrix, s *Sparse, d Dropout, transposed bool) {
	for i := range s.Rows {
		for e := s.ptr[i]; e < s.ptr[i+1]; e++ {
			row, col := i, s.index[e]
			if transposed {
				row, col = int(col), uint32(row)
			}
			dst.row64(int(e))[0] = s.entry(e) * d.factor(row, col)
		}
	}
}
