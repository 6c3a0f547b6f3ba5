package tensor

import (
	"testing"

	"starling/tensor/simd"
)

// TestMultiply compares all types with the product of each place, also in place,
// on a view with gaps, and on nothing.
func TestMultiply(t *testing.T) {
	cpu, ref := NewCPU(2), NewRef()
	defer cpu.Close()
	for _, size := range [][2]int{{0, 3}, {1, 1}, {5, 7}, {300, 33}} {
		rows, cols := size[0], size[1]
		x, y := make([]float64, rows*cols), make([]float64, rows*cols)
		for i := range x {
			x[i], y[i] = float64(i%17)/4-2, float64(i%13)/8-0.5
		}
		multiplied := func(dev Device, kind DType) []float64 {
			wide := dev.New(kind, rows, cols+2)
			a, b := wide.Columns(1, cols+1), dev.New(kind, rows, cols)
			dev.Upload(a, x)
			dev.Upload(b, y)
			dev.Multiply(b, a, b)
			out := make([]float64, rows*cols)
			dev.Download(out, b)
			return out
		}
		for kind, got := range map[DType][]float64{F32: multiplied(cpu, F32), BF16: multiplied(cpu, BF16), F64: multiplied(ref, F64)} {
			for i, z := range got {
				want := x[i] * y[i]
				if kind == BF16 {
					want = float64(simd.FromBF16(simd.ToBF16(float32(want))))
				}
				if z != want {
					t.Fatalf("%v, %dx%d: place %d is %g, want %g", kind, rows, cols, i, z, want)
				}
			}
		}
	}
}
