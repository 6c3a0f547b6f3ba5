package simd

import (
	"math"
	"testing"
	"unsafe"

	"starling/tensor/bfloat"
)

// TestELUKeepsSmallNumbers: stored as bfloat16, e^x - 1 is right to that type's 2^-8 of itself and a
// little, from numbers near zero to where it is -1.
func TestELUKeepsSmallNumbers(t *testing.T) {
	var x []float32
	for v := 1e-30; v < 200; v *= 1.01 {
		x = append(x, float32(-v))
	}
	inf := float32(math.Inf(1))
	x = append(x, 0, 1, 3e38, inf, -3e38, -inf, float32(math.NaN()))
	src, dst := aligned[float32](len(x)), aligned[uint16](len(x))
	copy(src, x)
	for level := Generic; level <= Supported(); level++ {
		m := Map{
			Dst: Block{Data: unsafe.Pointer(&dst[0]), BF16: true}, Src: Block{Data: unsafe.Pointer(&src[0])},
			Rows: 1, Cols: len(x), Act: ELU,
		}
		m.Run(level)
		for i, v := range x {
			got, want := float64(bfloat.Widen(dst[i])), float64(activate(ELU, v))
			same := got == want || math.IsNaN(got) && math.IsNaN(want)
			if !same && !(math.Abs(got-want) <= (1./256+1.5e-4)*math.Abs(want)) {
				t.Errorf("%v: %g becomes %g, want %g", level, v, got, want)
			}
		}
	}
}
