package tensor

import (
	"fmt"
	"slices"

	"starling/tensor/simd"
)

// need panics with a message when a caller broke an operation's rule.
func need(ok bool, format string, args ...any) {
	if !ok {
		panic("tensor: " + fmt.Sprintf(format, args...))
	}
}

func needRows(name string, m Matrix, rows, cols int) {
	need(m.Rows == rows && m.Cols == cols && m.dtype != F64, "%s is %v, want %dx%d float32 or bfloat16", name, m, rows, cols)
}

// Aggregate sums source rows in registers, in panels of columns where a row is
// wider than the registers, and writes each destination row once.
func (c *CPU) Aggregate(dst Matrix, adj *Sparse, src Matrix, op Aggregate) {
	needRows("Aggregate: dst", dst, adj.Rows, src.Cols)
	needRows("Aggregate: src", src, adj.Cols, src.Cols)
	if op.Self != 0 {
		need(src.Rows >= op.First+adj.Rows, "Aggregate: self needs a source row for each of %d rows from %d on, src is %v", adj.Rows, op.First, src)
	}
	for lo := 0; lo < dst.Cols; lo += simd.MaxCols {
		hi := min(lo+simd.MaxCols, dst.Cols)
		c.aggregatePanel(dst.Columns(lo, hi), adj, src.Columns(lo, hi), op)
	}
}

// streamBytes is the size from which on a result will not be in cache when it is
// next read. Tests set it so low that matrices they can check are large.
var streamBytes int64 = 32 << 20

func (c *CPU) aggregatePanel(dst Matrix, adj *Sparse, src Matrix, op Aggregate) {
	w := sharesOf(adj, dst.Cols)
	defer w.done()
	value := adj.value.column("Aggregate: values", int(adj.ptr[adj.Rows]))
	colScale := op.ColScale.column("Aggregate: ColScale", adj.Cols)
	selfScale := colScale
	if !op.SelfScale.IsZero() {
		need(colScale == nil, "Aggregate: there is a ColScale beside a SelfScale")
		selfScale = op.SelfScale.column("Aggregate: SelfScale", adj.Cols)
	}
	rowScale := op.RowScale.column("Aggregate: RowScale", adj.Rows)
	partial := c.Scratch(F32, w.parts, dst.Cols)
	defer c.Free(partial)

	c.run(len(w.list), func(k, _ int) {
		x := w.list[k]
		acc := takeFloats(simd.MaxCols)
		defer floatsPool.Put(acc)
		a := simd.RowSums{
			Src: src.strided(), Rows: x.hi - x.lo, Cols: dst.Cols,
			Ptr: w.bounds(adj, x), Index: adj.index, Value: value, ColScale: colScale,
			Self: float32(op.Self), SelfScale: selfScale, First: op.First + x.lo, Acc: *acc,
		}
		if x.part >= 0 {
			a.Dst = partial.Slice(x.part, x.part+1).strided()
			if x.from != adj.ptr[x.lo] {
				a.Self = 0 // the first part has it
			}
		} else {
			a.Dst, a.Add, a.Stream = dst.Slice(x.lo, x.hi).strided(), op.Add, dst.Bytes() >= streamBytes
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
func (c *CPU) joinParts(dst, partial Matrix, w *shares, x share, rowScale []float32, add bool) {
	acc := takeFloats(simd.MaxCols)
	defer floatsPool.Put(acc)
	a := simd.RowSums{
		Dst: dst.Slice(x.lo, x.lo+1).strided(), Src: partial.strided(), Rows: 1, Cols: dst.Cols,
		Ptr: []int64{int64(x.part), int64(x.hi)}, Index: w.iota, Add: add, Acc: *acc,
	}
	if rowScale != nil {
		a.RowScale = rowScale[x.lo:]
	}
	simd.AggregateRows(c.level, &a)
}

func (c *CPU) AggregateMax(dst Matrix, arg Index, adj *Sparse, src Matrix) {
	needRows("AggregateMax: dst", dst, adj.Rows, src.Cols)
	needRows("AggregateMax: src", src, adj.Cols, src.Cols)
	need(arg.Len() == adj.Rows*dst.Cols, "AggregateMax: arg has %d entries, want %d", arg.Len(), adj.Rows*dst.Cols)
	c.wholeRows(adj, dst.Cols, func(lo, hi int, acc []float32) {
		simd.MaxRows(c.level, &simd.RowMaxes{
			Dst: dst.Slice(lo, hi).strided(), Src: src.strided(),
			Arg: arg.v[lo*dst.Cols:], Rows: hi - lo, Cols: dst.Cols,
			Ptr: adj.ptr[lo : hi+1], Index: adj.index, Acc: acc,
		})
	})
}

// wholeRows runs body on shares of s, with room for a row of cols numbers. No row is cut: a long one is its first part's.
func (c *CPU) wholeRows(s *Sparse, cols int, body func(lo, hi int, acc []float32)) {
	w := sharesOf(s, cols)
	defer w.done()
	c.run(len(w.list), func(k, _ int) {
		x := w.list[k]
		if x.part >= 0 && x.from != s.ptr[x.lo] {
			return
		}
		acc := takeFloats(cols)
		defer floatsPool.Put(acc)
		body(x.lo, x.hi, *acc)
	})
}

func (c *CPU) AggregateMaxGrad(dsrc Matrix, adjT *Sparse, ddst Matrix, arg Index) {
	needRows("AggregateMaxGrad: dsrc", dsrc, adjT.Rows, ddst.Cols)
	needRows("AggregateMaxGrad: ddst", ddst, adjT.Cols, ddst.Cols)
	need(arg.Len() == ddst.Rows*ddst.Cols, "AggregateMaxGrad: arg has %d entries, want %d", arg.Len(), ddst.Rows*ddst.Cols)
	c.wholeRows(adjT, ddst.Cols, func(lo, hi int, acc []float32) {
		var sorted []uint32
		for j := lo; j < hi; j++ {
			row := adjT.index[adjT.ptr[j]:adjT.ptr[j+1]]
			// An edge given twice stands for one maximum, so each destination counts once.
			if !slices.IsSorted(row) {
				sorted = append(sorted[:0], row...)
				slices.Sort(sorted)
				row = sorted
			}
			simd.MaxGradRow(c.level, dsrc.Slice(j, j+1).strided(), uint32(j), row, ddst.strided(), arg.v, acc[:ddst.Cols])
		}
	})
}
