package simd

import "unsafe"

// Outer is a step of a product of tall matrices of which one is narrow, C = Aᵀ·B or C += Aᵀ·B: eight columns of A by up
// to OuterWidth of B, of which all numbers are read once, as they lie. A is packed eight numbers a row, OuterPitch apart.
// C has whole vectors.
type Outer struct {
	A, B, C    unsafe.Pointer
	BRow, CRow int // bytes from one row to the next
	Rows, Cols int // of B
	Add        int
	// Ahead is memory the caller will need next: of each of its rows, BRow apart, a line for each vector of B is
	// asked for, AheadStep bytes from each other.
	Ahead     uintptr
	AheadStep int
}

// OuterWidth is the most columns of B, and OuterPitch how many numbers rows of A lie apart.
const (
	OuterWidth = 48
	OuterPitch = 16
)

// Run computes the step.
func (t *Outer) Run(level Level) {
	if level >= AVX512 {
		runOuter(t)
		return
	}
	for j := range 8 {
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, j*t.CRow)), t.Cols)
		if t.Add == 0 {
			clear(c)
		}
		for r := range t.Rows {
			x := *(*float32)(unsafe.Add(t.A, 4*(r*OuterPitch+j)))
			for i, y := range unsafe.Slice((*float32)(unsafe.Add(t.B, r*t.BRow)), t.Cols) {
				c[i] += x * y
			}
		}
	}
}
