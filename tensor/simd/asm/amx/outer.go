package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// Offsets of the fields of simd.OuterHalves.
const (
	fieldOuterA = 8 * iota
	fieldOuterB
	fieldOuterC
	fieldOuterScale
	fieldOuterBackA
	fieldOuterBackB
	fieldOuterRoom
	fieldOuterSpoilt
	fieldOuterBRow
	fieldOuterBlocks
	fieldOuterCols
	fieldOuterAhead
	fieldOuterAheadApart
	fieldOuterConfig
)

// Sizes of simd.OuterHalves' panels of A and of its room: there the upper halves of a panel of B, a tile each 32 rows, are
// followed by the lower ones, and two panels by sums.
const (
	outerBlocks = 2 // simd.OuterHalvesDepth rows
	outerPanel  = outerBlocks * halfBlockBytes
	outerHalf   = outerBlocks * tileBytes
	outerSums   = 2 * 2 * outerHalf
)

// outerAsks is how many lines are asked for with a block: 32 rows by 16 columns of B are as many.
const outerAsks = 32

// outerHalves goes over panels of 16 columns of B, in each over blocks of 32 rows, with sums in three tiles. While a
// block of one panel is multiplied, the block of the next panel that has the same rows is halved, between the tile
// instructions: either alone takes about as long. There sums of the panel before are scaled and added to C, too, half of
// them with each block.
func outerHalves() {
	begin("outerHalves", frame.Field(fieldOuterConfig))
	p := newOuterPanels()
	p.nextToHalve("firstLanes")
	p.halveFirst()

	Label("panel")
	p.nextToMultiply()
	SUBQ(Imm(16), p.cols)
	JLE(LabelRef("last"))
	p.nextToHalve("lanes")
	p.toLate()
	p.blocks("depth", p.halvingAndScaling())
	JMP(LabelRef("finish"))
	Label("last")
	p.toLate()
	p.blocks("lastDepth", p.late.rows())

	// What blocks have left, of less than two.
	Label("finish")
	MOVQ(U32(outerBlocks), p.k)
	SUBQ(frame.Field(fieldOuterBlocks), p.k)
	JEQ(LabelRef("store"))
	Label("rest")
	inOrder(p.late.rows())
	DECQ(p.k)
	JNZ(LabelRef("rest"))
	Label("store")
	MOVQ(p.panelC, p.tmp)
	TESTQ(p.tmp, p.tmp)
	JEQ(LabelRef("end"))
	p.storeSums()
	p.findSpoilt()
	CMPQ(p.cols, Imm(0))
	JG(LabelRef("panel"))
	MOVQ(U32(0), p.panelC) // the last sums, and no more
	p.toLate()
	MOVQ(U32(outerBlocks), p.k)
	JMP(LabelRef("rest"))
	Label("end")
	end()
}

// outerPanels is where outerHalves stands. K1 is the lanes of the panel that is halved, K2 those of C that are added to.
type outerPanels struct {
	a, b, line     GPPhysical // blocks that are multiplied, and how far their lines are apart
	s, row, to     GPPhysical // rows of B that are halved, how far they are apart, and where halves go
	ahead, ask     GPPhysical // what is asked for with a block, and next
	apart, k, tmp  GPPhysical
	late           outerLate
	here, there    Mem // rooms of the panel that is multiplied, and of the next
	panelB, panelC Mem
	scaleB, backB  Mem
	lateC          Mem
	cols, spoilt   Mem // columns that are left, and bits of those that are spoilt
}

func newOuterPanels() outerPanels {
	p := outerPanels{a: RSI, b: RDI, line: RCX, s: R9, row: R10, to: R11, ahead: R12, ask: RDX, apart: R14, k: R13, tmp: RBX,
		late: outerLate{sums: R15, back: R8, c: RBX}}
	frame.Locals(&p.here, &p.there, &p.panelB, &p.panelC, &p.scaleB, &p.backB, &p.lateC, &p.cols, &p.spoilt)
	frame.Keep(fieldOuterB, p.tmp, p.panelB)
	frame.Keep(fieldOuterC, p.tmp, p.panelC)
	MOVQ(p.tmp, p.lateC) // not yet: no lanes
	KXORW(K2, K2, K2)
	frame.Keep(fieldOuterScale, p.tmp, p.scaleB)
	frame.Keep(fieldOuterBackB, p.tmp, p.backB)
	frame.Keep(fieldOuterRoom, p.tmp, p.there)
	ADDQ(U32(2*outerHalf), p.tmp)
	MOVQ(p.tmp, p.here)
	frame.Keep(fieldOuterCols, p.tmp, p.cols)
	frame.Keep(fieldOuterSpoilt, p.tmp, p.spoilt)
	frame.Get(fieldOuterBRow, p.row)
	frame.Get(fieldOuterAhead, p.ahead)
	frame.Get(fieldOuterAheadApart, p.apart)
	MOVQ(U32(64), p.line)
	VMOVUPS(NewDataAddr(Symbol{Name: "sideBySide", Static: true}, 0), sideBySide)
	return p
}

// nextToHalve goes to the next panel to be halved.
func (p outerPanels) nextToHalve(label string) {
	MOVQ(I32(-1), p.tmp)
	MOVQ(p.cols, p.s)
	CMPQ(p.s, Imm(16))
	JGE(LabelRef(label))
	BZHIQ(p.s, p.tmp, p.tmp)
	Label(label)
	KMOVW(p.tmp.As32(), K1)
	MOVQ(p.panelB, p.s)
	MOVQ(p.scaleB, p.tmp)
	VMOVUPS(Mem{Base: p.tmp}, outerScale)
	ADDQ(Imm(64), p.panelB)
	ADDQ(Imm(64), p.scaleB)
	MOVQ(p.there, p.to)
}

// halveFirst halves the first panel, with which nothing is multiplied yet.
func (p outerPanels) halveFirst() {
	frame.Get(fieldOuterBlocks, p.k)
	SHLQ(Imm(4), p.k) // pairs of rows
	Label("ahead")
	inOrder(p.pair(0))
	ADDQ(Imm(64), p.to)
	DECQ(p.k)
	JNZ(LabelRef("ahead"))
}

// pair is the instructions that halve two rows of a panel, into line r of tiles, moving s below them.
func (p outerPanels) pair(r int) []func() {
	below := func() { LEAQ(Mem{Base: p.s, Index: p.row, Scale: 2}, p.s) }
	return append(halvePair(Mem{Base: p.s}, Mem{Base: p.s, Index: p.row, Scale: 1}, K1, K1, outerScale,
		Mem{Base: p.to, Disp: 64 * r}, Mem{Base: p.to, Disp: outerHalf + 64*r}, zmms[r%4*6:]), below)
}

// nextToMultiply goes to the panel that was halved last, whose room the next one leaves to it.
func (p outerPanels) nextToMultiply() {
	MOVQ(p.there, p.tmp)
	MOVQ(p.here, p.b)
	MOVQ(p.tmp, p.here)
	MOVQ(p.b, p.there)
	MOVQ(p.tmp, p.b)
	frame.Get(fieldOuterA, p.a)
	frame.Get(fieldOuterBlocks, p.k)
	for i := range 3 {
		zeroTile(i)
	}
}

// toLate goes to the first of the sums that are in the room.
func (p outerPanels) toLate() {
	frame.Get(fieldOuterRoom, p.late.sums)
	frame.Get(fieldOuterBackA, p.late.back)
	MOVQ(p.lateC, p.late.c)
}

// halvingAndScaling is what is done beside a block: scaling comes a quarter of a block behind the tiles' stores.
func (p outerPanels) halvingAndScaling() (work []func()) {
	scaling := p.late.rows()
	for r := range 16 {
		work = append(work, p.pair(r)...)
		if n := 4 * outerLateRows / 12; r >= 4 {
			work = append(work, scaling[:n]...)
			scaling = scaling[n:]
		}
	}
	return append(work, scaling...)
}

// blocks multiplies the blocks of a panel, with some work beside each.
func (p outerPanels) blocks(label string, work []func()) {
	Label(label)
	MOVQ(p.ahead, p.ask)
	g := gaps{left: 17, lines: outerAsks, place: p.ask, apart: p.apart, work: work} // eight loads, nine products
	left := func(half int) {
		for i, disp := range []int{0, tileBytes, outerPanel} {
			loadTileAt(3+i, p.a, p.line, half*halfBytes+disp)
			g.fill()
		}
	}
	right := func(tile, half int) {
		loadTileAt(tile, p.b, p.line, half*outerHalf)
		g.fill()
	}
	times := func(right int) {
		for i := range 3 {
			multiplyHalves(i, 3+i, right)
			g.fill()
		}
	}
	left(0)
	right(7, 1)
	times(7)
	right(6, 0)
	times(6)
	left(1)
	times(6)
	ADDQ(U32(128), p.ahead)
	ADDQ(U32(halfBlockBytes), p.a)
	ADDQ(U32(tileBytes), p.b)
	ADDQ(U32(tileBytes), p.to)
	DECQ(p.k)
	JNZ(LabelRef(label))
}

// storeSums leaves the sums of a panel in the room, where they wait until the next one is multiplied.
func (p outerPanels) storeSums() {
	MOVQ(p.tmp, p.lateC)
	ADDQ(U32(outerRows*64), p.panelC)
	MOVQ(p.backB, p.tmp)
	VMOVUPS(Mem{Base: p.tmp}, outerBack)
	ADDQ(Imm(64), p.backB)
	frame.Get(fieldOuterRoom, p.a)
	for i := range 3 {
		storeTileAt(i, p.a, p.line, outerSums+i*tileBytes)
	}
}

// findSpoilt says which columns of those sums are spoilt, and keeps the panel from C if any is. A number of B that was too
// large makes sums of its column infinite or NaN, whatever A's are: one row shows it.
func (p outerPanels) findSpoilt() {
	KXNORW(K2, K2, K2)
	MOVQ(p.spoilt, p.s)
	TESTQ(p.s, p.s)
	JEQ(LabelRef("clean"))
	ADDQ(Imm(2), p.spoilt)
	VMOVUPS(Mem{Base: p.a, Disp: outerSums}, Z0)
	VSUBPS(Z0, Z0, Z0) // NaN of both
	VCMPPS(Imm(3), Z0, Z0, K3)
	KMOVW(K3, Mem{Base: p.s})
	KORTESTW(K3, K3)
	JEQ(LabelRef("clean"))
	KXORW(K2, K2, K2)
	Label("clean")
}

// outerRows is how many rows C has, and outerLateRows how many of them are added to with a block.
const (
	outerRows     = 48
	outerLateRows = outerRows / outerBlocks
)

// outerLate is the panel whose sums are in the room: where these are, what takes A's scales back, and its place in C.
type outerLate struct{ sums, back, c GPPhysical }

// rows is the instructions that scale some rows and add them to those lanes of C that are in K2, all or none.
func (l outerLate) rows() (do []func()) {
	for r := range outerLateRows {
		z := []VecPhysical{Z24, Z25, Z28, Z29}[r%4]
		c := Mem{Base: l.c, Disp: 64 * r}
		do = append(do,
			func() { VMOVUPS(Mem{Base: l.sums, Disp: outerSums + 64*r}, z) },
			func() { VMULPS_BCST(Mem{Base: l.back, Disp: 4 * r}, z, z) },
			func() { VFMADD213PS(c, outerBack, z) },
			func() { VMOVUPS(z, K2, c) })
	}
	return append(do,
		func() { ADDQ(U32(64*outerLateRows), l.sums) },
		func() { ADDQ(U32(4*outerLateRows), l.back) },
		func() { ADDQ(U32(64*outerLateRows), l.c) })
}

// outerScale is what a panel's columns are multiplied with, outerBack what takes that back from the panel before.
var outerScale, outerBack = Z31, Z26

// columnScales finds what columns are multiplied with, and what takes that back. Rows are read in order, many columns at
// once.
func columnScales() {
	scale, back, src, rows, cols, stride, headroom := RDI, R9, RSI, RDX, RCX, R8, R12
	frame.Func("columnScales512", "func(scale, back, src *byte, rows, cols, stride, headroom int)", scale, back, src, rows, cols, stride, headroom)
	s, n, tmp := R10, R11, RAX
	loadHalfConstants(EAX)
	VPBROADCASTD(headroom.As32(), Z0)
	VPSUBD(Z0, scaleTop, scaleTop)
	VPSUBD(Z0, scaleDown, scaleDown)
	// group is so many vectors of columns.
	group := func(name string, vectors int) {
		MOVQ(src, s)
		MOVQ(rows, n)
		for v := range vectors {
			VPXORD(zmm(v), zmm(v), zmm(v))
		}
		Label(name)
		for v := range vectors {
			x := zmm(16 + v%8)
			VPANDD_Z(Mem{Base: s, Disp: 64 * v}, absolute, K1, x)
			VPMAXUD(x, zmm(v), zmm(v))
		}
		ADDQ(stride, s)
		DECQ(n)
		JNZ(LabelRef(name))
		for v := range vectors {
			VPTESTMD(zmm(v), zmm(v), K2)
			scales(zmm(v), zmm(16))
			VMOVUPS(zmm(v), K2, Mem{Base: scale, Disp: 64 * v})
			VMOVUPS(zmm(16), K2, Mem{Base: back, Disp: 64 * v})
		}
		for _, at := range []GPPhysical{src, scale, back} {
			ADDQ(U32(uint32(64*vectors)), at)
		}
		SUBQ(U32(uint32(16*vectors)), cols)
	}
	MOVQ(I32(-1), tmp)
	KMOVW(tmp.As32(), K1)
	for _, vectors := range []int{16, 4, 1} {
		name := fmt.Sprintf("columns%d", vectors)
		Label(name)
		CMPQ(cols, U32(uint32(16*vectors)))
		JLT(LabelRef(name + "Done"))
		group(name+"Rows", vectors)
		JMP(LabelRef(name))
		Label(name + "Done")
	}
	TESTQ(cols, cols)
	JEQ(LabelRef("end"))
	MOVQ(I32(-1), tmp)
	BZHIQ(cols, tmp, tmp)
	KMOVW(tmp.As32(), K1)
	group("last", 1)
	Label("end")
	VZEROUPPER()
	RET()
}
