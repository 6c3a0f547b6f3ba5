package simd

import "unsafe"

// Fan is a product of short rows, C = A·B or C += A·B, of up to FanDepth numbers, with up to FanWidth columns: B stays in
// registers, and rows of A are read as they lie. B is FanDepth rows of FanWidth numbers, those past the last any.
type Fan struct {
	A, B, C    unsafe.Pointer
	ARow, CRow int // bytes from one row to the next
	Depth      int // numbers of a row of A, at least one
	Rows, Cols int // of C
	Add        int
}

// FanDepth and FanWidth are the most numbers of a row, and columns, of Fan.
const FanDepth, FanWidth = 16, 16

// Run computes the product.
func (t *Fan) Run(level Level) {
	if level >= AVX512 {
		runFan(t)
		return
	}
	b := unsafe.Slice((*float32)(t.B), FanDepth*FanWidth)
	for i := range t.Rows {
		row := unsafe.Slice((*float32)(unsafe.Add(t.A, i*t.ARow)), t.Depth)
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		for j := range c {
			var sum float32
			for k, x := range row {
				sum += x * b[k*FanWidth+j]
			}
			if t.Add != 0 {
				sum += c[j]
			}
			c[j] = sum
		}
	}
}

// FanPast is Fan for any number of columns, C = A·B, in units of FanUnit rows: results go past the caches, through a room
// that has lines of them whole. B has panels of FanDepth rows of FanWidth numbers, one after another. C begins with a line
// and has no gaps between rows.
type FanPast struct {
	A, B, C, room unsafe.Pointer
	ARow          int // bytes from one row to the next
	Depth         int // numbers of a row of A, at least one
	Units, Cols   int // of C
	Room          []float32
}

// FanUnit is how many rows a unit has.
const FanUnit = 16

// FanRoom is how many numbers the room takes.
func FanRoom(cols int) int { return 2 * FanUnit * cols }

// Run computes the product.
func (t *FanPast) Run(level Level) {
	if t.Units == 0 || t.Cols == 0 {
		return
	}
	if level >= AVX512 {
		t.room = unsafe.Pointer(&t.Room[:FanRoom(t.Cols)][0])
		runFanPast(t)
		return
	}
	fan := Fan{A: t.A, ARow: t.ARow, CRow: 4 * t.Cols, Depth: t.Depth, Rows: FanUnit * t.Units}
	for j := 0; j < t.Cols; j += FanWidth {
		fan.B, fan.C = unsafe.Add(t.B, 4*FanDepth*j), unsafe.Add(t.C, 4*j)
		fan.Cols = min(FanWidth, t.Cols-j)
		fan.Run(level)
	}
}
