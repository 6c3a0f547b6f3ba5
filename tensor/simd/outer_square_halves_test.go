package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestOuterSquareHalvesAgreesWithTwin(t *testing.T) {
	if Supported() < AMXFP16 {
		t.Skip("this processor has no tiles of half precision")
	}
	r := rand.New(rand.NewPCG(40, 8))
	for i, left := range []int{25, 28, 33, 37, 40, 47, 48} {
		for j, cols := range []int{33, 40, 41, 48} {
			units, arow, brow, crow := 1+(i+j)%3, left+j%3, cols+i%3, OuterSquareSums(cols)
			// As long as it has to be: nothing past the last number is read.
			a, b := randomSingles(r, (units*OuterUnit-1)*arow+left), randomSingles(r, (units*OuterUnit-1)*brow+cols)
			run := func(l Level) ([]float32, bool) {
				c := make([]float32, left*crow)
				for i := range c {
					c[i] = float32(i % 7)
				}
				step := &OuterSquareHalves{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]), Units: units,
					ARow: 4 * arow, BRow: 4 * brow, CRow: 4 * crow, Left: left, Cols: cols, Room: make([]float32, OuterSquareHalvesRoom)}
				step.Start()
				step.Scale(l, OuterUnit-1)
				return c, step.Run(l)
			}
			got, fine := run(AMXFP16)
			want, _ := run(Generic)
			for i := range got {
				if !(math.Abs(float64(got[i]-want[i])) <= 1e-4) || !fine {
					t.Fatalf("%d units, %d x %d: number (%d,%d) is %g, want %g", units, left, cols, i/crow, i%crow, got[i], want[i])
				}
			}
			// The last number of a side, of which no scale was taken, is too large.
			for _, side := range [][]float32{a, b} {
				last := side[len(side)-1]
				side[len(side)-1] = 1e6
				got, fine := run(AMXFP16)
				want, twin := run(Generic)
				if fine || twin || !slices.Equal(got, want) {
					t.Fatalf("%d units, %d x %d: a number too large is fine: %v, twin %v", units, left, cols, fine, twin)
				}
				side[len(side)-1] = last
			}
		}
	}
}
