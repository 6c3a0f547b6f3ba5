package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestOuterWideAgreesWithTwin(t *testing.T) {
	if Supported() < AVX512 {
		t.Skip("this processor has no AVX-512")
	}
	r := rand.New(rand.NewPCG(6, 18))
	for _, rows := range []int{1, 2, 3, 4, 6, 11} {
		for left := 1; left <= OuterLeft; left++ {
			for _, cols := range []int{1, 15, 16, 49, 64, 100, 256} {
				gap := r.IntN(2) * 3
				// As long as it has to be, and of whole numbers, whose sums are exact in any order.
				a, b := wholes(r, (rows-1)*(left+gap)+left), wholes(r, (rows-1)*(cols+gap)+cols)
				run := func(l Level) (sums []float32) {
					c := wholes(rand.New(rand.NewPCG(1, 1)), OuterWideSums(cols))
					outer := OuterWide{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]), Rows: rows,
						ARow: 4 * (left + gap), BRow: 4 * (cols + gap), Left: left, Cols: cols}
					outer.Run(l)
					for i := range left {
						for j := range cols {
							sums = append(sums, c[OuterWidePlace(i, j)])
						}
					}
					return sums
				}
				if got, want := run(AVX512), run(Generic); !slices.Equal(got, want) {
					t.Fatalf("%d rows, %d x %d: %v, want %v", rows, left, cols, got, want)
				}
			}
		}
	}
}

// wholes are n whole numbers from -8 to 8.
func wholes(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(17) - 8)
	}
	return x
}
