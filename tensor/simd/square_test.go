package simd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestSquareAgreesWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 6))
	for units := 1; units <= 4; units++ {
		for cols := 33; cols <= 48; cols++ {
			for _, depth := range []int{1, 2, 17, 40} {
				arow, rows := depth+r.IntN(3), units*SquareUnit
				// As long as it has to be: nothing past the last number is read.
				a, weights := randomSingles(r, (rows-1)*arow+depth), randomSingles(r, depth*cols)
				b := make([]float32, SquareSize(depth))
				PackSquare(b, weights, depth, cols, 1, depth)
				run := func(l Level) []float32 {
					c, room := make([]float32, rows*cols+16), make([]float32, SquareRoom)
					for uintptr(unsafe.Pointer(&c[0]))%64 > 0 { // begins with a line
						c = c[1:]
					}
					c = c[:rows*cols]
					square := &Square{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
						ARow: 4 * arow, Depth: depth, Units: units, Cols: cols, Room: room}
					square.Run(l)
					return c
				}
				want := run(Generic)
				for l := AVX512; l <= Supported(); l++ {
					for i, got := range run(l) {
						if !(math.Abs(float64(got-want[i])) <= 1e-4) {
							t.Fatalf("%v, %d units, %d to %d: number %d is %g, want %g", l, units, depth, cols, i, got, want[i])
						}
					}
				}
			}
		}
	}
}
