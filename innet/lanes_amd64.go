package innet

import "golang.org/x/sys/cpu"

// canAddUnits: there are instructions for adding units of lanes.
var canAddUnits = cpu.X86.HasAVX2

// addUnits is a += b for n units of lanes, n at least 1. It reports whether a lane overflowed.
//
//go:noescape
func addUnits(a, b *int32, n int) (over bool)

// prefetchUnits brings n units of lanes into the cache.
//
//go:noescape
func prefetchUnits(a *int32, n int)

// quantiseFours writes x·scale, rounded to even, for 4n numbers, n at least 1. They fit.
//
//go:noescape
func quantiseFours(lanes *int32, x *float64, scale float64, n int)

// numberFours writes lanes·scale for 4n lanes, n at least 1.
//
//go:noescape
func numberFours(x *float64, lanes *int32, scale float64, n int)
