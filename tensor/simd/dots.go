package simd

import "unsafe"

// Dots is a product of rows with few columns, C = A·B or C += A·B: up to eight, each of its sums a dot product. Numbers of
// A are read once, as they lie, and B stays near, so it is as fast as A comes from memory.
type Dots struct {
	A, B, C    unsafe.Pointer // B is as PackDots makes it
	ARow, CRow int            // bytes from one row to the next
	Depth      int            // numbers of a row of A
	Rows, Cols int            // of C
	Add        int
	from       uintptr // where asking for rows begins, across pages
	lead       int     // how far ahead of three rows they are asked for
}

// DotsWidth is the most columns of Dots.
const DotsWidth = 8

// DotsSize is how many numbers B takes.
func DotsSize(depth int) int { return (depth + 15) / 16 * 16 * DotsWidth }

// dotsPlace is where B keeps the number in row k, column j.
func dotsPlace(k, j int) int { return k>>4*16*DotsWidth + j*16 + k&15 }

// PackDots packs the depth x cols matrix whose number (k, j) is src[k*row+j*col].
func PackDots(dst, src []float32, depth, cols, row, col int) {
	clear(dst[:DotsSize(depth)])
	for k := range depth {
		for j := range cols {
			dst[dotsPlace(k, j)] = src[k*row+j*col]
		}
	}
}

// Run computes the product.
func (t *Dots) Run(level Level) {
	if t.Rows == 0 || t.Cols == 0 {
		return
	}
	if level >= AVX512 {
		t.from, t.lead = askAhead(uintptr(t.A), 3*t.ARow)
		runDots(t)
		return
	}
	b := unsafe.Slice((*float32)(t.B), DotsSize(t.Depth))
	for i := range t.Rows {
		row := unsafe.Slice((*float32)(unsafe.Add(t.A, i*t.ARow)), t.Depth)
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		for j := range c {
			var sum float32
			for k, x := range row {
				sum += x * b[dotsPlace(k, j)]
			}
			if t.Add != 0 {
				sum += c[j]
			}
			c[j] = sum
		}
	}
}
