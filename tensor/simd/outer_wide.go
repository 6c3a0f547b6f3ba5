package simd

import "unsafe"

// OuterWide is a product of tall matrices of which one is narrow, C += Aᵀ·B: up to OuterLeft columns of A by any of B. Rows
// of both are read once, as they lie, from the first number to the last. C has OuterLeft x 16 sums for each vector of B.
type OuterWide struct {
	A, B, C    unsafe.Pointer
	ARow, BRow int // bytes from one row to the next
	Rows, Cols int // of B
	Left       int // columns of A

	from uintptr // where asking for rows of B begins, across pages
	lead int     // how far ahead of three rows they are asked for
	_    uintptr // room for the assembly
}

// OuterWideSums is how many numbers C has where B has so many columns.
func OuterWideSums(cols int) int { return (cols + 15) / 16 * outerVector }

// OuterWidePlace is where C keeps the sum of column i of A and j of B.
func OuterWidePlace(i, j int) int { return j>>4*outerVector + i*16 + j&15 }

// outerVector is how many sums a vector of B has.
const outerVector = OuterLeft * 16

// Run computes the product.
func (t *OuterWide) Run(level Level) {
	if level >= AVX512 {
		t.from, t.lead = askAhead(uintptr(t.B), 3*t.BRow)
		runOuterWide(t)
		return
	}
	c := unsafe.Slice((*float32)(t.C), OuterWideSums(t.Cols))
	for r := range t.Rows {
		b := unsafe.Slice((*float32)(unsafe.Add(t.B, r*t.BRow)), t.Cols)
		for i, x := range unsafe.Slice((*float32)(unsafe.Add(t.A, r*t.ARow)), t.Left) {
			for j, y := range b {
				c[OuterWidePlace(i, j)] += x * y
			}
		}
	}
}
