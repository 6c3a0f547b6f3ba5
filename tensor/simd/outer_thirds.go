package simd

import "unsafe"

// OuterThirds is a step of a product of tall matrices, C = Aᵀ·B or C += Aᵀ·B, with up to 32 columns of A, on the matrix
// unit. Numbers are split as in Tiles48: A's before (SplitPairs, TurnTiles), since all columns of B take them, and B's on
// the way, since each is taken once. C is tiles (see outerThirdsPlace): those of its rows would be of as many pages.
type OuterThirds struct {
	A, B, C    unsafe.Pointer
	BRow       int // bytes from one row to the next
	Blocks     int // of 32 rows of B
	Rows, Cols int // columns of A and of B
	Add        int
	// Ahead is memory the caller will need next: with each block of 32 rows by 16 columns of B as many lines are asked for,
	// in pairs that are AheadApart bytes from each other, and with the next block the pairs behind them.
	Ahead      uintptr
	AheadApart int
	Room       unsafe.Pointer // Room48 numbers
	step       Tiles48
}

// Run computes the step.
func (t *OuterThirds) Run(level Level) {
	if level >= AMX {
		t.step = Tiles48{
			A: t.B, B: t.A, C: t.C, ARow: t.BRow, Depth: 32 * t.Blocks, Strips: (t.Cols + 15) / 16, Add: t.Add,
			Ahead: t.Ahead, AheadStep: 128, AheadApart: t.AheadApart, Room: t.Room, Cols: t.Rows, last: (t.Cols-1)%16 + 1,
		}
		t.step.config.wholeTiles()
		runOuterThirds(&t.step)
		return
	}
	a := unsafe.Slice((*uint16)(t.A), t.Blocks*SplitBlock)
	for i := range t.Rows {
		for j := range t.Cols {
			c := (*float32)(unsafe.Add(t.C, 4*outerThirdsPlace(i, j, t.Rows)))
			var sum float32
			if t.Add != 0 {
				sum = *c
			}
			for k := range 32 * t.Blocks {
				b := split(*(*float32)(unsafe.Add(t.B, k*t.BRow+4*j)))
				for _, third := range [6][2]int{{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}} {
					sum += FromBF16(a[splitPlace(i, k, third[0])]) * FromBF16(b[third[1]])
				}
			}
			*c = sum
		}
	}
}

// outerThirdsPlace is where C keeps the number in row i, column j of so many rows: each 16 columns one tile, or two, of 16
// rows by 16.
func outerThirdsPlace(i, j, rows int) int { return (j>>4*((rows+15)&^15)+i)<<4 + j&15 }
