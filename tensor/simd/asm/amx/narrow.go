package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
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
	field48Last
	field48Config
)

// narrow is a product of rows with up to 48 columns, or, turned, of columns: one side of the product is wide, and split on
// the way; the other has been split before. Sums of one strip of the wide side, 16 rows or columns of it, by all of the
// narrow one stay in tiles.
//
// A product takes as long as three can be begun in, and waits for the one before it in its tile. So where the narrow side
// has one tile or two, each has two of sums, which take turns and are added up at the end.
type narrow struct {
	wide   int // tiles of the narrow side
	turned bool
}

// turns is how many tiles of sums each of the narrow side has.
func (n narrow) turns() int { return []int{1: 2, 2: 2, 3: 1}[n.wide] }

// Registers. The split block that is multiplied, and the room of the next; the narrow side, and its third tile or the room
// of sums that are added up; the wide side, and in a turned product its lower 16 rows; C, whose rows' distance is there
// where it is not turned.
var (
	narrowA, narrowNext, narrowB, narrowHalf, narrowSums  = RSI, RDX, RDI, R10, R10
	narrowC, narrowCRow, narrowLow, narrowLine, narrowTmp = R8, R9, R9, RCX, RBX
	narrowK, narrowRow, narrowS, narrowAhead, narrowApart = R11, R12, R13, R15, R14
)

// product goes over strips, in each over depth. While a block of a strip, 16 by 32 numbers, is multiplied its follower is
// split, between the tile instructions, into the other half of the room: the vector units have nothing else to do, and
// what is split stays in the nearest cache. Asking for the next block of the narrow side in these gaps, as product32 does
// of B, gains nothing here.
func (n narrow) product(name string) {
	begin(fmt.Sprintf("%sBy%d", name, n.wide), frame.Field(field48Config))
	a, next, b, k, s, ahead := narrowA, narrowNext, narrowB, narrowK, narrowS, narrowAhead
	var strips, deep, asks, late, begun Mem
	frame.Locals(&strips, &deep, &asks, &late, &begun)
	n.begin(strips, deep, late)

	// The first block is split in a turn of the loop that multiplies what is in the room: sums begin behind it.
	n.masks("first", strips, 1)
	MOVQ(U32(0), begun)
	XORQ(k, k)
	frame.Get(field48B, b)
	if n.turns() == 1 {
		MOVQ(b, narrowHalf)
	}
	JMP(LabelRef("split"))

	Label("begin")
	frame.Get(field48Ahead, ahead)
	MOVQ(U32(1), begun)
	Label("strip")
	frame.Get(field48B, b)
	n.start()
	MOVQ(deep, k)

	Label("depth")
	XCHGQ(a, next)
	// s stands below the block just split, whose follower is the next of its strip, or the first of the next strip, or none.
	DECQ(k)
	JEQ(LabelRef("below"))
	if !n.turned {
		MOVQ(narrowRow, narrowTmp)
		SHLQ(Imm(4), narrowTmp)
		SUBQ(narrowTmp, s)
		ADDQ(U32(128), s)
		n.masks("same", strips, 1)
	}
	JMP(LabelRef("split"))
	Label("below")
	MOVQ(deep, k)
	n.nextStrip()
	n.masks("new", strips, 2)
	XORQ(k, k)
	CMPQ(strips, Imm(1))
	JNE(LabelRef("split"))
	KXORW(K3, K3, K3)
	KXORW(K4, K4, K4)
	Label("split")
	LEAQ(Mem{Base: narrowRow, Index: narrowRow, Scale: 2}, narrowTmp)
	MOVQ(ahead, asks)
	n.multiplyAndSplit()
	MOVQ(asks, ahead)
	ADDQ(frame.Field(field48AheadStep), ahead)
	ADDQ(U32(blockBytes), b)
	if n.turns() == 1 {
		ADDQ(U32(blockBytes), narrowHalf)
	}
	TESTQ(k, k)
	JNZ(LabelRef("depth"))
	CMPQ(begun, Imm(0))
	JEQ(LabelRef("begin"))
	n.finish(strips, late)
	end()
}

// begin loads what stays in registers, and keeps how many strips there are and how deep they are.
func (n narrow) begin(strips, deep, late Mem) {
	loadSplitConstants(ECX)
	frame.Get(field48Depth, narrowK)
	stripMasks(narrowK, narrowTmp)
	MOVQ(narrowK, deep)
	frame.Keep(field48Strips, narrowTmp, strips)
	frame.Get(field48A, narrowS)
	frame.Get(field48ARow, narrowRow)
	frame.Get(field48C, narrowC)
	frame.Get(field48Ahead, narrowAhead)
	frame.Get(field48AheadApart, narrowApart)
	frame.Get(field48Room, narrowNext)
	LEAQ(Mem{Base: narrowNext, Disp: roomBytes}, narrowA)
	if n.turned {
		MOVQ(narrowRow, narrowLow)
		SHLQ(Imm(4), narrowLow)
		ADDQ(narrowS, narrowLow)
	} else {
		frame.Get(field48CRow, narrowCRow)
	}
	if n.turns() > 1 {
		LEAQ(Mem{Base: narrowNext, Disp: 2 * roomBytes}, narrowSums)
		MOVQ(U32(0), late)
	}
	n.lanes()
	MOVQ(U32(64), narrowLine)
}

// lanes makes masks of the columns of C, or, turned, of the last strip's.
func (n narrow) lanes() {
	if n.turns() == 1 {
		return
	}
	field := field48Cols
	if n.turned {
		field = field48Last
	}
	frame.Get(field, RCX)
	MOVQ(I32(-1), narrowTmp)
	BZHIQ(RCX, narrowTmp, narrowTmp)
	KMOVW(narrowTmp.As32(), K2)
	SHRQ(Imm(16), narrowTmp)
	KMOVW(narrowTmp.As32(), K7)
}

// masks makes K3 and K4 those of the block that is split next: of k that are left in its strip the first, or, turned, of so
// many strips.
func (n narrow) masks(label string, strips Mem, left uint64) {
	KMOVW(K1, K3)
	KMOVW(K1, K4)
	if n.turned {
		CMPQ(strips, Imm(left))
		JNE(LabelRef(label))
		KMOVW(K2, K3)
		KMOVW(K2, K4)
	} else {
		CMPQ(narrowK, Imm(1))
		JNE(LabelRef(label))
		KMOVW(K5, K3)
		KMOVW(K6, K4)
	}
	Label(label)
}

// start fills the tiles of sums.
func (n narrow) start() {
	if n.turns() == 1 {
		frame.Get(field48BPanel, narrowHalf)
		ADDQ(narrowB, narrowHalf)
		startSums(narrowC, narrowCRow, 16, frame.Field(field48Add), func() { rowOfC(narrowC, narrowCRow, narrowTmp, loadTile) }, 3)
		return
	}
	if !n.turned {
		ownC(narrowC, narrowCRow, 16)
	}
	for i := range n.turns() * n.wide {
		zeroTile(i)
	}
}

// nextStrip goes from the end of one strip of k blocks to the next.
func (n narrow) nextStrip() {
	MOVQ(narrowK, narrowTmp)
	if n.turned {
		IMULQ(narrowRow, narrowTmp)
		SHLQ(Imm(5), narrowTmp)
		SUBQ(Imm(64), narrowTmp)
		SUBQ(narrowTmp, narrowLow)
	} else {
		DECQ(narrowTmp)
		SHLQ(Imm(7), narrowTmp)
	}
	SUBQ(narrowTmp, narrowS)
}

// multiplyAndSplit multiplies one block, splits the next and asks for 32 lines.
func (n narrow) multiplyAndSplit() {
	g := gaps{left: 3 + 9*n.wide, // as many loads and products
		lines: 32, place: narrowAhead, apart: narrowApart, work: n.splitBlock(),
		most: []int{1: 32, 2: 20, 3: 20}[n.wide]} // so that the last are well before their block is loaded
	firstA, firstB := n.turns()*n.wide, 8-n.wide // tiles
	left := func(second, third int) {
		loadTileAt(firstA+second, narrowA, narrowLine, third*tileBytes)
		g.fill()
	}
	right := func(third int) {
		for i := range n.wide {
			if i < 2 {
				loadTileAt(firstB+i, narrowB, narrowLine, third*thirdBytes+i*tileBytes)
			} else {
				loadTileAt(firstB+i, narrowHalf, narrowLine, third*thirdBytes)
			}
			g.fill()
		}
	}
	turn := 0
	times := func(second int) {
		for i := range n.wide {
			x, y := firstA+second, firstB+i
			if n.turned {
				x, y = y, x
			}
			multiply(turn%n.turns()*n.wide+i, x, y)
			g.fill()
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
	if len(g.work) > 0 || g.left != 0 {
		panic("the work does not fit the gaps")
	}
}

// finish stores the sums of a strip, and goes on with the next. Sums that took turns are added up after the products of
// the next strip: right behind the tiles' stores their loads would wait.
func (n narrow) finish(strips, late Mem) {
	tmp := narrowTmp
	if n.turns() > 1 {
		Label("late")
		MOVQ(late, tmp)
		TESTQ(tmp, tmp)
		JEQ(LabelRef("store"))
		n.addTurns()
		Label("store")
		CMPQ(strips, Imm(0))
		JEQ(LabelRef("end"))
		for i := range n.turns() * n.wide {
			storeTileAt(i, narrowSums, narrowLine, i*tileBytes)
		}
		MOVQ(narrowC, late)
	} else {
		rowOfC(narrowC, narrowCRow, tmp, storeTile)
	}
	if n.turned {
		ADDQ(U32(tileBytes*uint32(n.wide)), narrowC)
	} else {
		MOVQ(narrowCRow, tmp)
		SHLQ(Imm(4), tmp)
		ADDQ(tmp, narrowC)
	}
	DECQ(strips)
	JNZ(LabelRef("strip"))
	if n.turns() > 1 {
		JMP(LabelRef("late"))
		Label("end")
	}
}

// roomBytes is the room of a split block: three tiles.
const roomBytes = 3 * tileBytes

// splitBlock is the instructions that split 16 rows of 32 numbers, or, turned, 32 rows of 16, two by two; s moves below
// them. It takes three rows in tmp.
func (n narrow) splitBlock() (work []func()) {
	do := func(f func()) { work = append(work, f) }
	at := func(base GPPhysical, r, disp int) Mem {
		m := Mem{Base: base, Index: narrowRow, Scale: uint8(r), Disp: disp}
		switch r {
		case 0:
			m.Index, m.Scale = nil, 0
		case 3:
			m.Index, m.Scale = narrowTmp, 1
		}
		return m
	}
	bases := []GPPhysical{narrowS}
	second := func(r int) Mem { return at(narrowS, r, 64) }
	if n.turned {
		bases = append(bases, narrowLow)
		second = func(r int) Mem { return at(narrowLow, r, 0) }
	}
	for r := range 16 {
		do(func() { VMOVUPS_Z(at(narrowS, r%4, 0), K3, Z0) })
		do(func() { VMOVUPS_Z(second(r%4), K4, Z1) })
		work = append(work, splitting(narrowNext, r*64, tileBytes, false)...)
		if r%4 < 3 {
			continue
		}
		for _, s := range bases {
			do(func() { LEAQ(Mem{Base: s, Index: narrowRow, Scale: 4}, s) })
		}
	}
	if n.turned { // below the other 16 rows
		do(func() { MOVQ(narrowLow, narrowS) })
		do(func() { LEAQ(Mem{Base: narrowS, Index: narrowRow, Scale: 8}, narrowLow) })
		do(func() { LEAQ(Mem{Base: narrowLow, Index: narrowRow, Scale: 8}, narrowLow) })
	}
	return work
}

// addTurns adds up the tiles of sums that took turns, and puts them into the strip of C at tmp, or adds them to it. In a
// turned product that is tiles, one behind the other.
func (n narrow) addTurns() {
	c, apart, lanes := narrowTmp, 64, []OpmaskPhysical{K2, K7}
	if n.turned {
		apart, lanes = tileBytes, []OpmaskPhysical{K1, K1}
	}
	MOVQ(U32(16), narrowK)
	Label("row")
	for i := range n.wide {
		z, to := zmm(8+i), Mem{Base: c, Disp: apart * i}
		VMOVUPS(Mem{Base: narrowSums, Disp: i * tileBytes}, z)
		for turn := 1; turn < n.turns(); turn++ {
			VADDPS(Mem{Base: narrowSums, Disp: (turn*n.wide + i) * tileBytes}, z, z)
		}
		write := fmt.Sprintf("write%d", i)
		CMPQ(frame.Field(field48Add), Imm(0))
		JEQ(LabelRef(write))
		VADDPS(to, z, lanes[i], z)
		Label(write)
		VMOVUPS(z, lanes[i], to)
	}
	ADDQ(Imm(64), narrowSums)
	if n.turned {
		ADDQ(Imm(64), c)
	} else {
		ADDQ(narrowCRow, c)
	}
	DECQ(narrowK)
	JNZ(LabelRef("row"))
	SUBQ(U32(tileBytes), narrowSums)
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
