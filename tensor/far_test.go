package tensor

import (
	"math/rand/v2"
	"testing"
)

// TestFarKernels: what is asked for and written past the caches, which only large matrices are, is checked as all small ones
// are. Loops for these are others, of which a few large shapes would tell little.
func TestFarKernels(t *testing.T) {
	near, result := streamBytes, farResult
	streamBytes, farResult = 1, 1
	defer func() { streamBytes, farResult = near, result }()
	for _, kernel := range []struct {
		name string
		test func(*testing.T)
	}{
		{"products", TestMatMulRandomSizes},
		{"results without gaps", testFarWidths},
		{"activations", TestActivateAndItsGradient},
		{"copies", TestCopyCombineDotFinite},
		{"batch norm", TestBatchNorm},
		{"layer norm", TestLayerNorm},
		{"losses", TestCrossEntropySoftmaxArgmax},
		{"bce", TestBCE},
		{"sums over neighbours", TestAggregate},
		{"attention", TestAttention},
	} {
		t.Run(kernel.name, kernel.test)
	}
}

// testFarWidths has every width that fills a vector, a tile or a byte, and its neighbours, with rows as training has them.
func testFarWidths(t *testing.T) {
	widths := []int{1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 47, 48, 49, 64, 100, 128, 255, 256, 257}
	for _, level := range levels() {
		t.Run(level.String(), func(t *testing.T) {
			c := NewCPULevel(2, level)
			defer c.Close()
			r := rand.New(rand.NewPCG(4, uint64(level)))
			for i, k := range widths {
				for j, n := range widths {
					if testing.Short() && (i+j)%8 > 0 {
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
