package simd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestTiles48AgreeWithTwin(t *testing.T) {
	if Supported() < AMX {
		t.Skip("this processor has no AMX")
	}
	r := rand.New(rand.NewPCG(4, 4))
	for _, s := range [][3]int{{1, 32, 40}, {1, 1, 33}, {2, 31, 48}, {3, 33, 47}, {2, 100, 41}, {5, 256, 40}, {1, 32, 16}, {1, 1, 9}, {3, 100, 12}, {2, 33, 17}, {4, 64, 32}, {2, 31, 24}} {
		strips, depth, cols := s[0], s[1], s[2]
		deep := (depth + 31) / 32
		arow, crow := depth+r.IntN(3), cols+r.IntN(3)
		a, b := randomSingles(r, 16*strips*arow), make([]uint16, 2*deep*SplitBlock)
		SplitPairs(AMX, b, randomSingles(r, depth*cols), depth, cols, cols, deep*SplitBlock)
		for add := range 2 {
			run := func(l Level) []float32 {
				c, room := make([]float32, 16*strips*crow), make([]uint16, Room48)
				for i := range c {
					c[i] = float32(i % 7)
				}
				tiles := &Tiles48{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]), Room: unsafe.Pointer(&room[0]),
					ARow: 4 * arow, BPanel: 2 * deep * SplitBlock, CRow: 4 * crow, Depth: depth, Strips: strips, Cols: cols, Add: add}
				tiles.Run(l)
				return c
			}
			got, want := run(AMX), run(Generic)
			for i := range got {
				if math.Abs(float64(got[i]-want[i])) > 1e-4 {
					t.Fatalf("%v, add %d: number %d is %g, want %g", s, add, i, got[i], want[i])
				}
			}
		}
	}
}
