package cpu

import (
	"slices"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

func needRows(name string, m Matrix, rows, cols int) {
	tensor.Need(m.Rows == rows && m.Cols == cols && m.Type() != F64, "%s is %v, want %dx%d float32 or bfloat16", name,
		m, rows, cols)
}

// Aggregate sums source rows in registers, in panels of columns where a row is
// wider than the registers, and writes each destination row once.
func (c *Device) Aggregate(dst Matrix, adj *Sparse, src Matrix, op Aggregate) {
	needRows("Aggregate: dst", dst, adj.Rows, src.Cols)
	needRows("Aggregate: src", src, adj.Cols, src.Cols)
	if op.Self != 0 {
		tensor.Need(src.Rows >= op.First+adj.Rows, "Aggregate: self needs a source row for each of %d rows from %d "+
			"on, src is %v", adj.Rows, op.First, src)
	}
	if src.Rows == 0 {
		if !op.Add {
			c.Zero(dst)
		}
		return
	}
	for lo := 0; lo < dst.Cols; lo += simd.MaxCols {
		hi := min(lo+simd.MaxCols, dst.Cols)
		c.aggregatePanel(dst.Columns(lo, hi), adj, src.Columns(lo, hi), op)
	}
}

// streamBytes is the size from which on a result will not be in cache when it is
// next read. Tests set it so low that matrices they can check are large.
var streamBytes int64 = 32 << 20

func (c *Device) aggregatePanel(dst Matrix, adj *Sparse, src Matrix, op Aggregate) {
	csr := compressedOf(adj)
	w := sharesOf(adj, dst.Cols)
	defer w.done()
	value := columnOf(adj.Values(), "Aggregate: values", int(csr.ptr[adj.Rows]))
	colScale := columnOf(op.ColScale, "Aggregate: ColScale", adj.Cols)
	selfScale := colScale
	if !op.SelfScale.IsZero() {
		tensor.Need(colScale == nil, "Aggregate: there is a ColScale beside a SelfScale")
		selfScale = columnOf(op.SelfScale, "Aggregate: SelfScale", adj.Cols)
	}
	rowScale := columnOf(op.RowScale, "Aggregate: RowScale", adj.Rows)
	partial := c.Scratch(F32, w.parts, dst.Cols)
	defer c.Free(partial)

	c.run(len(w.list), func(k, _ int) {
		x := w.list[k]
		acc := takeFloats(simd.MaxCols)
		defer floatsPool.Put(acc)
		a := simd.RowSums{
			Src: stridedOf(src), Rows: x.hi - x.lo, Cols: dst.Cols,
			Ptr: w.bounds(adj, x), Index: csr.index, Value: value, ColScale: colScale,
			Self: float32(op.Self), SelfScale: selfScale, First: op.First + x.lo, Acc: *acc,
		}
		if x.part >= 0 {
			a.Dst = stridedOf(partial.Slice(x.part, x.part+1))
			if x.from != csr.ptr[x.lo] {
				a.Self = 0 // the first part has it
			}
		} else {
			a.Dst, a.Add, a.Stream = stridedOf(dst.Slice(x.lo, x.hi)), op.Add, dst.Bytes() >= streamBytes
			if rowScale != nil {
				a.RowScale = rowScale[x.lo:]
			}
		}
		simd.AggregateRows(c.level, &a)
	})
	for _, x := range w.long {
		c.joinParts(dst, partial, w, x, rowScale, op.Add)
	}
}

// joinParts adds the sums of a long row's parts, in order.
func (c *Device) joinParts(dst, partial Matrix, w *shares, x share, rowScale []float32, add bool) {
	acc := takeFloats(simd.MaxCols)
	defer floatsPool.Put(acc)
	a := simd.RowSums{
		Dst: stridedOf(dst.Slice(x.lo, x.lo+1)), Src: stridedOf(partial), Rows: 1, Cols: dst.Cols,
		Ptr: []int64{int64(x.part), int64(x.hi)}, Index: w.iota, Add: add, Acc: *acc,
	}
	if rowScale != nil {
		a.RowScale = rowScale[x.lo:]
	}
	simd.AggregateRows(c.level, &a)
}

func (c *Device) AggregateMax(dst Matrix, arg Index, adj *Sparse, src Matrix) {
	csr := compressedOf(adj)
	needRows("AggregateMax: dst", dst, adj.Rows, src.Cols)
	needRows("AggregateMax: src", src, adj.Cols, src.Cols)
	tensor.Need(arg.Len() == adj.Rows*dst.Cols, "AggregateMax: arg has %d entries, want %d", arg.Len(),
		adj.Rows*dst.Cols)
	c.wholeRows(adj, dst.Cols, func(lo, hi int, acc []float32) {
		simd.MaxRows(c.level, &simd.RowMaxes{
			Dst: stridedOf(dst.Slice(lo, hi)), Src: stridedOf(src),
			Arg: entriesOf(arg)[lo*dst.Cols:], Rows: hi - lo, Cols: dst.Cols,
			Ptr: csr.ptr[lo : hi+1], Index: csr.index, Acc: acc,
		})
	})
}

// wholeRows runs body on shares of s, with a buffer of cols numbers. No row is cut: a long one is its first part's.
func (c *Device) wholeRows(s *Sparse, cols int, body func(lo, hi int, acc []float32)) {
	csr := compressedOf(s)
	if cols == 0 {
		return
	}
	w := sharesOf(s, cols)
	defer w.done()
	c.run(len(w.list), func(k, _ int) {
		x := w.list[k]
		if x.part >= 0 && x.from != csr.ptr[x.lo] {
			return
		}
		acc := takeFloats(cols)
		defer floatsPool.Put(acc)
		body(x.lo, x.hi, *acc)
	})
}

func (c *Device) AggregateMaxGrad(dsrc Matrix, adjT *Sparse, ddst Matrix, arg Index) {
	csc := compressedOf(adjT)
	needRows("AggregateMaxGrad: dsrc", dsrc, adjT.Rows, ddst.Cols)
	needRows("AggregateMaxGrad: ddst", ddst, adjT.Cols, ddst.Cols)
	tensor.Need(arg.Len() == ddst.Rows*ddst.Cols, "AggregateMaxGrad: arg has %d entries, want %d", arg.Len(),
		ddst.Rows*ddst.Cols)
	c.wholeRows(adjT, ddst.Cols, func(lo, hi int, acc []float32) {
		var sorted []uint32
		for j := lo; j < hi; j++ {
			row := csc.row(j)
			// An edge given twice stands for one maximum, so each destination counts once.
			if !slices.IsSorted(row) {
				sorted = append(sorted[:0], row...)
				slices.Sort(sorted)
				row = sorted
			}
			simd.MaxGradRow(c.level, stridedOf(dsrc.Slice(j, j+1)), uint32(j), row, stridedOf(ddst), entriesOf(arg),
				acc[:ddst.Cols])
		}
	})
}
