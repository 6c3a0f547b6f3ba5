package simd

import "unsafe"

// Outer16 is a product of tall bfloat16 matrices of which one is narrow, C = Aᵀ·B or C += Aᵀ·B in float32, on the matrix
// unit: up to OuterLeft columns of A by up to OuterWidth of B, in units of OuterUnit rows. Neither has gaps between rows.
// Rows of a unit are turned and paired while those before are multiplied, and sums stay in tiles to the end.
type Outer16 struct {
	A, B, C, room unsafe.Pointer
	Units         int
	takeA, takeB  int // bytes that are read at a time
	CRow          int // bytes from one row of C to the next
	Add           int
	// Which words of what is read at a time are there, which of the result, and which goes where; last are lanes of B's last tile.
	takenA, keptA, takenB, keptB, last uint64
	orderA, orderB                     [32]uint16
	config                             tileConfig

	Left, Cols int       // columns of A and of B
	Room       []float32 // OuterRoom numbers
}

// OuterUnit is how many rows a unit has, OuterRoom how many numbers the room takes.
const (
	OuterUnit = 32
	OuterRoom = 2 * (16*OuterWidth + OuterLeft*16)
)

// few reports whether rows of B, too, are taken four at a time.
func (t *Outer16) few() bool { return t.Cols <= 8 }

// Run computes the product.
func (t *Outer16) Run(level Level) {
	if t.Units == 0 {
		return
	}
	if level >= AMX {
		t.run()
		return
	}
	a := unsafe.Slice((*uint16)(t.A), t.Units*OuterUnit*t.Left)
	b := unsafe.Slice((*uint16)(t.B), t.Units*OuterUnit*t.Cols)
	for i := range t.Left {
		for j, c := range unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols) {
			if t.Add == 0 {
				c = 0
			}
			for r := range t.Units * OuterUnit {
				c += FromBF16(a[r*t.Left+i]) * FromBF16(b[r*t.Cols+j])
			}
			*(*float32)(unsafe.Add(t.C, i*t.CRow+4*j)) = c
		}
	}
}

func (t *Outer16) run() {
	t.room = unsafe.Pointer(&t.Room[:OuterRoom][0])
	// Of four rows the pairs of a column follow each other in A, and those of a row in B.
	t.takeA, t.takenA = 8*t.Left, 1<<(4*t.Left)-1
	t.keptA = fourRows(&t.orderA, t.Left, func(pair, column int) int { return 2*column + pair })
	t.takeB = 2 * t.Cols
	if t.few() {
		t.takeB, t.takenB = 8*t.Cols, 1<<(4*t.Cols)-1
		t.keptB = fourRows(&t.orderB, t.Cols, func(pair, column int) int { return 8*pair + column })
	}
	tiles := (t.Cols + 15) / 16
	last := t.Cols - 16*tiles + 16
	t.last = 1<<last - 1
	t.config.palette = 1
	for i := range 8 {
		t.config.rows[i], t.config.bytes[i] = byte(t.Left), 64
		if i > 4 {
			t.config.rows[i] = 16
		}
		if i == tiles-1 || i == 7 {
			t.config.bytes[i] = uint16(4 * last)
		}
	}
	runOuter16(t, tiles)
}

// fourRows is the order of words that makes two pairs of four rows of so many columns, where place is the double word of a
// pair, and a mask of the words that are used.
func fourRows(order *[32]uint16, columns int, place func(pair, column int) int) (kept uint64) {
	for row := range 4 {
		for column := range columns {
			word := 2*place(row/2, column) + row%2
			order[word] = uint16(row*columns + column)
			kept |= 1 << word
		}
	}
	return kept
}
