package cpu

import (
	"fmt"
	"testing"
)

// BenchmarkDropout: rows in the second-level cache, so that what is computed counts, not memory. A half takes one bit a
// number, any other P sixteen.
func BenchmarkDropout(b *testing.B) {
	const numbers = 1 << 17
	c := New(1)
	defer c.Close()
	for _, typ := range []DType{F32, BF16} {
		for _, act := range []Act{ReLU, ELU} {
			for _, cols := range []int{7, 40, 64, 256} {
				for _, p := range []float32{0, 0.5, 0.6} {
					x, y := c.New(typ, numbers/cols, cols), c.New(typ, numbers/cols, cols)
					epi := Epilogue{Act: act, Bias: c.New(F32, 1, cols), Dropout: Dropout{P: p, Key: 3}}
					name := fmt.Sprintf("%v/act=%v/dim=%d/p=%g", typ, act, cols, p)
					b.Run("pass=forward/"+name, func(b *testing.B) {
						for b.Loop() {
							c.Activate(y, x, epi)
						}
					})
					b.Run("pass=back/"+name, func(b *testing.B) {
						epi.Bias = Matrix{}
						for b.Loop() {
							c.ActivateGrad(y, x, y, epi, Matrix{})
						}
					})
				}
			}
		}
	}
}
