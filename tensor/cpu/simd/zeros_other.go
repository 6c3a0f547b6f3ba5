//go:build !amd64

package simd

func notZero32Fast(_ []uint32, _ []uint32)         { panic("simd: no vectors") }
func notZero16Fast(_ []uint32, _ []uint16)         { panic("simd: no vectors") }
func compress32Fast(_, _ []uint32, _ []uint32) int { panic("simd: no vectors") }
func compress16Fast(_, _ []uint16, _ []uint32) int { panic("simd: no vectors") }
func expand32Fast(_, _ []uint32, _ []uint32) int   { panic("simd: no vectors") }
func expand16Fast(_, _ []uint16, _ []uint32) int   { panic("simd: no vectors") }
