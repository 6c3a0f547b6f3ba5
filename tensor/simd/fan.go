package simd

import "unsafe"

// Fan is a product of short rows, C = A·B or C += A·B, of up to FanDepth numbers, with up to FanWidth columns: B stays in
// registers, and rows of A are read as they lie. B is FanDepth rows of FanWidth numbers, those past the last any.
type Fan struct {
	A, B, C    unsafe.Pointer
	ARow, CRow int // bytes from one row to the next
	Depth      int // numbers of a row of A, at least one
	Rows, Cols int // of C
	Add        int
}

// FanDepth and FanWidth are the most numbers of a row, and columns, of Fan.
const FanDepth, FanWidth = 16, 16

// Run computes the product.
func (t *Fan) Run(level Level) {
	if level >= AVX512 {
		runFan(t)
		return
	}
	b := unsafe.Slice((*float32)(t.B), FanDepth*FanWidth)
	for i := range t.Rows {
		row := unsafe.Slice((*float32)(unsafe.Add(t.A, i*t.ARow)), t.Depth)
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		for j := range c {
			var sum float32
			for k, x := range row {
				sum += x * b[k*FanWidth+j]
			}
			if t.Add != 0 {
				sum += c[j]
			}
			c[j] = sum
		}
	}
}
