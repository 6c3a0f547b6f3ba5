package main

import (
	"fmt"

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
	field48Cols
	field48Config
)

// product48 goes over strips of 16 rows, in each over depth, with sums of up to 48 columns in three tiles or four: two
// would not keep the unit busy, since a product takes as long as three can be begun in. So one tile of columns has three
// of sums, and two have two each, which take turns and are added up at the end. While a block of 16 rows by 32
// is multiplied its follower is split, between the tile instructions, into the other half of the room: the
// vector units have nothing else to do, and what is split stays in the nearest cache. Asking for the next
// block of B in these gaps, as product32 does, gains nothing here.
func product48(wide int) {
	TEXT(fmt.Sprintf("tiles48By%d", wide), NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	LEAQ(Mem{Base: t, Disp: field48Config}, RBX)
	loadConfig()
	field := func(off int, to GPPhysical) { MOVQ(Mem{Base: t, Disp: off}, to) }

	turns := []int{1: 3, 2: 2, 3: 1}[wide] // tiles of sums of one tile of columns
	a, next, b := RSI, RDX, RDI
	half, sums := R10, R10 // the third tile of B; the room of sums that are added up
	c, crow, line, tmp := R8, R9, RCX, RBX
	k, row, s, ahead := R11, R12, R13, R15
	apart := R14
	local := AllocLocal(40)
	strips, deep, asks, late, begun := local, local.Offset(8), local.Offset(16), local.Offset(24), local.Offset(32)

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
	if turns > 1 {
		LEAQ(Mem{Base: next, Disp: 2 * roomBytes}, sums)
		MOVQ(U32(0), late)
		MOVQ(Mem{Base: t, Disp: field48Cols}, RCX)
		MOVQ(I32(-1), tmp)
		BZHIQ(RCX, tmp, tmp)
		KMOVW(tmp.As32(), K2)
		SHRQ(Imm(16), tmp)
		KMOVW(tmp.As32(), K7)
	}
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
	// The first block is split in a turn of the loop that multiplies what is in the room: sums begin behind it.
	masks("first")
	MOVQ(U32(0), begun)
	XORQ(k, k)
	field(field48B, b)
	if turns == 1 {
		MOVQ(b, half)
	}
	JMP(LabelRef("split"))

	Label("begin")
	field(field48Ahead, ahead)
	MOVQ(U32(1), begun)
	Label("strip")
	field(field48B, b)
	if turns > 1 {
		ownC(c, crow, 16)
		for i := range turns * wide {
			zeroTile(i)
		}
	} else {
		field(field48BPanel, half)
		ADDQ(b, half)
		startSums(c, crow, 16, Mem{Base: t, Disp: field48Add}, func() { rowOfC(c, crow, tmp, loadTile) }, 3)
	}
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
	asked, gaps := 0, 3+9*wide                  // as many loads and products
	gapWork := []int{1: 32, 2: 20, 3: 20}[wide] // so that the last are well before their block is loaded
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
	firstA, firstB := turns*wide, 8-wide // tiles
	left := func(second, third int) {
		loadTileAt(firstA+second, a, line, third*tileBytes)
		gap()
	}
	right := func(third int) {
		for i := range wide {
			if i < 2 {
				loadTileAt(firstB+i, b, line, third*thirdBytes+i*tileBytes)
			} else {
				loadTileAt(firstB+i, half, line, third*thirdBytes)
			}
			gap()
		}
	}
	turn := 0
	times := func(second int) {
		for i := range wide {
			multiply(turn%turns*wide+i, firstA+second, firstB+i)
			gap()
		}
		turn++
	}
	left(0, 0)
	right(2)
	times(0)
	right(1)
	times(0)
	left(1, 1)
	times(1)
	right(0)
	times(1)
	left(1, 2)
	times(1)
	times(0)
	if len(work) > 0 || gaps != 0 {
		panic("the work does not fit the gaps")
	}
	MOVQ(asks, ahead)
	ADDQ(Mem{Base: t, Disp: field48AheadStep}, ahead)
	ADDQ(U32(blockBytes), b)
	if turns == 1 {
		ADDQ(U32(blockBytes), half)
	}
	TESTQ(k, k)
	JNZ(LabelRef("depth"))
	CMPQ(begun, Imm(0))
	JEQ(LabelRef("begin"))
	if turns > 1 {
		// The sums of a strip are added up after the products of the next: right behind the tiles' stores their loads
		// would wait.
		Label("late")
		MOVQ(late, tmp)
		TESTQ(tmp, tmp)
		JEQ(LabelRef("store"))
		addTurns(turns, wide, sums, tmp, crow, k, Mem{Base: t, Disp: field48Add})
		Label("store")
		CMPQ(strips, Imm(0))
		JEQ(LabelRef("end"))
		for i := range turns * wide {
			storeTileAt(i, sums, line, i*tileBytes)
		}
		MOVQ(c, late)
	} else {
		rowOfC(c, crow, tmp, storeTile)
	}
	MOVQ(crow, tmp)
	SHLQ(Imm(4), tmp)
	ADDQ(tmp, c)
	DECQ(strips)
	JNZ(LabelRef("strip"))
	if turns > 1 {
		JMP(LabelRef("late"))
		Label("end")
	}
	releaseTiles()
	VZEROUPPER()
	RET()
}

// roomBytes is the room of a split block: three tiles.
const roomBytes = 3 * tileBytes

// splitBlock is the instructions that split 16 rows of 32 numbers, moving s 16 rows down.
func splitBlock(s, row, row3, to GPPhysical) (work []func()) {
	do := func(f func()) { work = append(work, f) }
	for r := range 16 {
		at := []Mem{{Base: s}, {Base: s, Index: row, Scale: 1}, {Base: s, Index: row, Scale: 2}, {Base: s, Index: row3, Scale: 1}}[r%4]
		do(func() { VMOVUPS_Z(at, K3, Z0) })
		do(func() { at.Disp = 64; VMOVUPS_Z(at, K4, Z1) })
		work = append(work, splitting(to, r*64, tileBytes, false)...)
		if r%4 == 3 {
			do(func() { LEAQ(Mem{Base: s, Index: row, Scale: 4}, s) })
		}
	}
	return work
}

// addTurns adds up the tiles of sums that took turns, 16 rows, and puts them into C, or adds them to it.
func addTurns(turns, wide int, sums, c, crow, n GPPhysical, add Mem) {
	MOVQ(U32(16), n)
	Label("row")
	for i := range wide {
		z, lanes := zmm(8+i), []OpmaskPhysical{K2, K7}[i]
		VMOVUPS(Mem{Base: sums, Disp: i * tileBytes}, z)
		for turn := 1; turn < turns; turn++ {
			VADDPS(Mem{Base: sums, Disp: (turn*wide + i) * tileBytes}, z, z)
		}
		write := fmt.Sprintf("write%d", i)
		CMPQ(add, Imm(0))
		JEQ(LabelRef(write))
		VADDPS(Mem{Base: c, Disp: 64 * i}, z, lanes, z)
		Label(write)
		VMOVUPS(z, lanes, Mem{Base: c, Disp: 64 * i})
	}
	ADDQ(Imm(64), sums)
	ADDQ(crow, c)
	DECQ(n)
	JNZ(LabelRef("row"))
	SUBQ(U32(tileBytes), sums)
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
