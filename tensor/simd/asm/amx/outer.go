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
	TEXT("outerHalves", NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	LEAQ(Mem{Base: t, Disp: fieldOuterConfig}, RBX)
	loadConfig()
	field := func(off int, to GPPhysical) { MOVQ(Mem{Base: t, Disp: off}, to) }

	a, b, line := RSI, RDI, RCX
	s, row, to, ahead := R9, R10, R11, R12
	k, tmp, ask, apart := R13, RBX, RDX, R14
	late := outerLate{sums: R15, back: R8, c: tmp}
	local := AllocLocal(72)
	here, there := local, local.Offset(8) // rooms of the panel that is multiplied, and of the next
	panelB, panelC, scaleB, backB := local.Offset(16), local.Offset(24), local.Offset(32), local.Offset(40)
	lateC, cols, spoilt := local.Offset(48), local.Offset(56), local.Offset(64)
	keep := func(off int, to Mem) {
		field(off, tmp)
		MOVQ(tmp, to)
	}
	keep(fieldOuterB, panelB)
	keep(fieldOuterC, panelC)
	MOVQ(tmp, lateC) // not yet: no lanes
	KXORW(K2, K2, K2)
	keep(fieldOuterScale, scaleB)
	keep(fieldOuterBackB, backB)
	keep(fieldOuterRoom, there)
	ADDQ(U32(2*outerHalf), tmp)
	MOVQ(tmp, here)
	keep(fieldOuterCols, cols)
	keep(fieldOuterSpoilt, spoilt)
	field(fieldOuterBRow, row)
	field(fieldOuterAhead, ahead)
	field(fieldOuterAheadApart, apart)
	MOVQ(U32(64), line)
	VMOVUPS(NewDataAddr(Symbol{Name: "sideBySide", Static: true}, 0), sideBySide)

	// start goes to the next panel to be halved; K1 is those of its lanes that are columns.
	start := func(label string) {
		MOVQ(I32(-1), tmp)
		MOVQ(cols, s)
		CMPQ(s, Imm(16))
		JGE(LabelRef(label))
		BZHIQ(s, tmp, tmp)
		Label(label)
		KMOVW(tmp.As32(), K1)
		MOVQ(panelB, s)
		MOVQ(scaleB, tmp)
		VMOVUPS(Mem{Base: tmp}, outerScale)
		ADDQ(Imm(64), panelB)
		ADDQ(Imm(64), scaleB)
		MOVQ(there, to)
	}
	// pair is the instructions that halve two rows of a panel, into line r of tiles, moving s below them.
	pair := func(r int) []func() {
		below := func() { LEAQ(Mem{Base: s, Index: row, Scale: 2}, s) }
		return append(halvePair(Mem{Base: s}, Mem{Base: s, Index: row, Scale: 1}, K1, K1, outerScale,
			Mem{Base: to, Disp: 64 * r}, Mem{Base: to, Disp: outerHalf + 64*r}, zmms[r%4*6:]), below)
	}
	toLate := func() {
		field(fieldOuterRoom, late.sums)
		field(fieldOuterBackA, late.back)
		MOVQ(lateC, late.c)
	}
	start("firstLanes")
	field(fieldOuterBlocks, k)
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
	field(fieldOuterBlocks, k)
	for i := range 3 {
		zeroTile(i)
	}
	SUBQ(Imm(16), cols)
	JLE(LabelRef("last"))
	start("lanes")
	toLate()

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
			for i, disp := range []int{0, tileBytes, outerPanel} {
				loadTileAt(3+i, a, line, half*halfBytes+disp)
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
		ADDQ(U32(tileBytes), b)
		ADDQ(U32(tileBytes), to)
		DECQ(k)
		JNZ(LabelRef(label))
	}
	// Scaling comes a quarter of a block behind the tiles' stores.
	var work []func()
	scaling := late.rows()
	for r := range 16 {
		work = append(work, pair(r)...)
		if n := 4 * outerLateRows / 12; r >= 4 {
			work = append(work, scaling[:n]...)
			scaling = scaling[n:]
		}
	}
	block("depth", append(work, scaling...))
	JMP(LabelRef("finish"))
	Label("last")
	toLate()
	block("lastDepth", late.rows())

	// What blocks have left, of less than two.
	Label("finish")
	MOVQ(U32(outerBlocks), k)
	SUBQ(Mem{Base: t, Disp: fieldOuterBlocks}, k)
	JEQ(LabelRef("store"))
	Label("rest")
	for _, do := range late.rows() {
		do()
	}
	DECQ(k)
	JNZ(LabelRef("rest"))
	Label("store")
	MOVQ(panelC, tmp)
	TESTQ(tmp, tmp)
	JEQ(LabelRef("end"))
	MOVQ(tmp, lateC)
	ADDQ(U32(outerRows*64), panelC)
	MOVQ(backB, tmp)
	VMOVUPS(Mem{Base: tmp}, outerBack)
	ADDQ(Imm(64), backB)
	field(fieldOuterRoom, a)
	for i := range 3 {
		storeTileAt(i, a, line, outerSums+i*tileBytes)
	}
	// A number of B that was too large makes sums of its column infinite or NaN, whatever A's are: one row shows it.
	KXNORW(K2, K2, K2)
	MOVQ(spoilt, s)
	TESTQ(s, s)
	JEQ(LabelRef("clean"))
	ADDQ(Imm(2), spoilt)
	VMOVUPS(Mem{Base: a, Disp: outerSums}, Z0)
	VSUBPS(Z0, Z0, Z0) // NaN of both
	VCMPPS(Imm(3), Z0, Z0, K3)
	KMOVW(K3, Mem{Base: s})
	KORTESTW(K3, K3)
	JEQ(LabelRef("clean"))
	KXORW(K2, K2, K2)
	Label("clean")
	CMPQ(cols, Imm(0))
	JG(LabelRef("panel"))
	MOVQ(U32(0), panelC) // the last sums, and no more
	toLate()
	MOVQ(U32(outerBlocks), k)
	JMP(LabelRef("rest"))
	Label("end")
	releaseTiles()
	VZEROUPPER()
	RET()
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

// outerHeadroom is how many powers of two numbers may be larger than those that scales were taken of.
const outerHeadroom = 4

// outerScale is what a panel's columns are multiplied with, outerBack what takes that back from the panel before.
var outerScale, outerBack = Z31, Z26

// columnScales finds what columns are multiplied with, and what takes that back. Rows are read in order, many columns at
// once.
func columnScales() {
	TEXT("columnScales512", NOSPLIT, "func(scale, back, src *byte, rows, cols, stride int)")
	Pragma("noescape")
	scale, back, src, rows, cols, stride := RDI, R9, RSI, RDX, RCX, R8
	loadParams("scale back src rows cols stride", scale, back, src, rows, cols, stride)
	s, n, tmp := R10, R11, RAX
	loadHalfConstants(EAX, outerHeadroom)
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
