package simd

import "unsafe"

// Tiles48 is Tiles32 for up to 48 columns, as the last layer of a model has: A is split on the way,
// since each of its numbers is needed only once. The product is of Strips times 16 rows of A, Depth
// numbers each, and of panels of B as SplitPairs makes them. Thirds of A are cut off, not rounded, so its second and third
// are of up to twice the size, and so is what is left out; those of B are of either sign, and with them that is.
type Tiles48 struct {
	A, B, C unsafe.Pointer
	// Bytes from one row of A, panel of B, row of C to the next.
	ARow, BPanel, CRow int
	Depth, Strips      int
	Add                int
	// Ahead is memory the caller will need next: in each step of 32 of depth 32 lines are asked for, in pairs that are
	// AheadApart bytes from each other, AheadStep further each time.
	Ahead                 uintptr
	AheadStep, AheadApart int
	// Room is for two blocks of A that are split, and for sums: Room48 numbers.
	Room   unsafe.Pointer
	Cols   int
	last   int // columns of the last strip of OuterThirds
	config tileConfig
}

// Room48 is how many bfloat16 the room of Tiles48 takes.
const Room48 = 2*3*512 + 2*4*256

// tileConfig is how many rows, and bytes of a row, the eight tiles of the matrix unit have.
type tileConfig struct {
	palette byte
	_       [15]byte
	bytes   [16]uint16
	rows    [16]byte
}

// wholeTiles has all tiles as large as can be.
func (c *tileConfig) wholeTiles() {
	c.palette = 1
	for i := range 8 {
		c.bytes[i], c.rows[i] = 64, 16
	}
}

// Run computes the product.
func (t *Tiles48) Run(level Level) {
	if level >= AMX {
		t.config.wholeTiles()
		if t.Cols > 32 {
			for _, narrow := range [2]int{2, 7} { // the last tiles of C and B
				t.config.bytes[narrow] = uint16(4 * (t.Cols - 32))
			}
		}
		runTiles48(t)
		return
	}
	depth := (t.Depth + 31) / 32
	strip := make([]uint16, depth*SplitBlock)
	sum := make([]float32, t.Cols)
	for i := range 16 * t.Strips {
		SplitRows(level, strip, unsafe.Slice((*float32)(unsafe.Add(t.A, i*t.ARow)), t.Depth), 1, t.Depth, t.Depth)
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		clear(sum)
		if t.Add != 0 {
			copy(sum, c)
		}
		for j := range sum {
			b := unsafe.Slice((*uint16)(unsafe.Add(t.B, j/32*t.BPanel)), depth*SplitBlock)
			sum[j] = splitDot(sum[j], strip, b, 0, j&31, 32*depth)
		}
		copy(c, sum)
	}
}
