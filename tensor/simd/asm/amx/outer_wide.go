package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
	"starling/tensor/simd/asm/lanes"
)

// Offsets of the fields of simd.OuterWide16.
const (
	wideA = 8 * iota
	wideB
	wideC
	wideRoom
	wideUnits
	wideTakeA
	wideBRow
	widePanels
	wideBack
	wideFrom
	wideLead
	wideAsk
	wideEnd
	wideTakenA
	wideKeptA
	wideOrder
	wideConfig = wideOrder + 64
)

// outerWide16 goes over units of 32 rows, in each over panels of 32 columns of B, which are tiles as they lie: one of the
// even rows, one of the odd. Of A each tile has columns twice, with zeros for the second or the first number of a pair.
// Meanwhile rows to come are asked for.
func outerWide16() {
	begin("outerWide16", frame.Field(wideConfig))
	a, b, c, brow, room, line := RSI, RDI, R8, R9, R10, RCX
	n, panels, tile, units, two, odd := R12, R13, R14, R15, RDX, RBX
	ahead := lanes.Across{Next: R11, End: frame.Field(wideEnd)}

	KMOVD(frame.Field(wideTakenA), K1)
	KMOVD(frame.Field(wideKeptA), K2)
	VMOVDQU16(frame.Field(wideOrder), Z31)
	MOVQ(U32(0xffff), n)
	VPBROADCASTD(n.As32(), Z30)
	frame.Get(wideA, a)
	frame.Get(wideB, b)
	frame.Get(wideBRow, brow)
	LEAQ(Mem{Base: brow, Index: brow, Scale: 1}, two)
	frame.Get(wideRoom, room)
	frame.Get(wideUnits, units)
	frame.Get(wideFrom, ahead.Next)
	MOVQ(U32(64), line)

	askSome := func(name string) {
		frame.Get(wideAsk, n)
		ahead.Fours(func(m Op) { PREFETCHT1(m) }, n, name)
	}
	Label("unit")
	MOVQ(b, n)
	ADDQ(frame.Field(wideLead), n)
	ahead.Until(n, odd)
	for q := range 8 {
		takeFour(a, K1, K2, Z31, zmm(q), frame.Field(wideTakeA))
	}
	for i, row := range transposePairs() {
		VPANDD(row, Z30, Z16)
		VPSLLD(Imm(16), row, Z17)
		VPSRLD(Imm(16), row, Z18)
		VPANDND(row, Z30, Z19)
		VMOVUPS(Z16, Mem{Base: room, Disp: 64 * i})
		VMOVUPS(Z17, Mem{Base: room, Disp: 64 * (8 + i)})
		VMOVUPS(Z18, Mem{Base: room, Disp: 64 * (16 + i)})
		VMOVUPS(Z19, Mem{Base: room, Disp: 64 * (24 + i)})
	}
	loadTileAt(6, room, line, 0)
	loadTileAt(7, room, line, 1024)
	frame.Get(wideC, c)
	MOVQ(b, tile)
	frame.Get(widePanels, panels)
	Label("panel")
	CMPQ(panels, Imm(1))
	JNE(LabelRef("whole"))
	SUBQ(frame.Field(wideBack), tile)
	Label("whole")
	LEAQ(Mem{Base: tile, Index: brow, Scale: 1}, odd)
	loadTile(0, c, line)
	loadTile(4, tile, two)
	multiply(0, 6, 4)
	askSome("first")
	loadTile(5, odd, two)
	multiply(0, 7, 5)
	storeTile(0, c, line)
	askSome("second")
	ADDQ(line, tile)
	ADDQ(U32(1024), c)
	DECQ(panels)
	JNZ(LabelRef("panel"))
	MOVQ(brow, n)
	SHLQ(Imm(5), n)
	ADDQ(n, b)
	SUBQ(Imm(1), units)
	JNZ(LabelRef("unit"))
	end()
}
