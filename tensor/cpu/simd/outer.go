package simd

import "unsafe"

// Outer is a product of two tall, narrow matrices, C = Aᵀ·B or C += Aᵀ·B: up to OuterLeft
// columns of A by up to OuterWidth
// of B. Rows of both are read once, in place. C has OuterLeft rows of OuterWidth numbers.
type Outer struct {
	A, B, C          unsafe.Pointer
	ARow, BRow, CRow int // bytes from one row to the next
	Rows, Cols       int // of B
	Left             int // columns of A
	Add              int
}

// OuterLeft and OuterWidth are the most columns of A and of B.
const OuterLeft, OuterWidth = 8, 16

// Run computes the step.
func (t *Outer) Run(level Level) {
	if level >= AVX512 {
		runOuter(t)
		return
	}
	for j := range t.Left {
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, j*t.CRow)), t.Cols)
		if t.Add == 0 {
			clear(c)
		}
		for r := range t.Rows {
			x := *(*float32)(unsafe.Add(t.A, r*t.ARow+4*j))
			for i, y := range unsafe.Slice((*float32)(unsafe.Add(t.B, r*t.BRow)), t.Cols) {
				c[i] += x * y
			}
		}
	}
}
