package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
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
	fieldOuterAPanel
	fieldOuterBRow
	fieldOuterCRow
	fieldOuterBlocks
	fieldOuterRows
	fieldOuterCols
	fieldOuterAdd
	fieldOuterAhead
	fieldOuterAheadApart
	fieldOuterConfig
)

// Sizes of simd.OuterHalves' room: the upper halves of a panel, a tile each 32 rows, are followed by the lower ones, and
// two panels by sums.
const (
	outerHalf = 4 * tileBytes // simd.OuterHalvesDepth rows
	outerSums = 2 * 2 * outerHalf
)

// outerAsks is how many lines are asked for with a block: 32 rows by 16 columns of B are as many.
const outerAsks = 32

// outerHalves goes over panels of 16 columns of B, in each over blocks of 32 rows, with sums in three tiles. While a
// block of one panel is multiplied, the block of the next panel that has the same rows is halved, between the tile
// instructions: either alone takes about as long. Sums of a panel are scaled after the products of the next, as in
// productHalves.
func outerHalves() {
	TEXT("outerHalves", NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	LEAQ(Mem{Base: t, Disp: fieldOuterConfig}, RBX)
	loadConfig()
	field := func(off int, to GPPhysical) { MOVQ(Mem{Base: t, Disp: off}, to) }

	a, a2, b, line := RSI, R8, RDI, RCX
	s, row, to, ahead := R9, R10, R11, R12
	k, cols, tmp, c := R13, R15, RBX, RDX
	ask, apart := RDX, R14 // there are no sums to scale meanwhile
	local := AllocLocal(64)
	here, there := local, local.Offset(8) // rooms of the panel that is multiplied, and of the next
	panelB, panelC, scaleB, backB := local.Offset(16), local.Offset(24), local.Offset(32), local.Offset(40)
	lateC, lateB := local.Offset(48), local.Offset(56) // of the panel whose sums are in the room
	keep := func(off int, to Mem) {
		field(off, tmp)
		MOVQ(tmp, to)
	}
	keep(fieldOuterB, panelB)
	keep(fieldOuterC, panelC)
	keep(fieldOuterScale, scaleB)
	keep(fieldOuterBackB, backB)
	keep(fieldOuterRoom, there)
	ADDQ(U32(2*outerHalf), tmp)
	MOVQ(tmp, here)
	MOVQ(U32(0), lateC)
	field(fieldOuterBRow, row)
	field(fieldOuterCols, cols)
	field(fieldOuterAhead, ahead)
	field(fieldOuterAheadApart, apart)
	MOVQ(U32(64), line)
	VMOVUPS(NewDataAddr(Symbol{Name: "sideBySide", Static: true}, 0), sideBySide)
	KXORW(K2, K2, K2) // the lanes of C that are added to, all or none
	CMPQ(Mem{Base: t, Disp: fieldOuterAdd}, Imm(0))
	JEQ(LabelRef("first"))
	KXNORW(K2, K2, K2)

	// start goes to the next panel to be halved; K1 is those of its lanes that are columns.
	start := func(label string) {
		MOVQ(I32(-1), tmp)
		CMPQ(cols, Imm(16))
		JGE(LabelRef(label))
		BZHIQ(cols, tmp, tmp)
		Label(label)
		KMOVW(tmp.As32(), K1)
		MOVQ(panelB, s)
		MOVQ(scaleB, tmp)
		VMOVUPS(Mem{Base: tmp}, outerScale)
		ADDQ(Imm(64), panelB)
		ADDQ(Imm(64), scaleB)
		MOVQ(there, to)
		field(fieldOuterBlocks, k)
	}
	// pair is the instructions that halve two rows of a panel, into line r of tiles, moving s below them.
	pair := func(r int) []func() {
		below := func() { LEAQ(Mem{Base: s, Index: row, Scale: 2}, s) }
		z := zmms[r%4*6:]
		return append(halvePair(Mem{Base: s}, Mem{Base: s, Index: row, Scale: 1}, K1, K1, outerScale,
			Mem{Base: to, Disp: 64 * r}, Mem{Base: to, Disp: outerHalf + 64*r}, z), below)
	}
	Label("first")
	start("firstLanes")
	SHLQ(Imm(4), k) // pairs of rows
	Label("ahead")
	for _, do := range pair(0) {
		do()
	}
	ADDQ(Imm(64), to)
	DECQ(k)
	JNZ(LabelRef("ahead"))

	Label("panel")
	MOVQ(there, tmp)
	MOVQ(here, b)
	MOVQ(tmp, here)
	MOVQ(b, there)
	MOVQ(tmp, b)
	field(fieldOuterA, a)
	MOVQ(a, a2)
	ADDQ(Mem{Base: t, Disp: fieldOuterAPanel}, a2)
	for i := range 3 {
		zeroTile(i)
	}
	SUBQ(Imm(16), cols)
	JLE(LabelRef("last"))
	start("lanes")

	block := func(label string, work []func()) {
		Label(label)
		MOVQ(ahead, ask)
		gaps, asked := 17, 0 // eight loads, nine products
		gap := func() {
			for range (outerAsks - asked + gaps - 1) / gaps {
				askLine(ask, apart, &asked)
			}
			n := (len(work) + gaps - 1) / gaps
			for _, do := range work[:n] {
				do()
			}
			work = work[n:]
			gaps--
		}
		left := func(half int) {
			for i := range 3 {
				base := []GPPhysical{a, a, a2}[i]
				loadTileAt(3+i, base, line, half*halfBytes+i%2*tileBytes)
				gap()
			}
		}
		right := func(tile, half int) {
			loadTileAt(tile, b, line, half*outerHalf)
			gap()
		}
		times := func(right int) {
			for i := range 3 {
				multiplyHalves(i, 3+i, right)
				gap()
			}
		}
		left(0)
		right(7, 1)
		times(7)
		right(6, 0)
		times(6)
		left(1)
		times(6)
		ADDQ(U32(128), ahead)
		ADDQ(U32(halfBlockBytes), a)
		ADDQ(U32(halfBlockBytes), a2)
		ADDQ(U32(tileBytes), b)
		ADDQ(U32(tileBytes), to)
		DECQ(k)
		JNZ(LabelRef(label))
	}
	var work []func()
	for r := range 16 {
		work = append(work, pair(r)...)
	}
	block("depth", work)
	JMP(LabelRef("finish"))
	Label("last")
	field(fieldOuterBlocks, k)
	block("lastDepth", nil)

	Label("finish")
	MOVQ(lateC, c)
	TESTQ(c, c)
	JEQ(LabelRef("store"))
	MOVQ(lateB, tmp)
	VMOVUPS(Mem{Base: tmp}, Z0)
	field(fieldOuterBackA, tmp)
	field(fieldOuterRows, k)
	field(fieldOuterRoom, a)
	Label("scale")
	VBROADCASTSS(Mem{Base: tmp}, Z1)
	VMULPS(Mem{Base: a, Disp: outerSums}, Z1, Z1)
	VMULPS(Z0, Z1, Z1)
	VADDPS(Mem{Base: c}, Z1, K2, Z1)
	VMOVUPS(Z1, Mem{Base: c})
	ADDQ(Imm(4), tmp)
	ADDQ(Imm(64), a)
	ADDQ(Mem{Base: t, Disp: fieldOuterCRow}, c)
	DECQ(k)
	JNZ(LabelRef("scale"))
	Label("store")
	MOVQ(panelC, tmp)
	TESTQ(tmp, tmp)
	JEQ(LabelRef("end"))
	MOVQ(tmp, lateC)
	ADDQ(Imm(64), panelC)
	MOVQ(backB, tmp)
	MOVQ(tmp, lateB)
	ADDQ(Imm(64), backB)
	field(fieldOuterRoom, a)
	for i := range 3 {
		storeTileAt(i, a, line, outerSums+i*tileBytes)
	}
	TESTQ(cols, cols)
	JG(LabelRef("panel"))
	MOVQ(U32(0), panelC) // the last sums, and no more
	JMP(LabelRef("finish"))
	Label("end")
	releaseTiles()
	VZEROUPPER()
	RET()
}

// outerScale is what a panel's columns are multiplied with.
var outerScale = Z31

// columnScales finds what columns are multiplied with, and what takes that back. Rows are read in order, many columns at
// once. With each row of the first columns three lines from ahead on are asked for, as many lines apart as there are
// rows.
func columnScales() {
	TEXT("columnScales512", NOSPLIT, "func(scale, back, src *byte, rows, cols, stride int, ahead uintptr)")
	Pragma("noescape")
	scale, back, src, rows, cols, stride, ahead := RDI, R9, RSI, RDX, RCX, R8, R12
	loadParams("scale back src rows cols stride ahead", scale, back, src, rows, cols, stride, ahead)
	s, n, tmp, apart := R10, R11, RAX, R13
	loadHalfConstants(EAX)
	MOVQ(rows, apart)
	SHLQ(Imm(6), apart)
	// group is so many vectors of columns.
	group := func(name string, vectors int) {
		MOVQ(src, s)
		MOVQ(rows, n)
		for v := range vectors {
			VPXORD(zmm(v), zmm(v), zmm(v))
		}
		Label(name)
		for v := range vectors {
			if v > 0 && v < 4 {
				PREFETCHT1([]Mem{{Base: ahead}, {Base: ahead, Index: apart, Scale: 1}, {Base: ahead, Index: apart, Scale: 2}}[v-1])
			}
			x := zmm(16 + v%8)
			VPANDD_Z(Mem{Base: s, Disp: 64 * v}, absolute, K1, x)
			VPMAXUD(x, zmm(v), zmm(v))
		}
		ADDQ(stride, s)
		ADDQ(Imm(64), ahead)
		DECQ(n)
		JNZ(LabelRef(name))
		for v := range vectors {
			scales(zmm(v), zmm(16))
			VMOVUPS(zmm(v), Mem{Base: scale, Disp: 64 * v})
			VMOVUPS(zmm(16), Mem{Base: back, Disp: 64 * v})
		}
		for _, at := range []GPPhysical{src, scale, back} {
			ADDQ(U32(uint32(64*vectors)), at)
		}
		MOVQ(src, ahead) // all is asked for: from now on lines that are read next
		XORQ(apart, apart)
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
