package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// Offsets of the fields of simd.tiles16.
const (
	fieldA = 8 * iota
	fieldB
	fieldC
	fieldARow
	fieldCRow
	fieldBlocks
	fieldLast
	fieldRows
	fieldPanels
	fieldAdd
	fieldAhead
	fieldAheadEnd
	fieldThen
	fieldAheadStep
	fieldConfig
)

// product goes over panels of so many tiles' columns, in each over blocks of so many strips of 16 rows, in
// each over depth: tiles of A, alternately in 4 and 5, and of B, in the last, make three or four
// of C, which stay in the first.
// Tiles hold nothing between calls: the state is given back at the end, so that a
// goroutine may move to another thread.
func product(name string, strips, wide int) {
	begin(name, frame.Field(fieldConfig))
	p := newProduct16(strips, wide)
	Label("panel")
	frame.Get(fieldRows, p.rows)
	frame.Keep(fieldA, p.a, p.blockA)
	MOVQ(p.panelC, p.c)
	Label("rows")
	MOVQ(p.panelB, p.b)
	p.start()
	frame.Get(fieldBlocks, p.k)
	Label("depth")
	p.multiply()
	p.ask()
	ADDQ(Imm(64), p.a)
	ADDQ(U32(2048), p.b)
	DECQ(p.k)
	JEQ(LabelRef("store"))
	frame.Compare(p.k, Imm(1), JNE, "depth")
	ADDQ(frame.Field(fieldLast), p.a)
	JMP(LabelRef("depth"))

	Label("store")
	p.sums(storeTileAt)
	MOVQ(p.at, p.c) // it stands below the block
	MOVQ(p.blockA, p.a)
	LEAQ(Mem{Base: p.a, Index: p.astrip, Scale: uint8(strips)}, p.a)
	MOVQ(p.a, p.blockA)
	frame.Next(p.rows, "rows")

	// The next panel: b stands behind this one.
	MOVQ(p.b, p.panelB)
	ADDQ(U32(64*uint32(wide)), p.panelC)
	frame.Next(p.panels, "panel")
	MOVQ(p.ahead, frame.Field(fieldAhead))
	releaseTiles()
	RET()
}

// product16 is where product stands.
type product16 struct {
	strips, wide                   int
	a, arow, astrip                GPPhysical // how far rows and strips are apart
	b, line                        GPPhysical
	c, crow, at                    GPPhysical
	k, rows, panels, ahead, n      GPPhysical
	panelB, panelC, blockA, cstrip Mem // where the panel begins, in B and in C, and the block of rows in A
}

func newProduct16(strips, wide int) product16 {
	p := product16{strips: strips, wide: wide, a: RSI, arow: RDX, astrip: RDI, b: RBX, line: RCX, c: R8, crow: R9,
		at: R10,
		k:  R11, rows: R12, panels: R13, ahead: R15, n: R14}
	frame.Locals(&p.panelB, &p.panelC, &p.blockA, &p.cstrip)
	frame.Keep(fieldB, p.b, p.panelB)
	frame.Keep(fieldC, p.c, p.panelC)
	frame.Get(fieldARow, p.arow)
	MOVQ(p.arow, p.astrip)
	SHLQ(Imm(4), p.astrip)
	frame.Get(fieldCRow, p.crow)
	MOVQ(p.crow, p.at)
	SHLQ(Imm(4), p.at)
	MOVQ(p.at, p.cstrip)
	frame.Get(fieldPanels, p.panels)
	frame.Get(fieldAhead, p.ahead)
	MOVQ(U32(64), p.line)
	return p
}

// sums loads or stores the tiles of C, and leaves at below them.
func (p product16) sums(do func(tile int, base, stride GPPhysical, disp int)) {
	MOVQ(p.c, p.at)
	for i := range p.strips {
		for j := range p.wide {
			do(i*p.wide+j, p.at, p.crow, 64*j)
		}
		ADDQ(p.cstrip, p.at)
	}
}

// start fills the tiles of C.
func (p product16) start() {
	frame.Compare(frame.Field(fieldAdd), Imm(0), JEQ, "zero")
	p.sums(loadTileAt)
	JMP(LabelRef("sum"))
	Label("zero")
	for i := range p.strips * p.wide {
		zeroTile(i)
	}
	Label("sum")
}

// multiply is one step of depth.
func (p product16) multiply() {
	MOVQ(p.a, p.at)
	for i := range p.strips {
		left := 4 + i&1
		loadTile(left, p.at, p.arow)
		nothing(apart)
		for j := range p.wide {
			right := 8 - p.wide + j
			if i == 0 {
				p.loadB(right, j)
				nothing(apart)
			}
			multiply(i*p.wide+j, left, right)
			nothing(apart)
		}
		ADDQ(p.astrip, p.at)
	}
}

// loadB loads tile j of a block of B: the third is in the next panel.
func (p product16) loadB(tile, j int) {
	if j < 2 {
		loadTileAt(tile, p.b, p.line, 1024*j)
		return
	}
	frame.Get(fieldBlocks, p.n)
	SHLQ(Imm(11), p.n)
	ADDQ(p.b, p.n)
	loadTile(tile, p.n, p.line)
}

// ask asks for as many lines as a step should, of one place and then of another.
func (p product16) ask() {
	frame.Get(fieldAheadStep, p.n)
	frame.Test(p.n, p.n, JEQ, "asked")
	Label("ask")
	for i := range 4 {
		PREFETCHT1(Mem{Base: p.ahead, Disp: 64 * i})
	}
	ADDQ(U32(256), p.ahead)
	frame.Compare(p.ahead, frame.Field(fieldAheadEnd), JNE, "more")
	frame.Get(fieldThen, p.ahead)
	Label("more")
	SUBQ(U32(256), p.n)
	JNZ(LabelRef("ask"))
	Label("asked")
}
