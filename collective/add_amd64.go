package collective

import "golang.org/x/sys/cpu"

// canStep: there are instructions for adding and copying in steps of stepBytes.
var canStep = cpu.X86.HasAVX2

// addSteps32 is dst += src for n times stepBytes of float32 numbers, n at least 1.
//
//go:noescape
func addSteps32(dst, src *byte, steps int)

// addSteps64 is the same for float64 numbers.
//
//go:noescape
func addSteps64(dst, src *byte, steps int)
