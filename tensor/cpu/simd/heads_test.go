package simd

import (
	"math"
	"testing"

	"starling/tensor/bfloat"
)

// Scores of any number and width of heads, side by side or apart, equal the plain twin's
// to the last bit: sums of small whole
// numbers are exact in any order. What lies behind a row, and between those of scores, counts for nothing and stays.
func TestHeadDotOfAllShapes(t *testing.T) {
	const rows = 37
	nan := float32(math.NaN())
	for _, shape := range [][2]int{{1, 1}, {1, 300}, {2, 16}, {3, 8}, {3, 40}, {4, 4}, {4, 10}, {4, 64}, {6, 8}, {8, 8},
		{16, 11}, {16, 16}, {17, 5}, {40, 32}} {
		heads, width := shape[0], shape[1]
		cols := heads * width
		a := HeadDots{A: make([]float32, cols), Rows: rows, Heads: heads, Width: width}
		for i := range a.A {
			a.A[i] = float32(i%7) - 3
		}
		for _, bf16 := range []bool{false, true} {
			for _, gap := range []int{0, 3} {
				a.Z = Strided{F32: make([]float32, rows*(cols+gap)), Stride: cols + gap}
				for i := range a.Z.F32 {
					if a.Z.F32[i] = float32(i%5) - 2; i%(cols+gap) >= cols {
						a.Z.F32[i] = nan
					}
				}
				if bf16 {
					z := make([]uint16, len(a.Z.F32))
					for i, x := range a.Z.F32 {
						z[i] = bfloat.Round(x)
					}
					a.Z.F32, a.Z.B16 = nil, z
				}
				run := func(level Level) []float32 {
					a.Score = Strided{F32: make([]float32, rows*(heads+gap)), Stride: heads + gap}
					for i := range a.Score.F32 {
						a.Score.F32[i] = -1
					}
					HeadDot(level, &a)
					return a.Score.F32
				}
				want := run(Generic)
				for level := AVX2; level <= Supported(); level++ {
					for i, x := range run(level) {
						if x != want[i] {
							t.Fatalf("%v, %d heads of %d, bf16 %v, gap %d: number %d is %g, want %g", level, heads,
								width, bf16, gap, i, x, want[i])
						}
					}
				}
			}
		}
	}
}
