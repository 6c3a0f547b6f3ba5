package simd

import "unsafe"

// ShortRows is a product of short rows, C = A·B or C += A·B, of up to ShortDepth numbers, with
// up to ShortWidth columns: B stays in
// registers, and rows of A are read in place. B is ShortDepth rows of ShortWidth numbers, those past the last any.
type ShortRows struct {
	A, B, C    unsafe.Pointer
	ARow, CRow int // bytes from one row to the next
	Depth      int // numbers of a row of A, at least one
	Rows, Cols int // of C
	Add        int
}

// ShortDepth and ShortWidth are the most numbers of a row, and columns, of Fan.
const ShortDepth, ShortWidth = 16, 16

// Run computes the product.
func (t *ShortRows) Run(level Level) {
	if level >= AVX512 {
		runShortRows(t)
		return
	}
	b := unsafe.Slice((*float32)(t.B), ShortDepth*ShortWidth)
	for i := range t.Rows {
		row := unsafe.Slice((*float32)(unsafe.Add(t.A, i*t.ARow)), t.Depth)
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		for j := range c {
			var sum float32
			for k, x := range row {
				sum += x * b[k*ShortWidth+j]
			}
			if t.Add != 0 {
				sum += c[j]
			}
			c[j] = sum
		}
	}
}
