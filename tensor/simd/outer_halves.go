package simd

import "unsafe"

// OuterHalves is a step of a product of tall matrices, C += Aᵀ·B, with 33 to 48 columns of A, on a matrix unit that knows
// half precision. Numbers are halved as in Halves: A's before (HalvePairs, TurnHalves), since all columns of B take them,
// and B's on the way, since each is taken once. C is panels of 16 columns, in which rows follow each other: a panel is
// loaded and stored as one run of lines.
type OuterHalves struct {
	A, B, C unsafe.Pointer
	// A number each column: what B's is multiplied with (ColumnScales), and what takes scales back.
	Scale, BackA, BackB unsafe.Pointer
	Room                unsafe.Pointer // RoomOuterHalves numbers
	// Spoilt, if there is any, is a bit each column of B: whether a number of it was too large for its scale. A panel
	// with such a column is not added to C.
	Spoilt unsafe.Pointer
	BRow   int // bytes from one row of B to the next
	Blocks int // of 32 rows of B, up to OuterHalvesDepth
	Cols   int // of B
	// Ahead is memory the caller will need next: with each block of 32 rows by 16 columns of B as many lines are asked for,
	// in pairs that are AheadApart bytes from each other, and with the next block the pairs behind them.
	Ahead      uintptr
	AheadApart int
	config     tileConfig
	Rows       int // columns of A
}

// OuterHalvesDepth is the most rows of a step: what all columns of B take of A stays in the nearest cache, with room for
// B's lines.
const OuterHalvesDepth = 64

// OuterHalvesPanel is how many numbers of half precision a panel of A takes, 32 of its columns, and OuterHalvesSums how
// many float32 a panel of C, 48 rows of 16 columns.
const (
	OuterHalvesPanel = OuterHalvesDepth / 32 * HalfBlock
	OuterHalvesSums  = 48 * 16
)

// RoomOuterHalves is the size of OuterHalves.Room: two panels of 16 columns of B, and three tiles of sums.
const RoomOuterHalves = 2*16*OuterHalvesDepth + 3*256

// Run computes the step.
func (t *OuterHalves) Run(level Level) {
	if level >= AMXFP16 {
		t.config.wholeTiles()
		for _, last := range [2]int{2, 5} { // tiles of C and of A
			t.config.rows[last] = byte(t.Rows - 32)
		}
		runOuterHalves(t)
		return
	}
	for j := 0; j < t.Cols; j += 16 {
		t.panel(j, min(16, t.Cols-j))
	}
}

// panel computes so many columns from j on.
func (t *OuterHalves) panel(j, cols int) {
	if t.Spoilt != nil {
		var lanes uint16
		for l := range cols {
			if sum := t.sum(0, j+l); sum-sum != 0 {
				lanes |= 1 << l
			}
		}
		*(*uint16)(unsafe.Add(t.Spoilt, j/8)) = lanes
		if lanes != 0 {
			return
		}
	}
	backA, backB := unsafe.Slice((*float32)(t.BackA), t.Rows), unsafe.Slice((*float32)(t.BackB), t.Cols)
	end := j + cols
	for i := range t.Rows {
		for j := j; j < end; j++ {
			c := (*float32)(unsafe.Add(t.C, 4*(j/16*OuterHalvesSums+16*i+j%16)))
			*c += t.sum(i, j) * backA[i] * backB[j]
		}
	}
}

// sum is a number of C of scaled numbers.
func (t *OuterHalves) sum(i, j int) (sum float32) {
	a := unsafe.Slice((*uint16)(unsafe.Add(t.A, 2*(i/32*OuterHalvesPanel))), t.Blocks*HalfBlock)
	scale := *(*float32)(unsafe.Add(t.Scale, 4*j))
	for k := range 32 * t.Blocks {
		b := halve(*(*float32)(unsafe.Add(t.B, k*t.BRow+4*j)) * scale)
		for _, half := range [3][2]int{{0, 1}, {0, 0}, {1, 0}} {
			sum += FromHalf(a[halfRowPlace(i&31, k, half[0])]) * FromHalf(b[half[1]])
		}
	}
	return sum
}

// OuterHeadroom is how many powers of two numbers may be larger than those their scales were taken of.
const OuterHeadroom = 4

// ColumnScales says what columns are multiplied with so that numbers may be so many powers of two larger than their
// largest, which are between 2¹⁴ and 2¹⁵ without headroom, and what takes that back. Columns of zeros keep what they have: StartScales, at first. Past the last column, up to a whole
// vector, there may be any.
func ColumnScales(level Level, scale, back, src []float32, rows, cols, stride, headroom int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _, _ = scale[(cols-1)|15], back[(cols-1)|15], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		columnScales(&scale[0], &back[0], &src[0], rows, cols, stride, headroom)
		return
	}
	for j := range cols {
		var largest float32
		for i := range rows {
			largest = larger(largest, src[i*stride+j])
		}
		if largest != 0 {
			scale[j], back[j] = scaling(largest)
			room := float32(int(1) << headroom)
			scale[j], back[j] = scale[j]/room, back[j]*room
		}
	}
}

// StartScales makes scales of columns of which nothing is known: next to any number is too large for them.
func StartScales(scale, back []float32) {
	for j := range scale {
		scale[j], back[j] = scaling(0)
	}
}
