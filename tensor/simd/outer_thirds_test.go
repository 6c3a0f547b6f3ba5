package simd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestOuterThirdsAgreeWithTwin(t *testing.T) {
	if Supported() < AMX {
		t.Skip("this processor has no AMX")
	}
	r := rand.New(rand.NewPCG(5, 5))
	for _, s := range [][3]int{{1, 16, 16}, {2, 9, 33}, {1, 17, 1}, {4, 32, 48}, {3, 24, 100}, {2, 13, 15}} {
		blocks, rows, cols := s[0], s[1], s[2]
		arow, brow := rows+r.IntN(3), cols+r.IntN(3)
		a, b := make([]uint16, blocks*SplitBlock), randomSingles(r, 32*blocks*brow)
		SplitPairs(AMX, a, randomSingles(r, 32*blocks*arow), 32*blocks, rows, arow, len(a))
		TurnTiles(AMX, a, blocks)
		for add := range 2 {
			run := func(l Level) []float32 {
				c, room := make([]float32, (rows+15)&^15*((cols+15)&^15)), make([]uint16, Room48)
				for i := range c {
					c[i] = float32(i % 7)
				}
				step := &OuterThirds{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]), Room: unsafe.Pointer(&room[0]),
					BRow: 4 * brow, Blocks: blocks, Rows: rows, Cols: cols, Add: add}
				step.Run(l)
				return c
			}
			got, want := run(AMX), run(Generic)
			for i := range rows {
				for j := range cols {
					at := outerThirdsPlace(i, j, rows)
					if math.Abs(float64(got[at]-want[at])) > 1e-4 {
						t.Fatalf("%v, add %d: number (%d,%d) is %g, want %g", s, add, i, j, got[at], want[at])
					}
				}
			}
		}
	}
}
