package dataset

import "golang.org/x/sys/cpu"

// canPlain tells whether unpackPlain runs here.
var canPlain = cpu.X86.HasBMI1 && cpu.X86.HasBMI2

// unpackPlain does what run does until an entry is special, next has reached limit or
// filled has reached room. REQUIRES: a whole history is there.
//
//go:noescape
func unpackPlain(f *inflate, limit, room int)
