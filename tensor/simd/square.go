package simd

import "unsafe"

// Square is a product of rows of few numbers with 33 to 48 columns, C = A·B, in units of SquareUnit rows: results go past
// the caches, through a room that has lines of them whole. B is packed (PackSquare). C begins with a line and has no gaps
// between rows.
type Square struct {
	A, B, C, room unsafe.Pointer
	ARow          int // bytes from one row to the next
	Depth         int // numbers of a row of A, at least one
	Units, Cols   int // of C
	Room          []float32
}

// SquareUnit is how many rows a unit has, SquareRoom how many numbers the room takes.
const (
	SquareUnit = 16
	SquareRoom = 2 * SquareUnit * 48
)

// squarePairs reports whether numbers of A come two at a time for the last columns, which are up to half a vector.
func squarePairs(depth, cols int) bool { return cols <= 40 && depth%2 == 0 }

// SquareSize is how many numbers B takes.
func SquareSize(depth int) int { return 48 * depth }

// PackSquare packs B, whose numbers are row and col apart. Of each two rows, 32 columns of one and of the other are
// followed by those left, in turn of the one and of the other; without pairs a row has 48 columns. Those past the last
// are zeros.
func PackSquare(dst, src []float32, depth, cols, row, col int) {
	clear(dst[:SquareSize(depth)])
	for k := range depth {
		for j := range cols {
			dst[squarePlace(k, j, depth, cols)] = src[k*row+j*col]
		}
	}
}

// squarePlace is where B keeps the number of row k, column j.
func squarePlace(k, j, depth, cols int) int {
	switch {
	case !squarePairs(depth, cols):
		return 48*k + j
	case j < 32:
		return 80*(k/2) + 32*(k%2) + j
	}
	return 80*(k/2) + 64 + 2*(j-32) + k%2
}

// Run computes the product.
func (t *Square) Run(level Level) {
	if t.Units == 0 {
		return
	}
	if level >= AVX512 {
		t.room = unsafe.Pointer(&t.Room[:SquareRoom][0])
		runSquare(t)
		return
	}
	b := unsafe.Slice((*float32)(t.B), SquareSize(t.Depth))
	c := unsafe.Slice((*float32)(t.C), t.Units*SquareUnit*t.Cols)
	for i := range c {
		row := unsafe.Slice((*float32)(unsafe.Add(t.A, i/t.Cols*t.ARow)), t.Depth)
		c[i] = 0
		for k, x := range row {
			c[i] += x * b[squarePlace(k, i%t.Cols, t.Depth, t.Cols)]
		}
	}
}
