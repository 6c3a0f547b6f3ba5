package simd

import "unsafe"

// OuterHalves is a step of a product of tall matrices, C = Aᵀ·B or C += Aᵀ·B, with 33 to 48 columns of A, on a matrix unit
// that knows half precision. Numbers are halved as in Halves: A's before (HalvePairs, TurnHalves), since all columns of B
// take them, and B's on the way, since each is taken once.
type OuterHalves struct {
	A, B, C unsafe.Pointer
	// A number each column: what B's is multiplied with (ColumnScales), and what takes scales back.
	Scale, BackA, BackB unsafe.Pointer
	Room                unsafe.Pointer // RoomOuterHalves numbers
	// Bytes from one panel of A, row of B, row of C to the next.
	APanel, BRow, CRow int
	Blocks             int // of 32 rows of B, up to OuterHalvesDepth
	Rows, Cols         int // of C, which has whole vectors: columns of A and of B
	Add                int
	// Ahead is memory the caller will need next: with each block of 32 rows by 16 columns of B as many lines are asked for,
	// in pairs that are AheadApart bytes from each other, and with the next block the pairs behind them.
	Ahead      uintptr
	AheadApart int
	config     tileConfig
}

// OuterHalvesDepth is the most rows of a step: what all columns of B take of A stays in the nearest cache.
const OuterHalvesDepth = 128

// RoomOuterHalves is the size of OuterHalves.Room: two panels of 16 columns of B, and three tiles of sums.
const RoomOuterHalves = 2*16*OuterHalvesDepth + 3*256

// Run computes the step.
func (t *OuterHalves) Run(level Level) {
	if level >= AMXFP16 {
		t.config.palette = 1
		for i := range 8 {
			t.config.bytes[i], t.config.rows[i] = 64, 16
		}
		for _, last := range [2]int{2, 5} { // tiles of C and of A
			t.config.rows[last] = byte(t.Rows - 32)
		}
		runOuterHalves(t)
		return
	}
	scale, backB := unsafe.Slice((*float32)(t.Scale), t.Cols), unsafe.Slice((*float32)(t.BackB), t.Cols)
	for i, backA := range unsafe.Slice((*float32)(t.BackA), t.Rows) {
		a := unsafe.Slice((*uint16)(unsafe.Add(t.A, i/32*t.APanel)), t.Blocks*HalfBlock)
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		for j := range c {
			var sum float32
			for k := range 32 * t.Blocks {
				b := halve(*(*float32)(unsafe.Add(t.B, k*t.BRow+4*j)) * scale[j])
				for _, half := range [3][2]int{{0, 1}, {0, 0}, {1, 0}} {
					sum += FromHalf(a[halfRowPlace(i&31, k, half[0])]) * FromHalf(b[half[1]])
				}
			}
			sum = sum * backA * backB[j]
			if t.Add != 0 {
				sum += c[j]
			}
			c[j] = sum
		}
	}
}

// ColumnScales says what columns are multiplied with so that their largest numbers are between 2¹⁴ and 2¹⁵, and what
// takes that back. Past the last column, up to a whole vector, there may be any. Meanwhile three lines a row that the
// caller will need are asked for, from ahead on.
func ColumnScales(level Level, scale, back, src []float32, rows, cols, stride int, ahead uintptr) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _, _ = scale[(cols-1)|15], back[(cols-1)|15], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		columnScales(&scale[0], &back[0], &src[0], rows, cols, stride, ahead)
		return
	}
	for j := range cols {
		var largest float32
		for i := range rows {
			largest = larger(largest, src[i*stride+j])
		}
		scale[j], back[j] = scaling(largest)
	}
}
