package simd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestOuterAgreesWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, rows := range []int{1, 2, 64} {
		for cols := 1; cols <= OuterWidth; cols++ {
			left := 1 + r.IntN(OuterLeft)
			arow, brow := left+r.IntN(3), cols+r.IntN(3)
			// As long as it has to be: nothing past the last number is read.
			a, b := randomSingles(r, (rows-1)*arow+left), randomSingles(r, (rows-1)*brow+cols)
			for add := range 2 {
				run := func(l Level) []float32 {
					c := make([]float32, OuterLeft*OuterWidth)
					for i := range c {
						c[i] = float32(i % 7)
					}
					outer := &Outer{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
						ARow: 4 * arow, BRow: 4 * brow, CRow: 4 * OuterWidth, Rows: rows, Cols: cols, Left: left, Add: add}
					outer.Run(l)
					return c
				}
				want := run(Generic)
				for l := AVX512; l <= Supported(); l++ {
					for i, got := range run(l) {
						if i < left*OuterWidth && i%OuterWidth < cols && !(math.Abs(float64(got-want[i])) <= 1e-4) {
							t.Fatalf("%v, %d rows, %d x %d, add %d: number %d is %g, want %g", l, rows, left, cols, add, i, got, want[i])
						}
					}
				}
			}
		}
	}
}
