package ref

import (
	"math"

	"starling/tensor"
	"starling/tensor/draw"
)

// entryOf is the value of entry e, one where the matrix has none.
func entryOf(s *Sparse, e int64) float64 { return scaleAt(s.Values(), int(e)) }

// at is entry i of a column vector, one where there is no vector.
func scaleAt(m Matrix, i int) float64 {
	if m.IsZero() {
		return 1
	}
	return rowOf(m, i)[0]
}

func (r *Device) Aggregate(dst Matrix, adj *Sparse, src Matrix, op Aggregate) {
	sum := make([]float64, dst.Cols)
	for i := range adj.Rows {
		clear(sum)
		for e := ptrOf(adj)[i]; e < ptrOf(adj)[i+1]; e++ {
			j := int(indexOf(adj)[e])
			addScaled(sum, rowOf(src, j), entryOf(adj, e)*scaleAt(op.ColScale, j))
		}
		if op.Self != 0 {
			addScaled(sum, rowOf(src, op.First+i), op.Self*scaleAt(op.ColScale, op.First+i)*scaleAt(op.SelfScale,
				op.First+i))
		}
		d := rowOf(dst, i)
		if !op.Add {
			clear(d)
		}
		addScaled(d, sum, scaleAt(op.RowScale, i))
	}
}

func addScaled(dst, src []float64, by float64) {
	for j, x := range src {
		dst[j] += by * x
	}
}

func (r *Device) AggregateMax(dst Matrix, arg Index, adj *Sparse, src Matrix) {
	for i := range adj.Rows {
		d, a := rowOf(dst, i), entriesOf(arg)[i*dst.Cols:(i+1)*dst.Cols]
		for c := range d {
			d[c], a[c] = 0, ^uint32(0)
			for _, j := range indexOf(adj)[ptrOf(adj)[i]:ptrOf(adj)[i+1]] {
				if x := rowOf(src, int(j))[c]; a[c] == ^uint32(0) || x > d[c] {
					d[c], a[c] = x, j
				}
			}
		}
	}
}

func (r *Device) AggregateMaxGrad(dsrc Matrix, adjT *Sparse, ddst Matrix, arg Index) {
	r.Zero(dsrc)
	for i := range ddst.Rows {
		for c, g := range rowOf(ddst, i) {
			if j := entriesOf(arg)[i*ddst.Cols+c]; j != ^uint32(0) {
				rowOf(dsrc, int(j))[c] += g
			}
		}
	}
}

func (r *Device) HeadDot(z Matrix, dots ...HeadDot) {
	for _, d := range dots {
		w := z.Cols / d.Score.Cols
		for i := range d.Score.Rows {
			s := rowOf(d.Score, i)
			clear(s)
			for c, x := range rowOf(z, i) {
				s[c/w] += x * rowOf(d.A, 0)[c]
			}
		}
	}
}

func (r *Device) HeadDotGrad(dz, z Matrix, dots ...HeadDot) {
	for _, d := range dots {
		w := z.Cols / d.Score.Cols
		for i := range d.Score.Rows {
			ds := rowOf(d.Score, i)
			for c, x := range rowOf(z, i) {
				if !dz.IsZero() {
					rowOf(dz, i)[c] += ds[c/w] * rowOf(d.A, 0)[c]
				}
				rowOf(d.DA, 0)[c] += ds[c/w] * x
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
func coefficientFactor(op Attention, i, j, h int) float64 {
	src := uint32(j)
	if entriesOf(op.SrcIDs) != nil {
		src = entriesOf(op.SrcIDs)[j]
	}
	key := draw.RowKey(op.Dropout.Key, tensor.RowID(op.Dropout, i))
	return dropOutcome(op.Dropout, draw.Attention(key, src, h) >= op.Dropout.Threshold())
}

// edge is what an entry adds to the score of head h.
func edgeScore(op Attention, e int64, h int) float64 {
	if op.Edge.IsZero() {
		return 0
	}
	return rowOf(op.Edge, int(e))[h]
}

func (r *Device) Attend(dst, stat Matrix, adj *Sparse, z, left, right Matrix, op Attention) {
	w := z.Cols / op.Heads
	r.Zero(dst)
	for i := range adj.Rows {
		row := indexOf(adj)[ptrOf(adj)[i]:ptrOf(adj)[i+1]]
		for h := range op.Heads {
			score := func(k int) float64 {
				return leaky(rowOf(left, int(row[k]))[h]+rowOf(right, i)[h]+edgeScore(op, ptrOf(adj)[i]+int64(k), h),
					op.Slope)
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
			rowOf(stat, i)[h], rowOf(stat, i)[op.Heads+h] = top, 1/sum
			for k, j := range row {
				alpha := math.Exp(score(k)-top) / sum * coefficientFactor(op, i, int(j), h)
				addScaled(rowOf(dst, i)[h*w:(h+1)*w], rowOf(z, int(j))[h*w:(h+1)*w], alpha)
			}
		}
	}
}

func (r *Device) AttendGrad(dz, dleft, dright Matrix, adj, _ *Sparse, z, left, right, stat, dst, ddst Matrix,
	op Attention) {
	w := z.Cols / op.Heads
	deltas := softmaxTerms(ddst, dst, op.Heads)
	r.Zero(dz)
	r.Zero(dleft)
	r.Zero(dright)
	for i := range adj.Rows {
		for h := range op.Heads {
			g := rowOf(ddst, i)[h*w : (h+1)*w]
			delta := deltas[i*op.Heads+h]
			for e := ptrOf(adj)[i]; e < ptrOf(adj)[i+1]; e++ {
				j := indexOf(adj)[e]
				pre := rowOf(left, int(j))[h] + rowOf(right, i)[h] + edgeScore(op, e, h)
				alpha := math.Exp(leaky(pre, op.Slope)-rowOf(stat, i)[h]) * rowOf(stat, i)[op.Heads+h]
				drop := coefficientFactor(op, i, int(j), h)
				de := scoreGrad(alpha, drop*dot64(g, rowOf(z, int(j))[h*w:(h+1)*w]), delta)
				if pre <= 0 {
					de *= op.Slope
				}
				addScaled(rowOf(dz, int(j))[h*w:(h+1)*w], g, alpha*drop)
				rowOf(dleft, int(j))[h] += de
				rowOf(dright, i)[h] += de
				if !op.DEdge.IsZero() {
					rowOf(op.DEdge, int(e))[h] = de
				}
			}
		}
	}
}

func (r *Device) JoinAttend(dst, stat Matrix, adj *Sparse, part, partStat Matrix) {
	heads := stat.Cols / 2
	w := dst.Cols / heads
	for i := range adj.Rows {
		if ptrOf(adj)[i] == ptrOf(adj)[i+1] {
			continue
		}
		for h := range heads {
			s, t := rowOf(stat, i), rowOf(partStat, i)
			m, before := t[h], 0.0
			if s[heads+h] > 0 {
				m = max(m, s[h])
				before = math.Exp(s[h]-m) / s[heads+h]
			}
			now := math.Exp(t[h]-m) / t[heads+h]
			s[h], s[heads+h] = m, 1/(before+now)
			for c := h * w; c < (h+1)*w; c++ {
				d := &rowOf(dst, i)[c]
				*d = (before**d + now*rowOf(part, i)[c]) / (before + now)
			}
		}
	}
}

// scoreGrad is the gradient of a score whose coefficient is alpha, with gradient dalpha. That of
// a coefficient of 1, which no other entry shares, is exactly zero.
func scoreGrad(alpha, dalpha, delta float64) float64 {
	if alpha == 1 {
		return 0
	}
	return alpha * (dalpha - delta)
}

// softmaxTerms are the softmax's backward terms of each row and head, the sums over k of
// α_ik·dα_ik, which are these dot products.
func softmaxTerms(ddst, dst Matrix, heads int) (terms []float64) {
	w := dst.Cols / heads
	for i := range dst.Rows {
		for h := range heads {
			terms = append(terms, dot64(rowOf(ddst, i)[h*w:(h+1)*w], rowOf(dst, i)[h*w:(h+1)*w]))
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

func (r *Device) GatherRows(dst, src Matrix, rows Index) {
	for k, i := range entriesOf(rows) {
		copy(rowOf(dst, k), rowOf(src, int(i)))
	}
}

func (r *Device) ScatterAdd(dst, src Matrix, rows Index) {
	for k, i := range entriesOf(rows) {
		addScaled(rowOf(dst, int(i)), rowOf(src, k), 1)
	}
}

func (r *Device) DropoutValues(dst Matrix, s *Sparse, d Dropout, transposed bool) {
	for i := range s.Rows {
		for e := ptrOf(s)[i]; e < ptrOf(s)[i+1]; e++ {
			row, col := i, indexOf(s)[e]
			if transposed {
				row, col = int(col), uint32(row)
			}
			rowOf(dst, int(e))[0] = entryOf(s, e) * dropFactor(d, row, col)
		}
	}
}
