package simd

import "unsafe"

// OuterWide16 is a product of tall bfloat16 matrices of which one is narrow, C += Aᵀ·B in float32, on the matrix unit: up
// to OuterLeft columns of A by 32 and more of B, in units of OuterUnit rows. A has no gaps between rows. Rows of B are
// tiles as they lie.
//
// The unit adds up products of pairs, which should be of two rows. Here a pair is two numbers of one row of B, and in A
// one of the two is zero: each column of A is there twice, and so are its sums, with the even columns of B and with the
// odd. What is infinite or not a number in B spoils the sums of its neighbour, too.
//
// C is so many tiles of 2·OuterLeft x 16 sums as B has panels of 32 columns; the last panel is the last 32 columns.
type OuterWide16 struct {
	A, B, C, room unsafe.Pointer
	Units         int
	takeA         int     // bytes of A that are read at a time
	BRow          int     // bytes from one row of B to the next
	panels        int     // of 32 columns
	back          int     // bytes that the last panel is nearer than 64 to the one before
	from          uintptr // where asking for rows of B begins, across pages
	lead, ask     int     // how far ahead of a unit they are asked for, and how many fours of lines at a time
	_             uintptr // room for the assembly
	// Which words of what is read of A at a time are there, which of the result, and which goes where.
	takenA, keptA uint64
	orderA        [32]uint16
	config        tileConfig

	Left, Cols int       // columns of A and of B
	Room       []float32 // OuterWide16Room numbers
}

// outerTile is how many sums a tile has, OuterWide16Room how many numbers the room takes: a unit of A.
const (
	outerTile       = 2 * OuterLeft * 16
	OuterWide16Room = 2 * outerTile
)

// OuterWide16Sums is how many numbers C has where B has so many columns.
func OuterWide16Sums(cols int) int { return (cols + 31) / 32 * outerTile }

// OuterWide16Place is where C keeps the sum of column i of A and j of B, which has so many columns.
func OuterWide16Place(i, j, cols int) int {
	panel := j / 32
	j -= min(32*panel, cols-32)
	return panel*outerTile + (j&1*OuterLeft+i)*16 + j>>1
}

// Run computes the product.
func (t *OuterWide16) Run(level Level) {
	if t.Units == 0 {
		return
	}
	if level >= AMX {
		t.run()
		return
	}
	c := unsafe.Slice((*float32)(t.C), OuterWide16Sums(t.Cols))
	a := unsafe.Slice((*uint16)(t.A), t.Units*OuterUnit*t.Left)
	for r := range t.Units * OuterUnit {
		b := unsafe.Slice((*uint16)(unsafe.Add(t.B, r*t.BRow)), t.Cols)
		for i, x := range a[r*t.Left:][:t.Left] {
			for j, y := range b {
				c[OuterWide16Place(i, j, t.Cols)] += FromBF16(x) * FromBF16(y)
			}
		}
	}
}

func (t *OuterWide16) run() {
	t.room = unsafe.Pointer(&t.Room[:OuterWide16Room][0])
	t.takeA, t.takenA = 8*t.Left, 1<<(4*t.Left)-1
	t.keptA = fourRows(&t.orderA, t.Left, func(pair, column int) int { return 2*column + pair })
	t.panels = (t.Cols + 31) / 32
	t.back = 64*t.panels - 2*t.Cols
	unit := OuterUnit * t.BRow
	t.from, t.lead = askAhead(uintptr(t.B), unit)
	t.ask = 1 + unit/256/(2*t.panels)
	t.config.palette = 1
	for i := range 8 {
		t.config.rows[i], t.config.bytes[i] = 16, 64
	}
	runOuterWide16(t)
}
