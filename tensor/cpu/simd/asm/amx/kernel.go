package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// wholeTiles is the configuration of tiles of 16 rows of 64 bytes (see tileConfig).
func wholeTiles() Mem { return NewDataAddr(Symbol{Name: "tileConfig", Static: true}, 0) }

// begin starts a kernel with tiles of a configuration. It uses RBX.
func begin(name string, config Mem) {
	frame.Begin(name)
	LEAQ(config, RBX)
	loadConfig()
}

// inOrder does pieces of work one right after the other.
func inOrder(work []func()) {
	for _, do := range work {
		do()
	}
}
