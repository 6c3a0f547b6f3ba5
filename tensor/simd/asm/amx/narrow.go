package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of simd.Tiles48.
const (
	field48A = 8 * iota
	field48B
	field48C
	field48ARow
	field48BPanel
	field48CRow
	field48Depth
	field48Strips
	field48Add
	field48Ahead
	field48AheadStep
	field48AheadApart
	field48Room
	field48Config
)

// product48 goes over strips of 16 rows, in each over depth, with sums in three tiles: two would not keep
// the unit busy, since a product takes as long as three can be begun in. While a block of 16 rows by 32
// is multiplied its follower is split, between the tile instructions, into the other half of the room: the
// vector units have nothing else to do, and what is split stays in the nearest cache. Asking for the next
// block of B in these gaps, as product32 does, gains nothing here.
func product48() {
	TEXT("tiles48", NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	LEAQ(Mem{Base: t, Disp: field48Config}, RBX)
	loadConfig()
	field := func(off int, to GPPhysical) { MOVQ(Mem{Base: t, Disp: off}, to) }

	a, next, b, half := RSI, RDX, RDI, R10
	c, crow, line, tmp := R8, R9, RCX, RBX
	k, row, s, ahead := R11, R12, R13, R15
	apart := R14
	local := AllocLocal(24)
	strips, deep, asks := local, local.Offset(8), local.Offset(16)

	loadSplitConstants(ECX)
	field(field48Depth, k)
	stripMasks(k, tmp)
	MOVQ(k, deep)
	field(field48Strips, tmp)
	MOVQ(tmp, strips)
	field(field48A, s)
	field(field48ARow, row)
	field(field48C, c)
	field(field48CRow, crow)
	field(field48Ahead, ahead)
	field(field48AheadApart, apart)
	field(field48Room, next)
	LEAQ(Mem{Base: next, Disp: roomBytes}, a)
	MOVQ(U32(64), line)

	masks := func(label string) { // of a block with k left in its strip, it too
		KMOVW(K1, K3)
		KMOVW(K1, K4)
		CMPQ(k, Imm(1))
		JNE(LabelRef(label))
		KMOVW(K5, K3)
		KMOVW(K6, K4)
		Label(label)
	}
	masks("first")
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, tmp)
	for _, do := range splitBlock(s, row, tmp, next) {
		do()
	}

	Label("strip")
	field(field48B, b)
	field(field48BPanel, half)
	ADDQ(b, half)
	startSums(c, crow, 16, Mem{Base: t, Disp: field48Add}, func() { rowOfC(c, crow, tmp, loadTile) }, 3)
	MOVQ(deep, k)

	Label("depth")
	XCHGQ(a, next)
	// s stands 16 rows below the block just split. The follower is 32 columns further, or the first
	// of the next strip, or none.
	DECQ(k)
	JEQ(LabelRef("below"))
	MOVQ(row, tmp)
	SHLQ(Imm(4), tmp)
	SUBQ(tmp, s)
	ADDQ(U32(128), s)
	masks("same")
	JMP(LabelRef("split"))
	Label("below")
	MOVQ(deep, k)
	MOVQ(k, tmp)
	DECQ(tmp)
	SHLQ(Imm(7), tmp)
	SUBQ(tmp, s)
	masks("new")
	XORQ(k, k)
	CMPQ(strips, Imm(1))
	JNE(LabelRef("split"))
	KXORW(K3, K3, K3)
	KXORW(K4, K4, K4)
	Label("split")
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, tmp)

	MOVQ(ahead, asks)
	work := splitBlock(s, row, tmp, next)
	asked, gaps := 0, 30 // twelve loads, eighteen products
	gap := func() {
		for range (32 - asked + gaps - 1) / gaps {
			askLine(ahead, apart, &asked)
		}
		n := min(gapWork, len(work))
		for _, do := range work[:n] {
			do()
		}
		work = work[n:]
		gaps--
	}
	left := func(tile, third int) {
		loadTileAt(tile, a, line, third*tileBytes)
		gap()
	}
	right := func(third int) {
		loadTileAt(5, b, line, third*thirdBytes)
		gap()
		loadTileAt(6, b, line, third*thirdBytes+tileBytes)
		gap()
		loadTileAt(7, half, line, third*thirdBytes)
		gap()
	}
	times := func(a int) {
		for i := range 3 {
			multiply(i, a, 5+i)
			gap()
		}
	}
	left(3, 0)
	right(2)
	times(3)
	right(1)
	times(3)
	left(4, 1)
	times(4)
	right(0)
	times(4)
	left(4, 2)
	times(4)
	times(3)
	if len(work) > 0 || gaps != 0 {
		panic("the work does not fit the gaps")
	}
	MOVQ(asks, ahead)
	ADDQ(Mem{Base: t, Disp: field48AheadStep}, ahead)
	ADDQ(U32(blockBytes), b)
	ADDQ(U32(blockBytes), half)
	TESTQ(k, k)
	JNZ(LabelRef("depth"))
	rowOfC(c, crow, tmp, storeTile)
	MOVQ(crow, tmp)
	SHLQ(Imm(4), tmp)
	ADDQ(tmp, c)
	DECQ(strips)
	JNZ(LabelRef("strip"))
	releaseTiles()
	VZEROUPPER()
	RET()
}

// roomBytes is the room of a split block: three tiles.
const roomBytes = 3 * tileBytes

// gapWork is how many instructions of splitting go between two tile instructions, so that the
// last are well before their block is loaded.
const gapWork = 20

// splitBlock is the instructions that split 16 rows of 32 numbers, moving s 16 rows down.
func splitBlock(s, row, row3, to GPPhysical) (work []func()) {
	do := func(f func()) { work = append(work, f) }
	for r := range 16 {
		at := []Mem{{Base: s}, {Base: s, Index: row, Scale: 1}, {Base: s, Index: row, Scale: 2}, {Base: s, Index: row3, Scale: 1}}[r%4]
		do(func() { VMOVUPS_Z(at, K3, Z0) })
		do(func() { at.Disp = 64; VMOVUPS_Z(at, K4, Z1) })
		work = append(work, splitting(to, r*64, tileBytes)...)
		if r%4 == 3 {
			do(func() { LEAQ(Mem{Base: s, Index: row, Scale: 4}, s) })
		}
	}
	return work
}

// rowOfC loads or stores three tiles of C side by side.
func rowOfC(c, crow, tmp GPPhysical, do func(tile int, base, stride GPPhysical)) {
	MOVQ(c, tmp)
	for i := range 3 {
		do(i, tmp, crow)
		ADDQ(Imm(64), tmp)
	}
}

// stripMasks puts the lanes of a row's last block, of 1 to 32 numbers, into K5 and K6, and all into K1; of
// numbers, depth becomes one of blocks.
func stripMasks(depth, tmp GPPhysical) {
	DECQ(depth)
	MOVQ(depth, RCX)
	ANDQ(Imm(31), RCX)
	INCQ(RCX)
	MOVQ(I32(-1), tmp)
	KMOVW(tmp.As32(), K1)
	BZHIQ(RCX, tmp, tmp)
	KMOVW(tmp.As32(), K5)
	SHRQ(Imm(16), tmp)
	KMOVW(tmp.As32(), K6)
	SHRQ(Imm(5), depth)
	INCQ(depth)
}
