package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestOuter16AgreesWithTwin(t *testing.T) {
	if Supported() < AMX {
		t.Skip("this processor has no AMX")
	}
	r := rand.New(rand.NewPCG(6, 16))
	for units := 1; units <= 4; units++ {
		for left := 1; left <= OuterLeft; left++ {
			for _, cols := range []int{1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 40, 48} {
				// As long as it has to be, and of whole numbers, whose sums are exact in any order.
				a, b := wholes16(r, units*OuterUnit*left), wholes16(r, units*OuterUnit*cols)
				for add := range 2 {
					run := func(l Level) []float32 {
						c := make([]float32, left*(cols+3)+8)
						for i := range c {
							c[i] = float32(i % 7)
						}
						outer := Outer16{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]), Units: units,
							CRow: 4 * (cols + 3), Add: add, Left: left, Cols: cols, Room: make([]float32, OuterRoom)}
						outer.Run(l)
						return c
					}
					if got, want := run(AMX), run(Generic); !slices.Equal(got, want) {
						t.Fatalf("%d units, %d x %d, add %d: %v, want %v", units, left, cols, add, got, want)
					}
				}
			}
		}
	}
}

// wholes16 are n whole numbers from -8 to 8.
func wholes16(r *rand.Rand, n int) []uint16 {
	x := make([]uint16, n)
	for i := range x {
		x[i] = ToBF16(float32(r.IntN(17) - 8))
	}
	return x
}
