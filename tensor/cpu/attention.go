package cpu

import (
	"math"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

func needScores(name string, m Matrix, rows, cols int) {
	tensor.Need(m.Rows == rows && m.Cols == cols && m.Type() == F32, "%s is %v, want %dx%d float32", name, m, rows,
		cols)
}

// dotRows is how many rows of HeadDot make a chunk: all vectors but the first find them
// in the core's cache. It decides how da's sums are grouped, so it may depend on
// shapes only.
func dotRows(z Matrix) int { return rowChunk(z.Cols * z.Type().Size()) }

func needHeadDot(d HeadDot, name string, z Matrix) {
	tensor.Need(d.Score.Rows <= z.Rows, "%s: %d rows of scores for %d rows", name, d.Score.Rows, z.Rows)
	needScores(name+": a", d.A, 1, z.Cols)
	needScores(name+": score", d.Score, d.Score.Rows, d.Score.Cols)
	tensor.Need(d.Score.Cols > 0 && z.Cols%d.Score.Cols == 0, "%s: %d columns for %d heads", name, z.Cols, d.Score.Cols)
}

// rows is the part of d and z from lo to hi at most.
func headDotRows(d HeadDot, z Matrix, lo, hi int) simd.HeadDots {
	hi = max(lo, min(hi, d.Score.Rows))
	if lo == hi {
		return simd.HeadDots{}
	}
	return simd.HeadDots{
		Score: stridedOf(d.Score.Slice(lo, hi)), Z: stridedOf(z.Slice(lo, hi)), A: rowOf(d.A, 0),
		Rows: hi - lo, Heads: d.Score.Cols, Width: z.Cols / d.Score.Cols,
	}
}

func (c *Device) HeadDot(z Matrix, dots ...HeadDot) {
	needRows("HeadDot: z", z, z.Rows, z.Cols)
	for _, d := range dots {
		needHeadDot(d, "HeadDot", z)
	}
	c.forRows(z.Rows, dotRows(z), func(lo, hi, _, _ int) {
		for _, d := range dots {
			part := headDotRows(d, z, lo, hi)
			simd.HeadDot(c.level, &part)
		}
	})
}

// HeadDotGrad has sums of da of its own for every chunk and adds them in order.
func (c *Device) HeadDotGrad(dz, z Matrix, dots ...HeadDot) {
	needRows("HeadDotGrad: z", z, z.Rows, z.Cols)
	for _, d := range dots {
		needHeadDot(d, "HeadDotGrad", z)
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
			part := headDotRows(d, z, lo, hi)
			part.DA = rowOf(sums, i)
			if !dz.IsZero() {
				part.DZ = stridedOf(dz.Slice(lo, hi))
			}
			simd.HeadDotGrad(c.level, &part)
		}
	})
	for k := range partial.Rows {
		sum := rowOf(dots[k%len(dots)].DA, 0)
		for i, x := range rowOf(partial, k) {
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

func attentionDropout(op Attention, firstHead int) simd.AttentionDropout {
	d := op.Dropout
	return simd.AttentionDropout{
		On: d.P > 0, Threshold: d.Threshold(), Scale: float32(d.Scale()), Key: d.Key, FirstHead: firstHead,
		DstIDs: entriesOf(d.IDs), FirstDst: d.First, SrcIDs: entriesOf(op.SrcIDs),
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

func needAttention(op Attention, name string, adj *Sparse, z, left, right, stat Matrix) {
	csr := compressedOf(adj)
	tensor.Need(op.Heads > 0 && z.Cols%op.Heads == 0, "%s: %d columns for %d heads", name, z.Cols, op.Heads)
	needRows(name+": z", z, adj.Cols, z.Cols)
	needScores(name+": left", left, adj.Cols, op.Heads)
	needScores(name+": right", right, adj.Rows, op.Heads)
	needScores(name+": stat", stat, adj.Rows, 2*op.Heads)
	if !op.Edge.IsZero() {
		tensor.Need(op.Edge.Type() == F32 && op.Edge.Cols == op.Heads && op.Edge.Contiguous() &&
			op.Edge.Rows >= int(csr.ptr[adj.Rows]), "%s: scores of edges are %v", name, op.Edge)
	}
}

// Attend goes once through the entries of each row: scores to scratch, softmax
// there, then one weighted sum of source rows. stat is maxima, then 1/sums.
func (c *Device) Attend(dst, stat Matrix, adj *Sparse, z, left, right Matrix, op Attention) {
	needAttention(op, "Attend", adj, z, left, right, stat)
	needRows("Attend: dst", dst, adj.Rows, z.Cols)
	width := z.Cols / op.Heads
	headPanels(op.Heads, func(lo, hi int) {
		c.attendPanel(dst.Columns(lo*width, hi*width), stat.Columns(lo, hi), stat.Columns(op.Heads+lo, op.Heads+hi),
			adj, z.Columns(lo*width, hi*width), left.Columns(lo, hi), right.Columns(lo, hi), op, attentionDropout(op,
				lo))
	})
}

func (c *Device) attendPanel(dst, top, inv Matrix, adj *Sparse, z, left, right Matrix, op Attention,
	drop simd.AttentionDropout) {
	csr := compressedOf(adj)
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
			Dst: stridedOf(dst.Slice(x.lo, x.hi)), Z: stridedOf(z), Rows: x.hi - x.lo, Heads: top.Cols, Width: z.Cols / top.Cols,
			Ptr: ptr, Index: csr.index, Left: stridedOf(left), Right: stridedOf(right.Slice(x.lo, x.hi)),
			Max: stridedOf(top.Slice(x.lo, x.hi)), Inv: stridedOf(inv.Slice(x.lo, x.hi)),
			Slope: float32(op.Slope), Score: f32Of(op.Edge), EdgeHeads: op.Heads, Drop: fromDst(drop,
				x.lo), Work: *work,
			Stream: dst.Bytes() >= streamBytes,
		}
		if x.part >= 0 {
			a.Dst, a.Stream = stridedOf(partial.Slice(x.part, x.part+1)), false
			a.Max = stridedOf(partTop.Slice(x.part, x.part+1))
			a.Inv = stridedOf(partInv.Slice(x.part, x.part+1))
		}
		simd.Attend(c.level, &a)
	})
	for _, x := range w.long {
		c.joinAttention(dst, top, inv, partial, partTop, partInv, w, x)
	}
}

// joinAttention makes one softmax of those over a long row's parts: part p had
// maximum m_p and sum s_p, so it weighs s_p·exp(m_p - m).
func (c *Device) joinAttention(dst, top, inv, partial, partTop, partInv Matrix, w *shares, x share) {
	width := dst.Cols / top.Cols
	weight := make([]float32, w.parts)
	for h := range top.Cols {
		m, sum := float32(math.Inf(-1)), float32(0)
		for p := x.part; p < x.hi; p++ {
			m = max(m, rowOf(partTop, p)[h])
		}
		for p := x.part; p < x.hi; p++ {
			weight[p] = simd.Exp(rowOf(partTop, p)[h]-m) / rowOf(partInv, p)[h]
			sum += weight[p]
		}
		rowOf(top, x.lo)[h], rowOf(inv, x.lo)[h] = m, 1/sum
		acc := takeFloats(max(simd.MaxCols, width))
		for lo := 0; lo < width; lo += simd.MaxCols {
			from, to := h*width+lo, h*width+min(lo+simd.MaxCols, width)
			simd.AggregateRows(c.level, &simd.RowSums{
				Dst: stridedOf(dst.Slice(x.lo, x.lo+1).Columns(from, to)), Src: stridedOf(partial.Columns(from, to)),
				Rows: 1, Cols: to - from, Ptr: []int64{int64(x.part), int64(x.hi)}, Index: w.iota,
				ColScale: weight, RowScale: []float32{1 / sum}, Acc: *acc,
			})
		}
		floatsPool.Put(acc)
	}
}
