//go:build !amd64

package simd

func attendFast(Level, *Attention) bool                           { return false }
func attendGradFast(Level, *AttentionGrad) bool                   { return false }
func packAttentionFast(Level, *AttentionPack) bool                { return false }
func headDotFast(Level, *HeadDots) bool                           { return false }
func headDotGradFast(Level, *HeadDots) bool                       { return false }
func sumEntriesFast(Level, Strided, []int64, []float32, int) bool { return false }
