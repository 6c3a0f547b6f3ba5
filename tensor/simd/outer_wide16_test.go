package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestOuterWide16AgreesWithTwin(t *testing.T) {
	if Supported() < AMX {
		t.Skip("this processor has no AMX")
	}
	r := rand.New(rand.NewPCG(6, 17))
	for units := 1; units <= 3; units++ {
		for left := 1; left <= OuterLeft; left++ {
			for _, cols := range []int{32, 33, 40, 49, 64, 100, 256, 301} {
				gap := r.IntN(2) * 3
				// As long as it has to be, and of whole numbers, whose sums are exact in any order.
				a, b := wholes16(r, units*OuterUnit*left), wholes16(r, (units*OuterUnit-1)*(cols+gap)+cols)
				run := func(l Level) (sums []float32) {
					c := make([]float32, OuterWide16Sums(cols))
					for i := range c {
						c[i] = float32(i % 7)
					}
					outer := OuterWide16{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]), Units: units,
						BRow: 2 * (cols + gap), Left: left, Cols: cols, Room: make([]float32, OuterWide16Room)}
					outer.Run(l)
					for i := range left {
						for j := range cols {
							sums = append(sums, c[OuterWide16Place(i, j, cols)])
						}
					}
					return sums
				}
				if got, want := run(AMX), run(Generic); !slices.Equal(got, want) {
					t.Fatalf("%d units, %d x %d: %v, want %v", units, left, cols, got, want)
				}
			}
		}
	}
}
