package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestOuterSquare16AgreesWithTwin(t *testing.T) {
	if Supported() < AMX {
		t.Skip("this processor has no AMX")
	}
	r := rand.New(rand.NewPCG(40, 16))
	widths := []int{8, 9, 15, 16, 17, 24, 31, 33, 40, 41, 48}
	for i, left := range widths {
		for j, cols := range append(widths, 1, 7) {
			// Rows have gaps of zero to two numbers, and nothing is behind the last.
			units, arow, brow := 1+(i+j)%5, left+j%3, cols+i%3
			a, b := wholes16(r, (units*OuterUnit-1)*arow+left), wholes16(r, (units*OuterUnit-1)*brow+cols)
			crow := (cols + 15) &^ 15
			run := func(l Level) []float32 {
				c := make([]float32, 48*crow)
				for i := range c {
					c[i] = float32(i % 7)
				}
				outer := OuterSquare16{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]), Units: units,
					ARow: 2 * arow, BRow: 2 * brow, CRow: 4 * crow, Left: left, Cols: cols, Room: make([]float32, OuterSquare16Room)}
				outer.Run(l)
				return c[:left*crow]
			}
			if got, want := run(AMX), run(Generic); !slices.Equal(got, want) {
				t.Fatalf("%d units, %d x %d: %v, want %v", units, left, cols, got, want)
			}
		}
	}
}
