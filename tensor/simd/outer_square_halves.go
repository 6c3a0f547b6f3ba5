package simd

import "unsafe"

// OuterSquareHalves is a product of tall matrices, C += Aᵀ·B, with 25 to OuterWidth columns of A and 33 to OuterWidth of B, on
// a matrix unit that knows half precision, in units of OuterUnit rows. Numbers of both sides are halved as in Halves, in the
// nearest cache. Scales are those of columns (Scale), and serve all rows of a step.
type OuterSquareHalves struct {
	A, B, C, room    unsafe.Pointer
	Units            int
	ARow, BRow, CRow int     // bytes from one row to the next
	strip            int     // columns of A that are multiplied at a time
	lastA            int     // columns of A before its last four
	fromA            uintptr // where asking for rows begins, across pages, and how far ahead of a unit
	leadA            int
	fromB            uintptr
	leadB            int
	last             uint64 // lanes of B's last tile
	config           tileConfig

	scaleA, backA, scaleB, backB unsafe.Pointer
	left                         int
	spoilt                       int // not zero: a number was too large

	Left, Cols int       // columns of A and of B
	Room       []float32 // OuterSquareHalvesRoom numbers
}

// OuterSquareHalvesRoom is how many numbers the room takes: a unit of A, two of B, sums, and scales of both sides.
const OuterSquareHalvesRoom = 3*2*16*OuterWidth + OuterWidth*OuterWidth + 4*OuterWidth

// squareHeadroom is how many powers of two numbers may be larger than those their scales were taken of. Gradients of
// classes are large where a row is of the class, which may be few.
const squareHeadroom = 8

// scales are what columns of A, or of B, are multiplied with, and what takes that back.
func (t *OuterSquareHalves) scales(side int) (scale, back []float32) {
	both := t.Room[OuterSquareHalvesRoom-(4-2*side)*OuterWidth:]
	return both[:OuterWidth:OuterWidth], both[OuterWidth : 2*OuterWidth : 2*OuterWidth]
}

// Start forgets all scales.
func (t *OuterSquareHalves) Start() {
	for side := range 2 {
		StartScales(t.scales(side))
	}
}

// Scale takes scales of the first rows. Columns of zeros keep what they have.
func (t *OuterSquareHalves) Scale(level Level, rows int) {
	of := func(side int, at unsafe.Pointer, cols, stride int) {
		scale, back := t.scales(side)
		ColumnScales(level, scale, back, unsafe.Slice((*float32)(at), (rows-1)*stride+cols), rows, cols, stride, squareHeadroom)
	}
	of(0, t.A, t.Left, t.ARow/4)
	of(1, t.B, t.Cols, t.BRow/4)
}

// Run computes the step. If a number is too large for its column's scale it says so, and leaves C as it is.
func (t *OuterSquareHalves) Run(level Level) bool {
	if t.Units == 0 {
		return true
	}
	if level >= AMXFP16 {
		t.run()
		return t.spoilt == 0
	}
	var sums [OuterWidth][OuterWidth]float32
	for i := range t.Left {
		for j := range t.Cols {
			sums[i][j] = t.sum(i, j)
			if sums[i][j]-sums[i][j] != 0 {
				return false
			}
		}
	}
	_, backA := t.scales(0)
	_, backB := t.scales(1)
	for i := range t.Left {
		for j := range t.Cols {
			*(*float32)(unsafe.Add(t.C, i*t.CRow+4*j)) += backA[i] * backB[j] * sums[i][j]
		}
	}
	return true
}

// sum is a number of C of scaled numbers.
func (t *OuterSquareHalves) sum(i, j int) (sum float32) {
	scaleA, _ := t.scales(0)
	scaleB, _ := t.scales(1)
	for k := range t.Units * OuterUnit {
		a := halve(*(*float32)(unsafe.Add(t.A, k*t.ARow+4*i)) * scaleA[i])
		b := halve(*(*float32)(unsafe.Add(t.B, k*t.BRow+4*j)) * scaleB[j])
		for _, half := range [3][2]int{{0, 1}, {0, 0}, {1, 0}} {
			sum += FromHalf(a[half[0]]) * FromHalf(b[half[1]])
		}
	}
	return sum
}

func (t *OuterSquareHalves) run() {
	t.room = unsafe.Pointer(&t.Room[:OuterSquareHalvesRoom][0])
	scaleA, backA := t.scales(0)
	scaleB, backB := t.scales(1)
	t.scaleA, t.backA = unsafe.Pointer(&scaleA[0]), unsafe.Pointer(&backA[0])
	t.scaleB, t.backB = unsafe.Pointer(&scaleB[0]), unsafe.Pointer(&backB[0])
	t.left, t.lastA = t.Left, t.Left-4
	t.fromA, t.leadA = askAhead(uintptr(t.A), OuterUnit*t.ARow)
	t.fromB, t.leadB = askAhead(uintptr(t.B), OuterUnit*t.BRow)
	t.last = 1<<(t.Cols-32) - 1
	// As few columns at a time as strips allow: products of fewer take less time.
	strips := (t.Left + 15) / 16
	t.strip = (t.Left + strips - 1) / strips
	t.config.wholeTiles()
	for tile := range 5 { // of sums and of A
		t.config.rows[tile] = byte(t.strip)
	}
	runOuterSquareHalves(t)
}
