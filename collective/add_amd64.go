package collective

import "golang.org/x/sys/cpu"

var canStep = cpu.X86.HasAVX2

// addSteps32 is dst += src for 256 bytes of float32 numbers so many times, at least once.
//
//go:noescape
func addSteps32(dst, src *byte, steps int)

// addSteps64 is the same for float64 numbers.
//
//go:noescape
func addSteps64(dst, src *byte, steps int)
