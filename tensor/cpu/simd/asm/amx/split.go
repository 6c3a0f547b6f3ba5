package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// Sizes of simd.Tiles32's layout, in bytes: a tile, the two tiles of a third, and a
// block of three parts with a line after it, so that blocks do not all fall into the
// same few cache sets.
const (
	tileBytes  = 1024
	splitBytes = 2 * tileBytes
	blockBytes = 3*splitBytes + 64
	blockLines = 3 * splitBytes / 64
)

// Registers of splitting: what rounds a number's upper half, and what keeps it.
var halfUnit, upperHalf = Z30, Z31

func loadSplitConstants(tmp Register) {
	MOVL(U32(0x8000), tmp)
	VPBROADCASTD(tmp, halfUnit)
	MOVL(U32(0xffff0000), tmp)
	VPBROADCASTD(tmp, upperHalf)
	loadRangeConstants(tmp)
}

// splitPair writes the thirds of 16 numbers in Z0 and 16 in Z1, two by two, the one of
// Z0 low: rounding to the upper half leaves a rest of 16 bits, and rounding that one of eight, so
// that the three add up to the number.
func splitPair(to GPPhysical) {
	inOrder(splitting(to, 0, splitBytes, true))
}

// splitting is the instructions of splitPair, with thirds so many bytes apart, or those that cut thirds off where
// they would be rounded, which are fewer.
func splitting(to GPPhysical, at, apart int, rounded bool) (work []func()) {
	do := func(f func()) { work = append(work, f) }
	x, top := []VecPhysical{Z0, Z1}, []VecPhysical{Z2, Z3}
	for third := range 3 {
		top := top
		if third < 2 {
			from := x
			if rounded {
				from = top
				for i := range 2 {
					do(func() { VPADDD(halfUnit, x[i], top[i]) })
				}
			}
			for i := range 2 {
				do(func() { VPANDD(upperHalf, from[i], top[i]) })
			}
			for i := range 2 {
				do(func() { VSUBPS(top[i], x[i], x[i]) })
			}
		} else {
			top = x
		}
		do(func() { VPSRLD(Imm(16), top[0], top[0]) })
		// top[0] | top[1] & upperHalf: the last rest of a number below 1e-32 is subnormal, with
		// bits in its lower half, which would become the exponent of the other number.
		do(func() { VPTERNLOGD(U8(0xf8), upperHalf, top[1], top[0]) })
		do(func() { VMOVUPS(top[0], Mem{Base: to, Disp: at + third*apart}) })
	}
	return work
}

// splitRows: 32 numbers of a row make a line of three tiles, number j beside number 16+j.
func splitRows() {
	dst, ranges, src, rows, cols, stride := RDI, R14, RSI, RDX, RCX, R8
	frame.Func("splitRows512", "func(dst, ranges, src *byte, rows, cols, stride int)", dst, ranges, src, rows, cols,
		stride)
	left, s, d, n := R10, R11, R12, R13
	loadSplitConstants(EAX)
	lastMasks(cols, left, RAX)
	rowRange := func() {
		for i, x := range []VecPhysical{Z0, Z1} {
			VPANDD(absolute, x, zmm(8+i))
			widenRangeBy(zmm(8+i), zmm(10+i), zmm(4+i), zmm(6+i))
		}
	}
	Label("row")
	clearRanges()
	MOVQ(src, s)
	MOVQ(dst, d)
	MOVQ(cols, n)
	frame.Test(n, n, JEQ, "last")
	Label("block")
	VMOVUPS(Mem{Base: s}, Z0)
	VMOVUPS(Mem{Base: s, Disp: 64}, Z1)
	rowRange()
	splitPair(d)
	ADDQ(U32(128), s)
	ADDQ(U32(blockBytes), d)
	frame.Next(n, "block")
	Label("last")
	frame.Test(left, left, JEQ, "next")
	VMOVUPS_Z(Mem{Base: s}, K3, Z0)
	VMOVUPS_Z(Mem{Base: s, Disp: 64}, K4, Z1)
	rowRange()
	splitPair(d)
	Label("next")
	joinRow(ranges, Z4, Z5, Z6, Z7)
	ADDQ(stride, src)
	ADDQ(Imm(64), dst)
	ADDQ(Imm(4), ranges)
	frame.Next(rows, "row")
	frame.End()
}

// splitAhead is how many bytes ahead splitPairs asks for rows.
const splitAhead = 8 << 10

// splitPairs: row r of a block of 32 goes beside row 16+r, into line r of tiles of
// 16 columns. Rows past the last are zeros.
func splitPairs() {
	dst, first, src, rows, cols, stride, panel := RDI, R14, RSI, RDX, RCX, R8, R9
	frame.Func("splitPairs512", "func(dst, ranges, src *byte, rows, cols, stride, panel int)", dst, first, src, rows,
		cols, stride, panel)
	left, s, low, d, n, line, ranges := R10, R11, RBX, R12, R13, R15, R14
	var firstRanges Mem
	frame.Locals(&firstRanges)
	MOVQ(first, firstRanges)
	loadSplitConstants(EAX)
	lastMasks(cols, left, RAX)
	// Masks of a line's two rows, K5 and K6, are all lanes or none; K3 and K4 the last columns'.
	half := func(a, b Mem, out int, m0, m1 OpmaskPhysical) {
		VMOVUPS_Z(a, m0, Z0)
		VMOVUPS_Z(b, m1, Z1)
		joinColumnPair(ranges, out/tileBytes*64)
		if out > 0 {
			LEAQ(Mem{Base: d, Disp: out}, RAX)
			splitPair(RAX)
		} else {
			splitPair(d)
		}
	}
	ask := func() { // of a tall matrix, a slice ahead
		for _, row := range []GPPhysical{s, low} {
			for line := range 2 {
				PREFETCHT0(Mem{Base: row, Disp: splitAhead + 64*line})
			}
		}
	}
	Label("block")
	XORQ(line, line)
	Label("line")
	LEAQ(Mem{Base: src}, s)
	MOVQ(firstRanges, ranges)
	MOVQ(stride, low)
	SHLQ(Imm(4), low)
	ADDQ(s, low)
	MOVQ(dst, d)
	// Whether rows line and 16+line are there.
	rowMask := func(first uint64, k OpmaskPhysical, label string) {
		KXORW(k, k, k)
		LEAQ(Mem{Base: line, Disp: int(first)}, RAX)
		frame.Compare(RAX, rows, JGE, label)
		KMOVW(K1, k)
		Label(label)
	}
	rowMask(0, K5, "noUpper")
	rowMask(16, K6, "noLower")
	MOVQ(cols, n)
	frame.Test(n, n, JEQ, "last")
	Label("panel")
	ask()
	half(Mem{Base: s}, Mem{Base: low}, 0, K5, K6)
	half(Mem{Base: s, Disp: 64}, Mem{Base: low, Disp: 64}, tileBytes, K5, K6)
	ADDQ(U32(128), s)
	ADDQ(U32(128), low)
	ADDQ(panel, d)
	ADDQ(U32(2*rangesHigh), ranges)
	frame.Next(n, "panel")
	Label("last")
	frame.Test(left, left, JEQ, "next")
	ask()
	KANDW(K3, K5, K2)
	KANDW(K3, K6, K7)
	half(Mem{Base: s}, Mem{Base: low}, 0, K2, K7)
	KANDW(K4, K5, K2)
	KANDW(K4, K6, K7)
	half(Mem{Base: s, Disp: 64}, Mem{Base: low, Disp: 64}, tileBytes, K2, K7)
	Label("next")
	ADDQ(stride, src)
	ADDQ(Imm(64), dst)
	INCQ(line)
	frame.Compare(line, Imm(16), JLT, "line")
	MOVQ(stride, RAX)
	SHLQ(Imm(4), RAX)
	ADDQ(RAX, src)
	ADDQ(U32(blockBytes-16*64), dst)
	SUBQ(Imm(32), rows)
	JG(LabelRef("block"))
	frame.End()
}

// Offsets of the fields of simd.Tiles32.
const (
	field32A = 8 * iota
	field32B
	field32C
	field32APanel
	field32BPanel
	field32CRow
	field32Depth
	field32Rows
	field32Panels
	field32Add
	field32Ahead
	field32AheadStep
	field32AheadApart
)

// product32 goes over panels of 32 columns, in each over strips of 32 rows, in each
// over depth: six of the nine products of thirds, the smallest first.
func product32() {
	begin("tiles32", wholeTiles())
	c, crow, line := R8, R9, RCX
	a, b, tmp, stripA := RSI, RDI, RBX, RDX
	k, rows, panels, ahead, between := R11, R12, R10, R15, R14
	var panelB, panelC Mem
	frame.Locals(&panelB, &panelC)
	frame.Keep(field32B, b, panelB)
	frame.Keep(field32C, c, panelC)
	frame.Get(field32CRow, crow)
	frame.Get(field32Panels, panels)
	frame.Get(field32Ahead, ahead)
	frame.Get(field32AheadApart, between)
	MOVQ(U32(64), line)

	Label("panel")
	frame.Get(field32Rows, rows)
	frame.Get(field32A, stripA)
	MOVQ(panelC, c)
	Label("rows")
	MOVQ(panelB, b)
	MOVQ(stripA, a)
	startSums(c, crow, 32, frame.Field(field32Add), func() { eachC(c, crow, tmp, loadTile) }, 4)
	frame.Get(field32Depth, k)
	Label("depth")
	MOVQ(ahead, tmp)
	multiplyThreeWay(a, b, line, tmp, between)
	ADDQ(frame.Field(field32AheadStep), ahead)
	ADDQ(U32(blockBytes), a)
	ADDQ(U32(blockBytes), b)
	frame.Next(k, "depth")
	eachC(c, crow, tmp, storeTile)

	ADDQ(frame.Field(field32APanel), stripA)
	MOVQ(crow, tmp)
	SHLQ(Imm(5), tmp)
	ADDQ(tmp, c)
	frame.Next(rows, "rows")

	MOVQ(panelB, b)
	ADDQ(frame.Field(field32BPanel), b)
	MOVQ(b, panelB)
	ADDQ(U32(128), panelC)
	frame.Next(panels, "panel")
	releaseTiles()
	RET()
}

// multiplyThreeWay multiplies a block of A with one of B, in tiles 4 to 7. The gaps between
// tile instructions ask for the
// next block of both, which makes the slow times another tenth faster. Sixteen lines are asked for at place.
func multiplyThreeWay(a, b, line, place, between GPPhysical) {
	fetched, asked := 0, 0
	gap := func() {
		lines := min(5, 2*blockLines-fetched)
		for range lines {
			PREFETCHT0(Mem{Base: []GPPhysical{a, b}[fetched%2], Disp: blockBytes + fetched/2*64})
			fetched++
		}
		nothing(apart - lines)
	}
	third := func(tile int, base GPPhysical, n int) {
		for i := range 2 {
			loadTileAt(tile+i, base, line, n*splitBytes+i*tileBytes)
			gap()
		}
	}
	four := func(lines int) {
		for i := range 4 {
			multiply(i, 4+i/2, 6+i%2)
			gap()
		}
		for range lines {
			askLine(place, between, &asked)
		}
	}
	third(4, a, 0)
	third(6, b, 2)
	four(4)
	third(6, b, 1)
	four(4)
	third(4, a, 1)
	four(4)
	third(6, b, 0)
	four(4)
	third(4, a, 2)
	four(0)
	third(4, a, 0)
	four(0)
}

// eachC loads or stores the four tiles of C: 0 and 1 side by side, 2 and 3 below.
func eachC(c, crow, tmp GPPhysical, do func(tile int, base, stride GPPhysical)) {
	do(0, c, crow)
	LEAQ(Mem{Base: c, Disp: 64}, tmp)
	do(1, tmp, crow)
	MOVQ(crow, tmp)
	SHLQ(Imm(4), tmp)
	ADDQ(c, tmp)
	do(2, tmp, crow)
	ADDQ(Imm(64), tmp)
	do(3, tmp, crow)
}

// startSums fills the tiles of sums from C, or with zeros where nothing is added to. It uses RBX.
func startSums(c, crow GPPhysical, rows int, add Mem, load func(), tiles int) {
	ownC(c, crow, rows)
	frame.Compare(add, Imm(0), JEQ, "zero")
	load()
	JMP(LabelRef("sum"))
	Label("zero")
	for i := range tiles {
		zeroTile(i)
	}
	Label("sum")
}

// ownC asks for C, which is written at the end, to own it by then. It uses RBX.
func ownC(c, crow GPPhysical, rows int) {
	MOVQ(c, RBX)
	for range rows {
		raw("LONG", U32(0x004b0d0f)) // PREFETCHW (BX)
		raw("LONG", U32(0x404b0d0f)) // PREFETCHW 64(BX)
		ADDQ(crow, RBX)
	}
}
