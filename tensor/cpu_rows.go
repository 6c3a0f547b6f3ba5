package tensor

import "starling/tensor/simd"

// GatherRows copies rows, each read from start to end.
func (c *CPU) GatherRows(dst, src Matrix, rows Index) {
	needRows("GatherRows: dst", dst, rows.Len(), src.Cols)
	needRows("GatherRows: src", src, src.Rows, src.Cols)
	d, s := dst.strided(), src.strided()
	c.forRows(dst.Rows, rowChunk(dst.Cols*dst.dtype.Size()), func(lo, hi, _, _ int) {
		simd.CopyRows(c.level, d, lo, s, rows.v[lo:hi], dst.Cols)
	})
}

// scatterRanges is how many ranges of destination rows ScatterAdd is cut into.
// Each range reads the whole list of rows, which is little beside the rows.
const scatterRanges = 8

// ScatterAdd adds rows in the order they are listed: each range of destinations
// is one core's, which goes through the list from the start.
func (c *CPU) ScatterAdd(dst, src Matrix, rows Index) {
	needRows("ScatterAdd: src", src, rows.Len(), dst.Cols)
	needRows("ScatterAdd: dst", dst, dst.Rows, src.Cols)
	ranges := scatterRanges
	if src.Rows*src.Cols < 1<<14 {
		ranges = 1
	}
	d, s := dst.strided(), src.strided()
	c.forRows(dst.Rows, (dst.Rows+ranges-1)/ranges, func(lo, hi, _, _ int) {
		for k, i := range rows.v {
			if int(i) >= lo && int(i) < hi {
				simd.AddRow(c.level, d, int(i), s, k, dst.Cols)
			}
		}
	})
}

func (c *CPU) DropoutValues(dst Matrix, s *Sparse, d Dropout, transposed bool) {
	out := dst.column("DropoutValues: dst", int(s.ptr[s.Rows]))
	value := s.value.column("DropoutValues: values", int(s.ptr[s.Rows]))
	scale := float32(d.scale())
	w := sharesOf(s, 64)
	defer w.done()
	c.run(len(w.list), func(k, _ int) {
		x := w.list[k]
		ptr, draws := w.bounds(s, x), d.anyRow()
		for i := x.lo; i < x.hi; i++ {
			if !transposed {
				draws = draws.of(d.id(i))
			}
			for e := ptr[i-x.lo]; e < ptr[i-x.lo+1]; e++ {
				v, column := float32(1), s.index[e]
				if value != nil {
					v = value[e]
				}
				if transposed {
					draws, column = draws.of(d.id(int(column))), uint32(i)
				}
				switch {
				case d.P == 0:
				case draws.keeps(column):
					v *= scale
				default:
					v = 0
				}
				out[e] = v
			}
		}
	})
}
