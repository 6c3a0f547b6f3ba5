package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestFanAgreesWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, rows := range []int{1, 2, 7, 8, 9, 17} {
		for _, depth := range []int{1, 2, 7, 15, 16} {
			for cols := 1; cols <= ShortWidth; cols++ {
				arow, crow := depth+r.IntN(3), cols+r.IntN(3)
				// As long as it has to be: nothing past the last number is read or written.
				a, src := randomSingles(r, (rows-1)*arow+depth), randomSingles(r, depth*cols)
				b := make([]float32, ShortDepth*ShortWidth)
				PackPanel(b, src, depth, cols, cols, 0, ShortWidth)
				for add := range 2 {
					agreesWithTwin(t, fmt.Sprintf("%d x %d · %d, add %d", rows, depth, cols, add), rows*crow+8,
						func(l Level, c []float32) {
							fan := &ShortRows{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]),
								C:    unsafe.Pointer(&c[0]),
								ARow: 4 * arow, CRow: 4 * crow, Depth: depth, Rows: rows, Cols: cols, Add: add}
							fan.Run(l)
						})
				}
			}
		}
	}
}

// agreesWithTwin compares what each level that has the kernel makes of the same n numbers with
// what the generic one does.
func agreesWithTwin(t *testing.T, what string, n int, run func(l Level, c []float32)) {
	t.Helper()
	result := func(l Level) []float32 {
		c := make([]float32, n)
		for i := range c {
			c[i] = float32(i % 7)
		}
		run(l, c)
		return c
	}
	want := result(Generic)
	for l := AVX512; l <= Supported(); l++ {
		for i, got := range result(l) {
			if !(math.Abs(float64(got-want[i])) <= 1e-4) {
				t.Fatalf("%v, %s: number %d is %g, want %g", l, what, i, got, want[i])
			}
		}
	}
}
