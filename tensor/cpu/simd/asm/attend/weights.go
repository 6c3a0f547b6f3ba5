package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
	"starling/tensor/cpu/simd/asm/lanes"
)

// Registers of the loops over coefficients.
var (
	wArgs  = RDI
	wRow   = RDX
	wIndex = R8  // of the next entry
	wLeft  = R10 // entries left in the row
	wGroup = R11 // entries in a vector
	wOut   = R12
	wFull  = R13 // 0xffff
	wTmp   = RAX
	wTmp2  = RCX
	wBase  = RSI
	wIDs   = RBX
	wAsk   = RBP
	wHeads = R9 // mask of the lanes that are heads

	lanePattern = Z31 // l % P
	entryLane   = Z30 // l / P
	headDraw    = Z29 // what dropout's draw takes of the head
	slope       = Z28
	gapLanes    = Z27
	mine        = Z26 // the row's own score
	top         = Z25
	total       = Z24
	keyLow      = Z23
	keyHigh     = Z22
	threshold   = Z21
	srcFactor   = Z20
)

var weightFields = newFields(wArgs, "ptr", "index", "rows", "left", "leftStride", "right", "rightStride",
	"max", "maxStride", "inv", "invStride", "out", "lanes", "group", "heads", "swaps", "slope", "tables",
	"drop", "threshold", "key", "dstIDs", "firstDst", "srcIDs", "firstSrc", "last")

// loadTables loads what depends on the number of heads.
func loadTables(f fields) {
	f.load("tables", wTmp)
	VMOVDQU32(Mem{Base: wTmp}, lanePattern)
	VMOVDQU32(Mem{Base: wTmp, Disp: 64}, entryLane)
	VMOVDQU32(Mem{Base: wTmp, Disp: 128}, headDraw)
	VBROADCASTSS(f.mem("slope"), slope)
	VPBROADCASTD(f.mem("threshold"), threshold)
	f.load("group", wGroup)
	f.load("heads", wHeads)
	MOVL(U32(0xffff), wFull.As32())
	// Which steps of a sum over lanes stay within a head: bit d of swaps, for lanes l and l^d.
	f.load("swaps", wTmp)
	for i, k := range swapMasks {
		MOVQ(wTmp, wTmp2)
		SHRQ(U8(16*i), wTmp2)
		KMOVW(wTmp2.As32(), k)
	}
}

var swapMasks = []OpmaskPhysical{K4, K5, K6, K7}

// overEntries combines the lanes of v that belong to the same head, with op.
func overEntries(v, t VecPhysical, op func(a, b VecPhysical, k OpmaskPhysical)) {
	for i, d := range []int{1, 2, 4, 8} {
		lanes.Swap(d, v, t)
		op(t, v, swapMasks[i])
	}
}

// validLanes sets K1 to the lanes of entries left and of heads.
func validLanes(f fields) {
	MOVQ(wLeft, wTmp)
	IMULQ(f.mem("lanes"), wTmp)
	MOVL(U32(16), wTmp2.As32())
	CMPQ(wTmp, wTmp2)
	CMOVQGT(wTmp2, wTmp)
	BZHIL(wTmp.As32(), wFull.As32(), wTmp.As32())
	ANDL(wHeads.As32(), wTmp.As32())
	KMOVW(wTmp.As32(), K1)
}

// entryWords loads the words of list, one an entry, at offset from the next entry, to the lanes of their entries.
func entryWords(list GPPhysical, to VecPhysical) {
	MOVL(U32(16), wTmp2.As32())
	MOVQ(wLeft, wTmp)
	CMPQ(wTmp, wTmp2)
	CMOVQGT(wTmp2, wTmp)
	BZHIL(wTmp.As32(), wFull.As32(), wTmp.As32())
	KMOVW(wTmp.As32(), K2)
	VMOVDQU32_Z(Mem{Base: list}, K2, to)
	VPERMD(to, entryLane, to)
}

// gather loads float32 or words at base + 4·index in the lanes of K1; others become 0.
func gather(base GPPhysical, disp int, index, to VecPhysical) {
	KMOVW(K1, K2)
	VPXORD(to, to, to)
	VGATHERDPS(Mem{Base: base, Index: index, Scale: 4, Disp: disp}, K2, to)
}

// leaky replaces s by the leaky ReLU of it. It uses K3.
func leaky(s, t VecPhysical) {
	VPXORD(t, t, t)
	VCMPPS(U8(2), t, s, K3) // s <= 0
	VMULPS(slope, s, K3, s)
}

// draw finishes the hash whose first sum is x and sets K3 to the lanes whose upper half, the
// draw, is not below the threshold.
func draw(threshold, x, t, high VecPhysical) {
	VPSRLD(U8(16), x, t)
	VPXORD(t, x, x)
	VPMULLD_BCST(lanes.Bits(0x7feb352d), x, x)
	VPSRLD(U8(15), x, t)
	VPTERNLOGD(U8(0x96), high, t, x)
	VPMULLD_BCST(lanes.Bits(0x846ca68b), x, x)
	VPCMPUD(U8(5), threshold, x, K3)
}

// aheadWords is how many entries ahead small rows are asked for.
const aheadWords = 24

// askAhead asks for the small rows (stride numbers apart, at base) that as many entries as a
// vector has will need later: their latency
// is all that these loops wait for.
func askAhead(f fields, base GPPhysical, stride, last string) {
	again, stop := lanes.NewLabel("ask"), lanes.NewLabel("asked")
	LEAQ(Mem{Base: wIndex, Disp: 4 * aheadWords}, wTmp)
	MOVQ(wGroup, wAsk)
	Label(again)
	frame.Compare(wTmp, f.mem(last), JA, stop)
	MOVL(Mem{Base: wTmp}, wTmp2.As32())
	IMULQ(f.mem(stride), wTmp2)
	PREFETCHT0(Mem{Base: base, Index: wTmp2, Scale: 4})
	ADDQ(U8(4), wTmp)
	frame.Next(wAsk, again)
	Label(stop)
}

// startEntries sets wIndex and wLeft to the row's entries in a list of words.
func startEntries(f fields, list string) {
	f.load("ptr", wTmp)
	MOVQ(Mem{Base: wTmp, Index: wRow, Scale: 8}, wTmp2)
	MOVQ(Mem{Base: wTmp, Index: wRow, Scale: 8, Disp: 8}, wLeft)
	SUBQ(wTmp2, wLeft)
	f.load(list, wIndex)
	LEAQ(Mem{Base: wIndex, Index: wTmp2, Scale: 4}, wIndex)
}

// rewind goes back to where the next row starts, right after the entries: the
// last vector may be part empty.
func rewind(f fields) {
	IMULQ(f.mem("lanes"), wLeft)
	LEAQ(Mem{Base: wOut, Index: wLeft, Scale: 4}, wOut)
}

// nextEntries moves on by a vector's entries.
func nextEntries() {
	LEAQ(Mem{Base: wIndex, Index: wGroup, Scale: 4}, wIndex)
	SUBQ(wGroup, wLeft)
}

// drawC0 and drawSrc are package simd's.
const drawC0, drawSrc = 0x9e3779b1, 0x85ebca6b

func drawSrcC0() uint32 {
	c, s := uint32(drawC0), uint32(drawSrc)
	return c * s
}

// weights is the forward pass's coefficients: out gets drop(exp(e - max)) without
// dropout's scale, in the order of entries, P an entry.
func weights() {
	f, name := weightFields, "attendWeights512"
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes the coefficients of an attendArgs.")
	Load(Param("a"), wArgs)
	loadTables(f)
	VPBROADCASTD(f.mem("leftStride"), gapLanes)
	f.load("out", wOut)
	f.load("left", wBase)
	f.load("srcIDs", wIDs)
	XORQ(wRow, wRow)
	VPBROADCASTD(lanes.Bits(drawSrcC0()), srcFactor)

	Label("row")
	startEntries(f, "index")
	VPXORD(top, top, top)
	VPXORD(total, total, total)
	frame.Test(wLeft, wLeft, JZ, "store")
	f.loadRow("right", wRow, wTmp)
	headLanes(f)
	VMOVUPS_Z(Mem{Base: wTmp}, K1, mine)
	VPERMPS(mine, lanePattern, mine)
	VBROADCASTSS(lanes.Bits(0xff800000), top)
	scoresOf(f)
	frame.Compare(f.mem("drop"), U8(0), JE, "drawn")
	rowKey(f)
	Label("drawn")
	exponentials(f)
	MOVQ(wOut, f.mem("out"))

	Label("store")
	headLanes(f)
	for _, x := range []struct {
		name string
		v    VecPhysical
	}{{"max", top}, {"inv", total}} {
		f.loadRow(x.name, wRow, wTmp)
		VMOVUPS(x.v, K1, Mem{Base: wTmp})
	}
	INCQ(wRow)
	frame.Compare(wRow, f.mem("rows"), JB, "row")
	frame.End()
}

// scoresOf leaves a row's scores in out, and the largest of each head in top.
func scoresOf(f fields) {
	s, t, j := Z0, Z1, Z2
	MOVQ(wIndex, R14)
	MOVQ(wLeft, R15)
	Label("score")
	askAhead(f, wBase, "leftStride", "last")
	entryWords(wIndex, j)
	VPMULLD(gapLanes, j, j)
	VPADDD(lanePattern, j, j)
	validLanes(f)
	gather(wBase, 0, j, s)
	VADDPS(mine, s, s)
	leaky(s, t)
	VMAXPS(s, top, K1, top)
	VMOVUPS(s, Mem{Base: wOut})
	ADDQ(U8(64), wOut)
	nextEntries()
	frame.Test(wLeft, wLeft, JG, "score")
	MOVQ(R14, wIndex)
	MOVQ(R15, wLeft)
	f.load("out", wOut)
	overEntries(top, t, func(a, b VecPhysical, k OpmaskPhysical) { VMAXPS(a, b, k, b) })
}

// exponentials makes coefficients of the scores in out, and the inverse of each head's sum in total.
func exponentials(f fields) {
	s, t, j := Z0, Z1, Z2
	Label("exp")
	validLanes(f)
	VMOVUPS(Mem{Base: wOut}, s)
	VSUBPS(top, s, s)
	lanes.Exp(s, t, j)
	VMOVUPS_Z(s, K1, s)
	VADDPS(s, total, total)
	frame.Compare(f.mem("drop"), U8(0), JE, "kept")
	dropEntries(f, s, t, j)
	Label("kept")
	VMOVUPS(s, Mem{Base: wOut})
	ADDQ(U8(64), wOut)
	nextEntries()
	frame.Test(wLeft, wLeft, JG, "exp")
	rewind(f)
	overEntries(total, t, func(a, b VecPhysical, k OpmaskPhysical) { VADDPS(a, b, k, b) })
	VBROADCASTSS(lanes.Num(1), t)
	VDIVPS(total, t, total)
}

// dropEntries zeroes those of s that draws say.
func dropEntries(f fields, s, t, j VecPhysical) {
	entryWords(wIndex, j)
	frame.Test(wIDs, wIDs, JZ, "plain")
	gather(wIDs, 0, j, t)
	VMOVAPS(t, j)
	Label("plain")
	VPADDD_BCST(f.mem("firstSrc"), j, j)
	VPMULLD(srcFactor, j, j)
	VPADDD(headDraw, j, j)
	VPADDD(keyLow, j, j)
	draw(threshold, j, t, keyHigh)
	VMOVUPS_Z(s, K3, s)
}

// headLanes sets K1 to one lane a head. It keeps wTmp.
func headLanes(f fields) {
	MOVQ(f.mem("lanes"), wTmp2)
	BZHIL(wTmp2.As32(), wHeads.As32(), wTmp2.As32())
	KMOVW(wTmp2.As32(), K1)
}

// rowKey sets keyLow and keyHigh for the row's dropout (simd.RowKey).
func rowKey(f fields) {
	f.load("dstIDs", wTmp)
	frame.Test(wTmp, wTmp, JZ, "noids")
	MOVL(Mem{Base: wTmp, Index: wRow, Scale: 4}, wTmp.As32())
	JMP(LabelRef("hash"))
	Label("noids")
	f.load("firstDst", wTmp)
	ADDL(wRow.As32(), wTmp.As32())
	Label("hash")
	INCQ(wTmp)
	for _, step := range []struct {
		factor uint64
		shift  uint8
	}{{0x9e3779b97f4a7c15, 30}, {0xbf58476d1ce4e5b9, 27}, {0x94d049bb133111eb, 31}} {
		MOVQ(U64(step.factor), wTmp2)
		IMULQ(wTmp2, wTmp)
		if step.shift == 30 {
			ADDQ(f.mem("key"), wTmp)
		}
		MOVQ(wTmp, wTmp2)
		SHRQ(U8(step.shift), wTmp2)
		XORQ(wTmp2, wTmp)
	}
	VPBROADCASTD(wTmp.As32(), keyLow)
	SHRQ(U8(32), wTmp)
	VPBROADCASTD(wTmp.As32(), keyHigh)
}
