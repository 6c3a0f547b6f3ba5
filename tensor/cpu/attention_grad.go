package cpu

import (
	"unsafe"

	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/tensor/draw"
)

// AttendGrad gathers wide rows once, by source over the out-edges. A first,
// dense pass packs what is needed of each destination. Gradients of scores are summed over each destination's row:
// by the cores as they go through the sources or, where vertices have few neighbours, by a last pass over
// all entries, whose gradients were left in the order of in-edges.
func (c *Device) AttendGrad(dz, dleft, dright Matrix, adj, adjT *Sparse, z, left, right, stat, dst, ddst Matrix,
	op Attention) {
	csc := compressedOf(adjT)
	needAttention(op, "AttendGrad", adj, z, left, right, stat)
	needRows("AttendGrad: dst", dst, adj.Rows, z.Cols)
	needRows("AttendGrad: ddst", ddst, adj.Rows, z.Cols)
	needRows("AttendGrad: dz", dz, adj.Cols, z.Cols)
	needScores("AttendGrad: dleft", dleft, adj.Cols, op.Heads)
	needScores("AttendGrad: dright", dright, adj.Rows, op.Heads)
	tensor.Need(adjT.Rows == adj.Cols && adjT.Cols == adj.Rows && int64(len(csc.perm)) >= csc.ptr[adjT.Rows],
		"AttendGrad: adjT is not adj's transpose from SparseTranspose")
	edge, sums := op.DEdge, scoreSums{}
	if scores := scoreWorkspace(adj, op, c.threads); scoreGroups(adj, op) > 0 {
		sums = c.newScoreSums(scores, dright, scoreGroups(adj, op))
		defer c.Free(sums.slots)
	} else if edge.IsZero() {
		edge = c.Scratch(F32, scores[0], scores[1])
		defer c.Free(edge)
	}
	keyWorkspace := c.Scratch(F64, keyRows(adj, op), 1)
	defer c.Free(keyWorkspace)
	keys := c.rowKeys(keyWorkspace, op)
	width := z.Cols / op.Heads
	headPanels(op.Heads, func(lo, hi int) {
		from, to := lo*width, hi*width
		packed := c.Scratch(F32, adj.Rows, 4*simd.Lanes(hi-lo))
		defer c.Free(packed)
		c.packAttention(packed, right.Columns(lo, hi), stat.Columns(lo, hi), stat.Columns(op.Heads+lo, op.Heads+hi),
			dst.Columns(from, to), ddst.Columns(from, to))
		c.attendGradPanel(dz.Columns(from, to), dleft.Columns(lo, hi), edge, adjT, z.Columns(from, to),
			left.Columns(lo, hi), packed, ddst.Columns(from, to), sums, keys, op, attentionDropout(op, lo))
	})
	if sums.groups == 0 {
		c.sumEntries(dright, adj, edge)
	}
}

// attendGradWorkspace is what AttendGrad takes for itself, as rows and columns: sums of
// scores' gradients, keys of draws, and what is packed of destinations. It is for who
// plans memory.
func attendGradWorkspace(adj *Sparse, op Attention, threads int) (scores, keys, packed [2]int) {
	return scoreWorkspace(adj, op, threads), [2]int{keyRows(adj, op), 1}, [2]int{adj.Rows,
		4 * simd.Lanes(min(op.Heads, simd.MaxHeads))}
}

func scoreWorkspace(adj *Sparse, op Attention, threads int) [2]int {
	switch {
	case !op.DEdge.IsZero():
		return [2]int{}
	case scoreGroups(adj, op) > 0:
		return [2]int{scoreSlots(scoreGroups(adj, op), threads) * adj.Rows, op.Heads}
	}
	return [2]int{int(adj.Entries()), op.Heads}
}

// keyRows is how many destinations need a key for their draws.
func keyRows(adj *Sparse, op Attention) int {
	if op.Dropout.P == 0 {
		return 0
	}
	return adj.Rows
}

// rowKeys makes the keys of all destinations' draws in workspace: an edge then
// fetches a key where it would have to hash.
func (c *Device) rowKeys(workspace Matrix, op Attention) []uint64 {
	if workspace.Rows == 0 {
		return nil
	}
	keys := unsafe.Slice((*uint64)(baseOf(workspace)), workspace.Rows)
	c.forRows(workspace.Rows, 4096, func(lo, hi, _, _ int) {
		for i := lo; i < hi; i++ {
			keys[i] = draw.RowKey(op.Dropout.Key, tensor.RowID(op.Dropout, i))
		}
	})
	return keys
}

func (c *Device) packAttention(packed, right, top, inv, dst, ddst Matrix) {
	heads := right.Cols
	c.forRows(right.Rows, rowChunk(2*dst.Cols*dst.Type().Size()), func(lo, hi, _, _ int) {
		work := takeFloats(dst.Cols)
		defer floatsPool.Put(work)
		simd.PackAttention(c.level, &simd.AttentionPack{
			Packed: f32Of(packed.Slice(lo, hi)), Rows: hi - lo, Heads: heads, Width: dst.Cols / heads,
			Right: stridedOf(right.Slice(lo, hi)), Max: stridedOf(top.Slice(lo, hi)), Inv: stridedOf(inv.Slice(lo, hi)),
			Dst: stridedOf(dst.Slice(lo, hi)), DDst: stridedOf(ddst.Slice(lo, hi)), Work: *work,
		})
	})
}

func (c *Device) attendGradPanel(dz, dleft, edge Matrix, adjT *Sparse, z, left, packed, ddst Matrix, sums scoreSums,
	keys []uint64, op Attention, drop simd.AttentionDropout) {
	csc := compressedOf(adjT)
	w := attentionShares(adjT, z.Cols)
	defer w.done()
	partDZ, partDLeft := c.Scratch(F32, w.parts, z.Cols), c.Scratch(F32, w.parts, left.Cols)
	defer c.Free(partDZ)
	defer c.Free(partDLeft)
	one := func(k int, sums []float32) {
		x := w.list[k]
		ptr := w.bounds(adjT, x)
		work := takeFloats(simd.AttentionWork(longest(ptr), left.Cols, z.Cols))
		defer floatsPool.Put(work)
		a := simd.AttentionGrad{
			DZ: stridedOf(dz.Slice(x.lo, x.hi)), Z: stridedOf(z.Slice(x.lo, x.hi)), DDst: stridedOf(ddst),
			Rows: x.hi - x.lo, Heads: left.Cols, Width: z.Cols / left.Cols,
			Ptr: ptr, Index: csc.index, Perm: csc.perm,
			Left: stridedOf(left.Slice(x.lo, x.hi)), DLeft: stridedOf(dleft.Slice(x.lo, x.hi)),
			Packed: f32Of(packed), Edge: f32Of(edge), EdgeHeads: op.Heads, Sums: sums,
			Slope: float32(op.Slope), Score: f32Of(op.Edge), Drop: fromSrc(drop, x.lo), Keys: keys, Work: *work,
			Stream: dz.Bytes() >= streamBytes,
		}
		if x.part >= 0 {
			a.DZ, a.Stream = stridedOf(partDZ.Slice(x.part, x.part+1)), false
			a.DLeft = stridedOf(partDLeft.Slice(x.part, x.part+1))
		}
		simd.AttendGrad(c.level, &a)
	}
	if sums.groups == 0 {
		c.run(len(w.list), func(k, _ int) { one(k, nil) })
	} else {
		c.sumScores(sums, len(w.list), one)
	}
	for _, x := range w.long {
		for lo := 0; lo < dz.Cols; lo += simd.MaxCols {
			hi := min(lo+simd.MaxCols, dz.Cols)
			c.joinParts(dz.Columns(lo, hi), partDZ.Columns(lo, hi), w, x, nil, false)
		}
		c.joinParts(dleft, partDLeft, w, x, nil, false)
	}
}

// sumEntries: dst_i = the sum of edge's rows of the entries of row i of s.
func (c *Device) sumEntries(dst Matrix, s *Sparse, edge Matrix) {
	w := sharesOf(s, 64)
	defer w.done()
	partial := c.Scratch(F32, w.parts, dst.Cols)
	defer c.Free(partial)
	c.run(len(w.list), func(k, _ int) {
		x := w.list[k]
		out := dst.Slice(x.lo, x.hi)
		if x.part >= 0 {
			out = partial.Slice(x.part, x.part+1)
		}
		simd.SumEntries(c.level, stridedOf(out), w.bounds(s, x), f32Of(edge), dst.Cols)
	})
	for _, x := range w.long {
		c.joinParts(dst, partial, w, x, nil, false)
	}
}
