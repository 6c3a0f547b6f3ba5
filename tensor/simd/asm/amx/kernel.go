package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// wholeTiles is the configuration of tiles of 16 rows of 64 bytes (see tileConfig).
func wholeTiles() Mem { return NewDataAddr(Symbol{Name: "tileConfig", Static: true}, 0) }

// begin starts a kernel with tiles of a configuration. It uses RBX.
func begin(name string, config Mem) {
	frame.Begin(name)
	LEAQ(config, RBX)
	loadConfig()
}

// end gives the tiles back and returns.
func end() {
	releaseTiles()
	VZEROUPPER()
	RET()
}

// inOrder does pieces of work one right after the other.
func inOrder(work []func()) {
	for _, do := range work {
		do()
	}
}

// gaps are those between tile instructions, in which lines are asked for (see askLine) and other work is done.
type gaps struct {
	left         int // gaps
	lines, asked int
	place, apart GPPhysical
	work         []func()
	most         int // pieces of work a gap; 0: evenly
}

// fill does what one gap has room for.
func (g *gaps) fill() {
	for range (g.lines - g.asked + g.left - 1) / g.left {
		askLine(g.place, g.apart, &g.asked)
	}
	some := (len(g.work) + g.left - 1) / g.left
	if g.most > 0 {
		some = min(g.most, len(g.work))
	}
	inOrder(g.work[:some])
	g.work = g.work[some:]
	g.left--
}
