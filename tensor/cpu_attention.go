package tensor

import (
	"math"

	"starling/tensor/simd"
)

func needScores(name string, m Matrix, rows, cols int) {
	need(m.Rows == rows && m.Cols == cols && m.dtype == F32, "%s is %v, want %dx%d float32", name, m, rows, cols)
}

// dotRows is how many rows of HeadDot make a chunk: all vectors but the first find them
// in the core's cache. It decides how da's sums are grouped, so it may depend on
// shapes only.
func dotRows(z Matrix) int { return rowChunk(z.Cols * z.dtype.Size()) }

func (d HeadDot) needShapes(name string, z Matrix) {
	need(d.Score.Rows <= z.Rows, "%s: %d rows of scores for %d rows", name, d.Score.Rows, z.Rows)
	needScores(name+": a", d.A, 1, z.Cols)
	needScores(name+": score", d.Score, d.Score.Rows, d.Score.Cols)
	need(d.Score.Cols > 0 && z.Cols%d.Score.Cols == 0, "%s: %d columns for %d heads", name, z.Cols, d.Score.Cols)
}

// rows is the part of d and z from lo to hi at most.
func (d HeadDot) rows(z Matrix, lo, hi int) simd.HeadDots {
	hi = max(lo, min(hi, d.Score.Rows))
	if lo == hi {
		return simd.HeadDots{}
	}
	return simd.HeadDots{
		Score: d.Score.Slice(lo, hi).strided(), Z: z.Slice(lo, hi).strided(), A: d.A.row(0),
		Rows: hi - lo, Heads: d.Score.Cols, Width: z.Cols / d.Score.Cols,
	}
}

func (c *CPU) HeadDot(z Matrix, dots ...HeadDot) {
	needRows("HeadDot: z", z, z.Rows, z.Cols)
	for _, d := range dots {
		d.needShapes("HeadDot", z)
	}
	c.forRows(z.Rows, dotRows(z), func(lo, hi, _, _ int) {
		for _, d := range dots {
			part := d.rows(z, lo, hi)
			simd.HeadDot(c.level, &part)
		}
	})
}

// HeadDotGrad has sums of da of its own for every chunk and adds them in order.
func (c *CPU) HeadDotGrad(dz, z Matrix, dots ...HeadDot) {
	needRows("HeadDotGrad: z", z, z.Rows, z.Cols)
	for _, d := range dots {
		d.needShapes("HeadDotGrad", z)
		needScores("HeadDotGrad: da", d.DA, 1, z.Cols)
	}
	if !dz.IsZero() {
		needRows("HeadDotGrad: dz", dz, z.Rows, z.Cols)
	}
	if z.Rows == 0 {
		return
	}
	size := max(dotRows(z), (z.Rows+1023)/1024)
	partial := c.Scratch(F32, (z.Rows+size-1)/size*len(dots), z.Cols)
	defer c.Free(partial)
	c.forRows(z.Rows, size, func(lo, hi, k, _ int) {
		sums := partial.Slice(k*len(dots), (k+1)*len(dots))
		zeroRows(sums)
		for i, d := range dots {
			part := d.rows(z, lo, hi)
			part.DA = sums.row(i)
			if !dz.IsZero() {
				part.DZ = dz.Slice(lo, hi).strided()
			}
			simd.HeadDotGrad(c.level, &part)
		}
	})
	for k := range partial.Rows {
		sum := dots[k%len(dots)].DA.row(0)
		for i, x := range partial.row(k) {
			sum[i] += x
		}
	}
}

// longAttention is the most entries a row or part of a row may have, so that a
// core's scratch for coefficients stays in its second-level cache.
const longAttention = 4096

func attentionShares(s *Sparse, cols int) *shares {
	return newShares(s, min(entriesPerShare(cols), longAttention), longAttention)
}

func (op Attention) dropout(firstHead int) simd.AttentionDropout {
	d := op.Dropout
	return simd.AttentionDropout{
		On: d.P > 0, Threshold: d.threshold(), Scale: float32(d.scale()), Key: d.Key, FirstHead: firstHead,
		DstIDs: d.IDs.v, FirstDst: d.First, SrcIDs: op.SrcIDs.v,
	}
}

// fromDst is d for destinations from row i on; fromSrc the same for sources.
func fromDst(d simd.AttentionDropout, i int) simd.AttentionDropout {
	if d.DstIDs != nil {
		d.DstIDs = d.DstIDs[i:]
	}
	d.FirstDst += uint32(i)
	return d
}

func fromSrc(d simd.AttentionDropout, j int) simd.AttentionDropout {
	if d.SrcIDs != nil {
		d.SrcIDs = d.SrcIDs[j:]
	}
	d.FirstSrc += uint32(j)
	return d
}

// headPanels calls body for up to MaxHeads heads [lo,hi) at a time.
func headPanels(heads int, body func(lo, hi int)) {
	for lo := 0; lo < heads; lo += simd.MaxHeads {
		body(lo, min(lo+simd.MaxHeads, heads))
	}
}

func (op Attention) needShapes(name string, adj *Sparse, z, left, right, stat Matrix) {
	need(op.Heads > 0 && z.Cols%op.Heads == 0, "%s: %d columns for %d heads", name, z.Cols, op.Heads)
	needRows(name+": z", z, adj.Cols, z.Cols)
	needScores(name+": left", left, adj.Cols, op.Heads)
	needScores(name+": right", right, adj.Rows, op.Heads)
	needScores(name+": stat", stat, adj.Rows, 2*op.Heads)
	if !op.Edge.IsZero() {
		need(op.Edge.dtype == F32 && op.Edge.Cols == op.Heads && op.Edge.contiguous() && op.Edge.Rows >= int(adj.ptr[adj.Rows]), "%s: scores of edges are %v", name, op.Edge)
	}
}

// Attend goes once through the entries of each row: scores to scratch, softmax
// there, then one weighted sum of source rows. stat is maxima, then 1/sums.
func (c *CPU) Attend(dst, stat Matrix, adj *Sparse, z, left, right Matrix, op Attention) {
	op.needShapes("Attend", adj, z, left, right, stat)
	needRows("Attend: dst", dst, adj.Rows, z.Cols)
	width := z.Cols / op.Heads
	headPanels(op.Heads, func(lo, hi int) {
		c.attendPanel(dst.Columns(lo*width, hi*width), stat.Columns(lo, hi), stat.Columns(op.Heads+lo, op.Heads+hi),
			adj, z.Columns(lo*width, hi*width), left.Columns(lo, hi), right.Columns(lo, hi), op, op.dropout(lo))
	})
}

func (c *CPU) attendPanel(dst, top, inv Matrix, adj *Sparse, z, left, right Matrix, op Attention, drop simd.AttentionDropout) {
	w := attentionShares(adj, z.Cols)
	defer w.done()
	partial := c.Scratch(F32, w.parts, z.Cols)
	defer c.Free(partial)
	partTop, partInv := c.Scratch(F32, w.parts, top.Cols), c.Scratch(F32, w.parts, top.Cols)
	defer c.Free(partTop)
	defer c.Free(partInv)
	c.run(len(w.list), func(k, _ int) {
		x := w.list[k]
		ptr := w.bounds(adj, x)
		work := takeFloats(simd.AttentionWork(longest(ptr), top.Cols, z.Cols))
		defer floatsPool.Put(work)
		a := simd.Attention{
			Dst: dst.Slice(x.lo, x.hi).strided(), Z: z.strided(), Rows: x.hi - x.lo, Heads: top.Cols, Width: z.Cols / top.Cols,
			Ptr: ptr, Index: adj.index, Left: left.strided(), Right: right.Slice(x.lo, x.hi).strided(),
			Max: top.Slice(x.lo, x.hi).strided(), Inv: inv.Slice(x.lo, x.hi).strided(),
			Slope: float32(op.Slope), Score: op.Edge.f32, EdgeHeads: op.Heads, Drop: fromDst(drop, x.lo), Work: *work,
			Stream: dst.Bytes() >= streamBytes,
		}
		if x.part >= 0 {
			a.Dst, a.Stream = partial.Slice(x.part, x.part+1).strided(), false
			a.Max = partTop.Slice(x.part, x.part+1).strided()
			a.Inv = partInv.Slice(x.part, x.part+1).strided()
		}
		simd.Attend(c.level, &a)
	})
	for _, x := range w.long {
		c.joinAttention(dst, top, inv, partial, partTop, partInv, w, x)
	}
}

// joinAttention makes one softmax of those over a long row's parts: part p had
// maximum m_p and sum s_p, so it weighs s_p·exp(m_p - m).
func (c *CPU) joinAttention(dst, top, inv, partial, partTop, partInv Matrix, w *shares, x share) {
	width := dst.Cols / top.Cols
	weight := make([]float32, w.parts)
	for h := range top.Cols {
		m, sum := float32(math.Inf(-1)), float32(0)
		for p := x.part; p < x.hi; p++ {
			m = max(m, partTop.row(p)[h])
		}
		for p := x.part; p < x.hi; p++ {
			weight[p] = simd.Exp(partTop.row(p)[h]-m) / partInv.row(p)[h]
			sum += weight[p]
		}
		top.row(x.lo)[h], inv.row(x.lo)[h] = m, 1/sum
		acc := takeFloats(max(simd.MaxCols, width))
		for lo := 0; lo < width; lo += simd.MaxCols {
			from, to := h*width+lo, h*width+min(lo+simd.MaxCols, width)
			simd.AggregateRows(c.level, &simd.RowSums{
				Dst: dst.Slice(x.lo, x.lo+1).Columns(from, to).strided(), Src: partial.Columns(from, to).strided(),
				Rows: 1, Cols: to - from, Ptr: []int64{int64(x.part), int64(x.hi)}, Index: w.iota,
				ColScale: weight, RowScale: []float32{1 / sum}, Acc: *acc,
			})
		}
		floatsPool.Put(acc)
	}
}
