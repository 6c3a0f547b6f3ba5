package simd

import "unsafe"

// OuterSquare16 is a product of tall bfloat16 matrices, C += Aᵀ·B in float32, on the matrix unit: 8 to OuterWidth columns of
// A by up to OuterWidth of B, in units of OuterUnit rows. A slice of units is turned and paired, and multiplied while it is
// in the nearest cache. C has whole tiles of 16 rows of 16 columns; those past A's columns may become anything.
type OuterSquare16 struct {
	A, B, C, room    unsafe.Pointer
	Units            int
	ARow, BRow, CRow int     // bytes from one row to the next
	strips           int     // of 16 columns of A
	lastA            int     // bytes of a row of A before its last eight columns
	fromA            uintptr // where asking for rows begins, across pages, and how far ahead of a slice
	leadA            int
	fromB            uintptr
	leadB            int
	last             uint64 // lanes of B's last tile
	config           tileConfig

	Left, Cols int       // columns of A and of B
	Room       []float32 // OuterSquare16Room numbers
}

// A slice has outerSlice units. With one, sums are loaded and stored more often (1.15 times the time in cache), with four,
// rows from memory take 1.2-1.5 times as long.
const outerSlice = 2

// OuterSquare16Room is how many numbers the room takes: a slice of both sides.
const OuterSquare16Room = outerSlice * 2 * 16 * OuterWidth

// Run computes the product.
func (t *OuterSquare16) Run(level Level) {
	if t.Units == 0 {
		return
	}
	if level >= AMX {
		t.run()
		return
	}
	for r := range t.Units * OuterUnit {
		b := unsafe.Slice((*uint16)(unsafe.Add(t.B, r*t.BRow)), t.Cols)
		for i, x := range unsafe.Slice((*uint16)(unsafe.Add(t.A, r*t.ARow)), t.Left) {
			c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
			for j, y := range b {
				c[j] += FromBF16(x) * FromBF16(y)
			}
		}
	}
}

func (t *OuterSquare16) run() {
	t.room = unsafe.Pointer(&t.Room[:OuterSquare16Room][0])
	t.strips, t.lastA = (t.Left+15)/16, 2*t.Left-16
	t.fromA, t.leadA = askAhead(uintptr(t.A), outerSlice*OuterUnit*t.ARow)
	t.fromB, t.leadB = askAhead(uintptr(t.B), outerSlice*OuterUnit*t.BRow)
	tiles := (t.Cols + 15) / 16
	t.last = 1<<(t.Cols-16*tiles+16) - 1
	t.config.wholeTiles()
	runOuterSquare16(t, tiles)
}
