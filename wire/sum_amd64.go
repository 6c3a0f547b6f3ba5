package wire

import "golang.org/x/sys/cpu"

var canFold = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VPCLMULQDQ

// fold reduces n bytes at p, a multiple of foldStep and at least twice that, to 64
// bytes with the same checksum, the initial inversion included.
//
//go:noescape
func fold(p *byte, n int, rest *[64]byte, by *[4]uint64)
