package tensor

import (
	"slices"
	"testing"

	"starling/tensor/simd"
)

// TestFarOuterProducts: gradients of weights that are large enough for another way are the same by it, in whole numbers,
// whose sums are exact in any order.
func TestFarOuterProducts(t *testing.T) {
	c := NewCPU(2)
	defer c.Close()
	if c.level < simd.AVX512 {
		t.Skip("this processor has no AVX-512")
	}
	for _, cols := range []int{33, 40, 48} {
		for _, left := range []int{1, 7, 8} {
			a, b := c.New(F32, 5003, left), c.New(F32, 5003, cols)
			for i := range a.f32 {
				a.f32[i] = float32(i%7 - 3)
			}
			for i := range b.f32 {
				b.f32[i] = float32(i%11 - 5)
			}
			if outerFar(a, b) || !outerFar(Matrix{Rows: 1 << 20, Cols: left}, Matrix{Rows: 1 << 20, Cols: cols, stride: cols}) {
				t.Errorf("%d x %d: what is far is not a matter of size", left, cols)
			}
			got, want := c.New(F32, left, cols), c.New(F32, left, cols)
			c.tallTallOuterWide(got, a, b, MatMul{})
			c.tallTallOuter(want, a, b, MatMul{})
			if !slices.Equal(got.f32, want.f32) {
				t.Errorf("%d x %d: far sums differ", left, cols)
			}
		}
	}
}
