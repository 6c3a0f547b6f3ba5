package cpu

import (
	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// GatherRows copies rows, each read from start to end.
func (c *Device) GatherRows(dst, src Matrix, rows Index) {
	needRows("GatherRows: dst", dst, rows.Len(), src.Cols)
	needRows("GatherRows: src", src, src.Rows, src.Cols)
	if dst.Cols == 0 {
		return
	}
	d, s, list := stridedOf(dst), stridedOf(src), entriesOf(rows)
	single := dst.Cols == 1 && d.Stride == 1 && s.Stride == 1 && d.F32 != nil && s.F32 != nil
	c.forRows(dst.Rows, rowChunk(dst.Cols*dst.Type().Size()), func(lo, hi, _, _ int) {
		if single { // as the values of a transpose
			for k := lo; k < hi; k++ {
				d.F32[k] = s.F32[list[k]]
			}
			return
		}
		simd.CopyRows(c.level, d, lo, s, list[lo:hi], dst.Cols)
	})
}

// scatterRanges is how many ranges of destination rows ScatterAdd is cut into.
// Each range reads the whole list of rows, which is little beside the rows.
const scatterRanges = 8

// ScatterAdd adds rows in the order they are listed: each range of destinations
// is one core's, which goes through the list from the start.
func (c *Device) ScatterAdd(dst, src Matrix, rows Index) {
	needRows("ScatterAdd: src", src, rows.Len(), dst.Cols)
	needRows("ScatterAdd: dst", dst, dst.Rows, src.Cols)
	if dst.Cols == 0 {
		return
	}
	ranges := scatterRanges
	if src.Rows*src.Cols < 1<<14 {
		ranges = 1
	}
	d, s := stridedOf(dst), stridedOf(src)
	c.forRows(dst.Rows, (dst.Rows+ranges-1)/ranges, func(lo, hi, _, _ int) {
		for k, i := range entriesOf(rows) {
			if int(i) >= lo && int(i) < hi {
				simd.AddRow(c.level, d, int(i), s, k, dst.Cols)
			}
		}
	})
}

func (c *Device) DropoutValues(dst Matrix, s *Sparse, d Dropout, transposed bool) {
	csr := compressedOf(s)
	out := columnOf(dst, "DropoutValues: dst", int(csr.ptr[s.Rows]))
	value := columnOf(s.Values(), "DropoutValues: values", int(csr.ptr[s.Rows]))
	scale := float32(d.Scale())
	w := sharesOf(s, 64)
	defer w.done()
	c.run(len(w.list), func(k, _ int) {
		x := w.list[k]
		ptr, draws := w.bounds(s, x), d.Draws()
		for i := x.lo; i < x.hi; i++ {
			if !transposed {
				draws = draws.Of(tensor.RowID(d, i))
			}
			for e := ptr[i-x.lo]; e < ptr[i-x.lo+1]; e++ {
				v, column := float32(1), csr.index[e]
				if value != nil {
					v = value[e]
				}
				if transposed {
					draws, column = draws.Of(tensor.RowID(d, int(column))), uint32(i)
				}
				switch {
				case d.P == 0:
				case draws.Keeps(column):
					v *= scale
				default:
					v = 0
				}
				out[e] = v
			}
		}
	})
}
