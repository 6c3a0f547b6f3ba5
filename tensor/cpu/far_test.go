package cpu

import (
	"math/rand/v2"
	"testing"

	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/tensor/devicetest"
)

// TestFarKernels: prefetches and non-temporal stores, which only large matrices have, are
// checked as all small ones are. Loops for these are others, of which a few large shapes
// would tell little.
func TestFarKernels(t *testing.T) {
	if simd.Supported() == simd.Generic {
		t.Skip("the loops in Go have no prefetches and no such stores")
	}
	farFrom(t, 1)
	for _, level := range levels() {
		if level == simd.Generic || level == simd.AMX && simd.Supported() > level {
			continue // it runs the loops of other levels
		}
		t.Run(level.String(), func(t *testing.T) {
			devicetest.Run(t, func() tensor.Device { return newLevel(2, level) })
		})
	}
	t.Run("results without gaps", testFarWidths)
	t.Run("attention", TestAttention)
}

// farFrom has results of this number of bytes count as far from the processor, until the test ends.
func farFrom(t *testing.T, bytes int) {
	near, result := streamBytes, farResult
	streamBytes, farResult = int64(bytes), bytes
	t.Cleanup(func() { streamBytes, farResult = near, result })
}

// testFarWidths has every width that fills a vector, a tile or a byte, and its neighbours, with
// rows as training has them.
func testFarWidths(t *testing.T) {
	widths := []int{1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 47, 48, 49, 64, 100, 128, 255, 256, 257}
	every := 3 // widths with each width, of either type and either way round
	if testing.Short() {
		every = 8
	}
	for _, level := range levels() {
		t.Run(level.String(), func(t *testing.T) {
			c := newLevel(2, level)
			defer c.Close()
			r := rand.New(rand.NewPCG(4, uint64(level)))
			for i, k := range widths {
				for j, n := range widths {
					if (i+j)%every > 0 {
						continue
					}
					types := typeCases[(i+j)%2]
					dst, a, b := randomProduct(c, r, 65+(i+j)%3*16, k, n, MatMul{TransB: j%2 == 0}, types, false)
					checkProduct(t, c, dst, a, b, MatMul{TransB: j%2 == 0})
					dst, a, b = randomProduct(c, r, k, 67, n, MatMul{TransA: true}, types, false)
					checkProduct(t, c, dst, a, b, MatMul{TransA: true})
				}
			}
		})
	}
}
