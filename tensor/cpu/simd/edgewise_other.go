//go:build !amd64

package simd

// eights is how many of n columns vectors do.
func eights(Level, int) int { return 0 }

func leakyDotFast(_, _, _ []float32, _ float32) float32      { panic("simd: no vectors") }
func leakyGradFast(_, _, _, _, _ []float32, _, _ float32)    { panic("simd: no vectors") }
func leakyBackFast(_, _, _, _, _ []float32, _, _, _ float32) { panic("simd: no vectors") }
func addScaledFast(_, _ []float32, _ float32)                { panic("simd: no vectors") }
func dotProductFast(_, _ []float32) float32                  { panic("simd: no vectors") }
func filmAddFast(_, _, _, _ []float32)                       { panic("simd: no vectors") }
func filmGradFast(_, _, _, _, _, _ []float32)                { panic("simd: no vectors") }
func filmBackFast(_, _, _, _, _ []float32, _ float32)        { panic("simd: no vectors") }
