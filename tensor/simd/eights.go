package simd

import "unsafe"

// Eights is a product of rows of float32 with 9 to 40 columns, C = A·B or C += A·B, in registers: a vector has eight
// columns of two steps of k, so that no more than seven lanes of sixteen are left empty, and a row of A is read as it
// lies, two numbers at a time. B is a panel of PackEights. All steps are in bytes.
type Eights struct {
	A, B, C    unsafe.Pointer
	ARow, CRow int
	K          int // numbers of a row of A, at least one
	Rows, Cols int // of C
	Add        int // 1: add to C; 0: overwrite it
	// Ahead is memory the caller will need next: each two steps of k ask for the line there and move on by AheadStep,
	// each EightsRows rows begin AheadUnit behind the last. It is an address, not a pointer: it may lie outside any matrix.
	Ahead                uintptr
	AheadStep, AheadUnit int
}

// EightsCols is the most columns of a panel.
const EightsCols = 40

// EightsRows is how many rows are computed together, of a panel of so many columns.
func EightsRows(cols int) int { return [...]int{12, 12, 12, 8, 6, 5}[eightsVectors(cols)] }

func eightsVectors(cols int) int { return max(2, (cols+7)/8) }

// EightsSize is how many numbers a panel takes.
func EightsSize(rows, cols int) int { return (rows + 1) / 2 * 16 * eightsVectors(cols) }

// PackEights packs columns of B, whose numbers are row and col apart. Past the last column there are zeros, and so there
// are for the second row of a last pair that has only one.
func PackEights(dst, src []float32, rows, cols, row, col int) {
	size := 16 * eightsVectors(cols)
	var places [EightsCols]int
	for j := range cols {
		places[j] = eightsPlace(j, size/16)
	}
	for k := range rows {
		d := dst[k/2*size : k/2*size+size]
		if k%2 == 0 {
			clear(d)
		}
		s := src[k*row:]
		for j, at := range places[:cols] {
			d[at+k%2] = s[j*col]
		}
	}
}

// eightsPlace is where a panel has column j of a pair's first row; the second's follows. Quarters of two vectors have four
// columns, two and two, so that sums of both, added up, are in order. A last vector without another has its own in order.
func eightsPlace(j, vectors int) int {
	if v := j / 16 * 2; v+1 == vectors {
		return 16*v + 2*(j-8*v)
	}
	return 32*(j/16) + 16*(j/2%2) + 4*(j%16/4) + 2*(j%2)
}

// Run computes the product.
func (t *Eights) Run(level Level) {
	if level < AVX512 {
		t.generic()
		return
	}
	// Rows that are left of a unit are computed one by one, each in place of all of them.
	step, rows := EightsRows(t.Cols), t.Rows
	whole := rows / step * step
	if t.Rows = whole; whole > 0 {
		runEights(t)
	}
	one := *t
	one.ARow, one.Rows = 0, 1
	for r := whole; r < rows; r++ {
		one.A, one.C = unsafe.Add(t.A, r*t.ARow), unsafe.Add(t.C, r*t.CRow)
		runEights(&one)
	}
	t.Rows = rows
}

// generic is the definition of Run.
func (t *Eights) generic() {
	vectors := eightsVectors(t.Cols)
	b := unsafe.Slice((*float32)(t.B), EightsSize(t.K, t.Cols))
	for i := range t.Rows {
		a := unsafe.Slice((*float32)(unsafe.Add(t.A, i*t.ARow)), t.K)
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		for j := range c {
			sum := float32(0)
			for k, x := range a {
				sum += x * b[k/2*16*vectors+eightsPlace(j, vectors)+k%2]
			}
			if t.Add != 0 {
				sum += c[j]
			}
			c[j] = sum
		}
	}
}
