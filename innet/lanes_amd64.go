package innet

import "golang.org/x/sys/cpu"

// canAddUnits: there are instructions for adding units of lanes.
var canAddUnits = cpu.X86.HasAVX2

// addUnits is a += b for n units of lanes, n at least 1. It reports whether a lane overflowed.
//
//go:noescape
func addUnits(a, b *int32, n int) (over bool)
