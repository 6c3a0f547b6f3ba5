package simd

import "starling/tensor/bfloat"

// CopyRows: row k of dst, from first on, becomes row rows[k] of src.
func CopyRows(level Level, dst Strided, first int, src Strided, rows []uint32, cols int) {
	for k, i := range rows {
		d, s := (first+k)*dst.Stride, int(i)*src.Stride
		switch {
		case dst.B16 != nil && src.B16 != nil:
			copy(dst.B16[d:d+cols], src.B16[s:s+cols])
		case dst.B16 == nil && src.B16 == nil:
			copy(dst.F32[d:d+cols], src.F32[s:s+cols])
		case src.B16 != nil:
			src.widen(dst.F32[d:d+cols], int(i), 0)
		default:
			for c, x := range src.F32[s : s+cols] {
				dst.B16[d+c] = bfloat.Round(x)
			}
		}
	}
}

// AddRow adds row k of src to row i of dst.
func AddRow(level Level, dst Strided, i int, src Strided, k, cols int) {
	d, s := i*dst.Stride, k*src.Stride
	if src.B16 == nil {
		dst.put(src.F32[s:s+cols], 1, true, i, 0)
		return
	}
	if dst.B16 == nil {
		src.addTo(dst.F32[d:d+cols], 1, k, 0)
		return
	}
	for c, x := range src.B16[s : s+cols] {
		dst.B16[d+c] = bfloat.Round(bfloat.Widen(dst.B16[d+c]) + bfloat.Widen(x))
	}
}
