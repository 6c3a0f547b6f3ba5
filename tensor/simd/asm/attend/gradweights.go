package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

var gradFields = newFields(wArgs, "ptr", "index", "rows", "packed", "packStride", "left", "leftStride",
	"out", "outStep", "lanes", "group", "heads", "swaps", "slope", "tables",
	"drop", "threshold", "scale", "keys", "srcIDs", "firstSrc",
	"perm", "edge", "edgeHeads", "dots", "dleft", "dleftStride", "last", "lastPlace", "add")

// gradWeights is the backward pass's first step: for each entry, from its source
// (the row) to a destination, three numbers a head in three lists outStep bytes apart:
// the coefficient c after dropout, c times the slope of the leaky ReLU, and
// α·delta times that slope. p is for up to so many heads, more than half of them.
func gradWeights(p together) {
	f, name := gradFields, p.name("attendGradWeights")
	step := R14
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes the coefficients of an attendGradArgs.")
	Load(Param("a"), wArgs)
	loadTables(f)
	VPBROADCASTD(f.mem("packStride"), gapLanes)
	VBROADCASTSS(f.mem("scale"), scale)
	f.load("out", wOut)
	f.load("outStep", step)
	f.load("packed", wBase)
	f.load("keys", wIDs)
	XORQ(wRow, wRow)

	s, t, i, n := Z0, Z1, Z2, Z3
	factor, alpha, c, delta := Z4, Z5, Z6, Z7
	low, high := Z8, Z9
	var words Mem
	if p > 0 {
		words = AllocLocal(16)
		p.beginKeys()
	}
	Label("row")
	startEntries(f, "index")
	TESTQ(wLeft, wLeft)
	JZ(LabelRef("next"))
	f.loadRow("left", wRow, wTmp)
	headLanes(f)
	VMOVUPS_Z(Mem{Base: wTmp}, K1, mine)
	VPERMPS(mine, lanePattern, mine)
	CMPQ(f.mem("drop"), U8(0))
	JE(LabelRef("entries"))
	sourceDraw(f)

	Label("entries")
	// packed's row is right, max, 1/sum and delta, P floats each.
	if p > 0 {
		p.ask(f, wBase, 4, "last", true)
		p.lanes()
		p.words(words, i)
		p.packed(words, s, t, alpha, delta)
	} else {
		askAhead(f, wBase, "packStride", "last")
		entryWords(wIndex, i)
		VPSLLD(U8(1), i, low)
		VPMULLD(gapLanes, i, i)
		VPADDD(lanePattern, i, i)
		validLanes(f)
		MOVQ(f.mem("lanes"), R15)
		gather(wBase, 0, i, s)
		LEAQ(Mem{Base: wBase, Index: R15, Scale: 4}, wTmp)
		gather(wTmp, 0, i, t)
		LEAQ(Mem{Base: wBase, Index: R15, Scale: 8}, wTmp2)
		gather(wTmp2, 0, i, alpha)
		LEAQ(Mem{Base: wTmp, Index: R15, Scale: 8}, wTmp)
		gather(wTmp, 0, i, delta)
	}

	VADDPS(mine, s, s)
	VBROADCASTSS(lanes.Num(1), factor)
	VPXORD(n, n, n)
	VCMPPS(U8(2), n, s, K3)
	VMOVAPS(slope, K3, factor)
	VMULPS(factor, s, s)
	VSUBPS(t, s, s)
	lanes.Exp(s, t, n)
	VMULPS(s, alpha, alpha)
	VMOVUPS_Z(alpha, K1, alpha)
	VMOVAPS(alpha, c)
	CMPQ(f.mem("drop"), U8(0))
	JE(LabelRef("kept"))
	if p > 0 {
		p.keys(wIDs, words, n, high)
	} else {
		gather(wIDs, 4, low, high)
		gather(wIDs, 0, low, n)
	}
	VPADDD(n, srcFactor, n)
	draw(n, t, high)
	VMULPS_Z(scale, c, K3, c)
	Label("kept")
	VMOVUPS(c, Mem{Base: wOut})
	VMULPS(factor, c, c)
	VMOVUPS(c, Mem{Base: wOut, Index: step, Scale: 1})
	VMULPS(factor, alpha, alpha)
	VMULPS(delta, alpha, alpha)
	VMOVUPS(alpha, Mem{Base: wOut, Index: step, Scale: 2})
	ADDQ(U8(64), wOut)
	nextEntries()
	TESTQ(wLeft, wLeft)
	JG(LabelRef("entries"))
	rewind(f)

	Label("next")
	INCQ(wRow)
	CMPQ(wRow, f.mem("rows"))
	JB(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// sourceDraw sets srcFactor to what the draws of this row have in common: the source and the heads.
func sourceDraw(f fields) {
	f.load("srcIDs", wTmp)
	TESTQ(wTmp, wTmp)
	JZ(LabelRef("noids"))
	MOVL(Mem{Base: wTmp, Index: wRow, Scale: 4}, wTmp.As32())
	JMP(LabelRef("hash"))
	Label("noids")
	f.load("firstSrc", wTmp)
	ADDL(wRow.As32(), wTmp.As32())
	Label("hash")
	IMUL3L(I32(int32(drawSrcC0())), wTmp.As32(), wTmp.As32())
	VPBROADCASTD(wTmp.As32(), srcFactor)
	VPADDD(headDraw, srcFactor, srcFactor)
}

// ones adds the only heads of up to sixteen entries, one after the other: a place may come twice.
func ones(s VecPhysical) {
	words := AllocLocal(64)
	VMOVUPS(s, words)
	for k := range 16 {
		MOVL(Mem{Base: wIndex, Disp: 4 * k}, wTmp.As32())
		to := Mem{Base: wBase, Index: wTmp, Scale: 4}
		VMOVSS(words.Offset(4*k), X1)
		VADDSS(to, X1, X1)
		VMOVSS(X1, to)
		if k < 15 {
			CMPQ(wLeft, U8(k+1))
			JE(LabelRef("placed"))
		}
	}
}

// gradScores is the last step: the gradient of each entry's score, from the three
// lists and the dot products, summed over the row into dleft and put to its place in edge, or added to its
// destination's there. p is for so many heads that lie together in edge; only they and single heads are added.
func gradScores(p together) {
	f, name := gradFields, p.name("attendGradScores")
	step, dots := R14, RBX
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes the gradients of scores of an attendGradArgs.")
	Load(Param("a"), wArgs)
	loadTables(f)
	VPBROADCASTD(f.mem("edgeHeads"), gapLanes)
	f.load("out", wOut)
	f.load("outStep", step)
	f.load("dots", dots)
	f.load("edge", wBase)
	XORQ(wRow, wRow)
	s, t, place := Z0, Z1, Z2

	Label("row")
	startEntries(f, "perm")
	VPXORD(total, total, total)
	TESTQ(wLeft, wLeft)
	JZ(LabelRef("store"))
	Label("entries")
	if p > 0 {
		p.ask(f, wBase, 1, "lastPlace", false)
		p.lanes()
	} else {
		askAhead(f, wBase, "edgeHeads", "lastPlace")
		validLanes(f)
	}
	VMOVUPS(Mem{Base: wOut, Index: step, Scale: 1}, s)
	VMOVUPS(Mem{Base: wOut, Index: step, Scale: 2}, t)
	VFMSUB132PS(Mem{Base: dots}, t, s)
	VADDPS(s, total, K1, total)
	CMPQ(f.mem("add"), U8(0))
	JNE(LabelRef("add"))
	if p > 0 {
		p.put(s, false)
	} else {
		entryWords(wIndex, place)
		VPMULLD(gapLanes, place, place)
		VPADDD(lanePattern, place, place)
		VSCATTERDPS(s, K1, Mem{Base: wBase, Index: place, Scale: 4})
	}
	JMP(LabelRef("placed"))
	Label("add")
	if p > 0 {
		p.put(s, true)
	} else {
		ones(s)
	}
	Label("placed")
	ADDQ(U8(64), wOut)
	ADDQ(U8(64), dots)
	nextEntries()
	TESTQ(wLeft, wLeft)
	JG(LabelRef("entries"))
	rewind(f)
	LEAQ(Mem{Base: dots, Index: wLeft, Scale: 4}, dots)
	overEntries(total, t, func(a, b VecPhysical, k OpmaskPhysical) { VADDPS(a, b, k, b) })
	Label("store")
	f.loadRow("dleft", wRow, wTmp)
	headLanes(f)
	VMOVUPS(total, K1, Mem{Base: wTmp})
	INCQ(wRow)
	CMPQ(wRow, f.mem("rows"))
	JB(LabelRef("row"))
	VZEROUPPER()
	RET()
}
