// Package bfloat converts between float32 and bfloat16, the upper half of a float32, which is
// kept as uint16.
package bfloat

import "math"

// Round is the nearest bfloat16, ties to even. NaN stays NaN.
func Round(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// Widen is a bfloat16 as float32.
func Widen(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }
