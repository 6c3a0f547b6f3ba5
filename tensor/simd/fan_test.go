package simd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestFanAgreesWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, rows := range []int{1, 2, 7, 8, 9, 17} {
		for _, depth := range []int{1, 2, 7, 15, 16} {
			for cols := 1; cols <= FanWidth; cols++ {
				arow, crow := depth+r.IntN(3), cols+r.IntN(3)
				// As long as it has to be: nothing past the last number is read or written.
				a, src := randomSingles(r, (rows-1)*arow+depth), randomSingles(r, depth*cols)
				b := make([]float32, FanDepth*FanWidth)
				PackPanel(b, src, depth, cols, cols, 0, FanWidth)
				for add := range 2 {
					run := func(l Level) []float32 {
						c := make([]float32, rows*crow+8)
						for i := range c {
							c[i] = float32(i % 7)
						}
						fan := &Fan{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
							ARow: 4 * arow, CRow: 4 * crow, Depth: depth, Rows: rows, Cols: cols, Add: add}
						fan.Run(l)
						return c
					}
					want := run(Generic)
					for l := AVX512; l <= Supported(); l++ {
						for i, got := range run(l) {
							if !(math.Abs(float64(got-want[i])) <= 1e-4) {
								t.Fatalf("%v, %d x %d · %d, add %d: number %d is %g, want %g", l, rows, depth, cols, add, i, got, want[i])
							}
						}
					}
				}
			}
		}
	}
}
