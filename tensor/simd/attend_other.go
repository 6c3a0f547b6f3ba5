//go:build !amd64

package simd

func attendFast(Level, *Attention) bool            { return false }
func attendGradFast(Level, *AttentionGrad) bool    { return false }
func packAttentionFast(Level, *AttentionPack) bool { return false }
