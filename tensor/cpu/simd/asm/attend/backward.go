package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
	"starling/tensor/cpu/simd/asm/lanes"
)

// The backward pass goes through the entries of a source's row in batches of some groups, which
// fill a vector with one number
// a head: coefficients of a batch, its wide rows, gradients of its scores. An exponential is a
// chain of instructions that wait for
// each other, so a batch has several under way. Coefficients are made one batch ahead, so that nobody waits for them,
// and all of it is in flight at once: what is computed hides behind the wide rows that are waited for. What
// depends on how heads lie in vectors is in the loops of a shape over its entries (entries.go);
// all else is shared by the shapes of both types.

var backFields = newFields(args, "ptr", "index", "rows", "src", "srcStride", "dst", "dstStride", "z", "zStride",
	"each", "whole", "headBytes", "lastByte", "shift", "tail", "evens", "odds", "kind", "places", "few", "mode", "loop", "prefetch", "last", "ask", "buf",
	"packed", "packStride", "packLanes", "lanes", "heads", "groupBytes", "batchBytes", "tables", "left", "leftStride", "dleft", "dleftStride",
	"slope", "drop", "threshold", "scale", "keys", "srcIDs", "firstSrc", "edge", "edgeStride", "perm", "add",
	// Workspace: where the batch starts, which half of the coefficients' room is its own, and how far coefficients are.
	"first", "slot", "begun", "coefRow", "coefIndex", "coefEnd", "coefOut", "askEnd")

// Registers of the backward pass, beside those of all loops over wide rows.
var (
	buf      = R15
	batchEnd = R12
	part     = R13 // where the next entry's half-made sums go
	tmp2     = RCX
	each     = RCX                      // loads a run, while wide rows are added up
	headMask = []OpmaskPhysical{K5, K6} // of a head's last vector or, of bfloat16, of its even and odd columns
	entries  = K4                       // the lanes of a group's entries

	scoreTotal = Z27 // gradients of a row's scores, while there are any
	// Of the group that coefficients are made for:
	next      = R12 // its first entry; batchEnd is set later
	coefLanes = K7  // its lanes
)

// A batch has so many groups and entries at most.
const (
	batchGroups  = 8
	batchEntries = 32
)

// What lies at buf: of a batch's groups, one after the other, coefficients after dropout, the
// same times the slope of the leaky
// ReLU, and α·delta times that slope; then where the batch ends.
const (
	atCoef  = 0
	atSlope = 64 * batchGroups
	atDelta = 2 * atSlope
	atEnd   = 3 * atSlope
	atNext  = atEnd + 64   // all of the above once more, of another batch
	atMine  = 2 * atNext   // the score of the source that coefficients are made for
	atDraw  = atMine + 64  // what draws of that source have in common
	atTotal = atDraw + 64  // the sum of a row's gradients of scores
	atWords = atTotal + 64 // room
	atParts = atWords + 64 // half-made dot products of a batch's entries
	atZ     = atParts + 64*batchEntries
)

func inBuf(at int) Mem { return Mem{Base: buf, Disp: at} }

// backward is the backward pass of rows whose heads, a power of two, are the shape's.
func backward() {
	f := backFields
	TEXT("attendGrad512", NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc("attendGrad512 computes an attendGradArgs.")
	Load(Param("a"), args)
	f.load("src", src)
	ADDQ(f.mem("whole"), src)
	f.load("srcStride", stride)
	f.load("prefetch", ahead)
	f.load("last", last)
	f.load("buf", buf)
	firstEntry(f)
	for i, field := range []string{"tail", "evens", "odds"} {
		f.load(field, tmp)
		KMOVD(tmp.As32(), []OpmaskPhysical{K1, K5, K6}[i])
	}
	lanes.LoadUpper(upper)
	XORQ(row, row)

	MOVQ(index, f.mem("coefIndex"))
	MOVQ(index, f.mem("coefEnd"))
	Label("batch")
	frame.Compare(f.mem("lanes"), U8(usualHeads), JE, together(usualHeads).name("batch"))
	for _, p := range []together{0, usualHeads} {
		p.coefficients()
	}
	Label("row")
	rowEnd(f)
	copyRow(f, inBuf(atZ), "copied")
	Label("copied")
	for _, v := range sums {
		VPXORD(v, v, v)
	}
	VPXORD(scoreTotal, scoreTotal, scoreTotal)
	VMOVUPS(scoreTotal, inBuf(atTotal))
	frame.Compare(index, end, JB, "batch")
	JMP(LabelRef("total"))
	for _, l := range entryLoops() {
		l.entries()
	}
	for _, heads := range []int{1, usualHeads} {
		scores(heads)
	}
	Label("total")
	f.loadRow("dleft", row, tmp)
	f.load("heads", at)
	KMOVW(at.As32(), K2)
	VMOVUPS(scoreTotal, K2, Mem{Base: tmp})
	storeRow(f, inBuf(atZ), "written")
	Label("written")
	INCQ(row)
	frame.Compare(row, f.mem("rows"), JB, "row")
	SFENCE() // for rows that went by non-temporal stores
	frame.End()
}

// coefRow moves on to the next row that has entries, whose coefficients are to be made. What
// they take of the row goes to memory, since
// sums take the registers. It goes to made after the last row.
func coefRow(f fields, made string) {
	again, noIDs, hash, drawn := lanes.NewLabel("again"), lanes.NewLabel("noids"), lanes.NewLabel("hash"), lanes.NewLabel("drawn")
	r := at
	Label(again)
	f.load("coefRow", r)
	frame.Compare(r, f.mem("rows"), JAE, made)
	f.load("ptr", tmp)
	MOVQ(Mem{Base: tmp, Index: r, Scale: 8, Disp: 8}, tmp)
	f.load("index", tmp2)
	LEAQ(Mem{Base: tmp2, Index: tmp, Scale: 4}, tmp)
	MOVQ(tmp, f.mem("coefEnd"))
	INCQ(f.mem("coefRow"))
	frame.Compare(tmp, next, JE, again)
	mine, t := Z16, Z17
	f.loadRow("left", r, tmp)
	f.load("heads", tmp2)
	KMOVW(tmp2.As32(), K2)
	f.load("tables", tmp2)
	VMOVUPS_Z(Mem{Base: tmp}, K2, mine)
	VMOVDQU32(Mem{Base: tmp2}, t)
	VPERMPS(mine, t, mine)
	VMOVUPS(mine, inBuf(atMine))
	frame.Compare(f.mem("drop"), U8(0), JE, drawn)
	f.load("srcIDs", tmp)
	frame.Test(tmp, tmp, JZ, noIDs)
	MOVL(Mem{Base: tmp, Index: r, Scale: 4}, tmp.As32())
	JMP(LabelRef(hash))
	Label(noIDs)
	f.load("firstSrc", tmp)
	ADDL(r.As32(), tmp.As32())
	Label(hash)
	IMUL3L(I32(int32(drawSrcC0())), tmp.As32(), tmp.As32())
	VPBROADCASTD(tmp.As32(), t)
	VPADDD(Mem{Base: tmp2, Disp: 128}, t, t)
	VMOVDQU32(t, inBuf(atDraw))
	Label(drawn)
}

// size sets tmp to the bytes in index of the next group, of entries that end at end.
func (p together) size(f fields, end Op) {
	MOVQ(end, tmp)
	SUBQ(next, tmp)
	if p > 0 {
		MOVL(U32(4*p.entries()), tmp2.As32())
	} else {
		f.load("groupBytes", tmp2)
	}
	CMPQ(tmp, tmp2)
	CMOVQHI(tmp2, tmp)
}

// lanesOf sets K2 to the first lanes of tmp/4, the entries of a group, and coefLanes to those of their heads.
func (p together) lanesOf(f fields, all GPPhysical) {
	MOVQ(tmp, tmp2)
	SHRQ(U8(2), tmp2)
	MOVL(U32(0xffff), all.As32())
	if p > 0 {
		SHLQ(U8(bits.Len(uint(p/4))-1), tmp)
	} else {
		MOVQ(tmp2, tmp)
		IMULQ(f.mem("lanes"), tmp)
	}
	BZHIL(tmp2.As32(), all.As32(), tmp2.As32())
	KMOVW(tmp2.As32(), K2)
	BZHIL(tmp.As32(), all.As32(), tmp.As32())
	KMOVW(tmp.As32(), coefLanes)
}

// askSmall asks for what coefficients of later entries are made of and where gradients of their scores go.
func (p together) askSmall(f fields) {
	stop, keys := lanes.NewLabel("asked"), lanes.NewLabel("keys")
	n := 16
	if p > 0 {
		n = p.entries()
	}
	packed, edge, places := at, weight, part
	LEAQ(Mem{Base: next, Disp: 4 * (aheadWords + n - 1)}, tmp)
	frame.Compare(tmp, f.mem("ask"), JA, stop)
	f.load("packed", packed)
	f.load("edge", edge)
	f.load("perm", places)
	SUBQ(f.mem("index"), places)
	ADDQ(next, places)
	if p == 0 { // as many as the group may have
		f.load("groupBytes", tmp2)
		LEAQ(Mem{Base: next, Index: tmp2, Scale: 1, Disp: 4 * aheadWords}, tmp2)
		MOVQ(tmp2, f.mem("askEnd"))
		LEAQ(Mem{Base: next, Disp: 4 * aheadWords}, tmp2)
		again := lanes.NewLabel("ask")
		Label(again)
		MOVL(Mem{Base: tmp2}, tmp.As32())
		IMULQ(f.mem("packStride"), tmp)
		PREFETCHT0(Mem{Base: packed, Index: tmp, Scale: 4})
		MOVL(Mem{Base: places, Disp: 4 * aheadWords}, tmp.As32())
		IMULQ(f.mem("edgeStride"), tmp)
		PREFETCHT0(Mem{Base: edge, Index: tmp, Scale: 4})
		ADDQ(U8(4), places)
		ADDQ(U8(4), tmp2)
		frame.Compare(tmp2, f.mem("askEnd"), JB, again)
	} else {
		for k := range n {
			MOVL(Mem{Base: next, Disp: 4 * (aheadWords + k)}, tmp.As32())
			IMULQ(f.mem("packStride"), tmp)
			PREFETCHT0(Mem{Base: packed, Index: tmp, Scale: 4})
			MOVL(Mem{Base: places, Disp: 4 * (aheadWords + k)}, tmp2.As32())
			IMULQ(f.mem("edgeStride"), tmp2)
			PREFETCHT0(Mem{Base: edge, Index: tmp2, Scale: 4})
		}
		frame.Compare(f.mem("drop"), U8(0), JE, keys)
		f.load("keys", edge)
		for k := range n {
			MOVL(Mem{Base: next, Disp: 4 * (aheadWords + k)}, tmp.As32())
			PREFETCHT0(Mem{Base: edge, Index: tmp, Scale: 8})
		}
		Label(keys)
	}
	Label(stop)
}

// coefficients makes those of the batch that follows, of one head or of usualHeads. Then it
// goes on with the wide rows of the batch whose coefficients were made before.
func (p together) coefficients() {
	f := backFields
	Label(p.name("batch"))
	f.load("coefIndex", next)
	frame.Compare(next, f.mem("coefEnd"), JB, p.name("same"))
	coefRow(f, p.name("made"))
	Label(p.name("same"))
	nextBatch(f)
	Label(p.name("group"))
	p.group(f)
	ADDQ(U8(64), f.mem("coefOut"))
	if p > 0 {
		ADDQ(U8(4*p.entries()), next)
	} else {
		ADDQ(f.mem("groupBytes"), next)
	}
	frame.Compare(next, f.mem("coefIndex"), JB, p.name("group"))
	Label(p.name("made"))
	frame.Compare(f.mem("begun"), U8(0), JNE, p.name("begun"))
	INCQ(f.mem("begun"))
	XORQ(U32(atNext), f.mem("slot"))
	JMP(LabelRef("row"))
	Label(p.name("begun"))
	p.wideRows(f)
}

// nextBatch finds out where the batch whose coefficients are made ends, and where they go.
func nextBatch(f fields) {
	out := part
	f.load("slot", out)
	XORQ(U32(atNext), out)
	ADDQ(buf, out)
	MOVQ(out, f.mem("coefOut"))
	MOVQ(next, at)
	ADDQ(f.mem("batchBytes"), at)
	CMPQ(at, f.mem("coefEnd"))
	CMOVQHI(f.mem("coefEnd"), at)
	MOVQ(at, f.mem("coefIndex"))
	MOVQ(at, Mem{Base: out, Disp: atEnd})
}

// group makes the coefficients of a group: α = exp(e - max)/sum, the same after dropout, and
// what makes gradients of scores.
func (p together) group(f fields) {
	s, t, n, factor, alpha, c, delta := Z16, Z17, Z18, Z19, Z20, Z21, Z22
	low, out := Z24, part
	p.askSmall(f)
	f.load("coefOut", out)
	p.size(f, f.mem("coefIndex"))
	p.lanesOf(f, at)
	p.smallRows(f, s, t, alpha, delta, low)
	VADDPS(inBuf(atMine), s, s)
	VBROADCASTSS(lanes.Num(1), factor)
	VPXORD(n, n, n)
	VCMPPS(U8(2), n, s, K3)
	VBROADCASTSS(f.mem("slope"), K3, factor)
	VMULPS(factor, s, s)
	VSUBPS(t, s, s)
	lanes.Exp(s, t, n)
	VMULPS_Z(s, alpha, coefLanes, alpha)
	// A coefficient of 1 has a score without gradient: both its terms become exactly zero.
	VCMPPS_BCST(U8(4), lanes.Num(1), alpha, K3)
	VMOVAPS_Z(factor, K3, factor)
	VMOVAPS(alpha, c)
	frame.Compare(f.mem("drop"), U8(0), JE, p.name("kept"))
	p.dropGroup(f, c, s, t, n, low)
	Label(p.name("kept"))
	VMOVUPS(c, Mem{Base: out, Disp: atCoef})
	VMULPS(factor, c, c)
	VMOVUPS(c, Mem{Base: out, Disp: atSlope})
	VMULPS(factor, alpha, alpha)
	VMULPS(delta, alpha, alpha)
	VMOVUPS(alpha, Mem{Base: out, Disp: atDelta})
}

// smallRows loads what a group's destinations have packed: their scores, largest scores,
// inverse sums and deltas. Entries, two
// words each, stay in low.
func (p together) smallRows(f fields, s, t, alpha, delta, low VecPhysical) {
	i := Z23
	VMOVDQU32_Z(Mem{Base: next}, K2, i)
	f.load("packed", at)
	if p > 0 {
		VMOVDQU32(i.AsX(), inBuf(atWords))
		p.packed(f, at, tmp, inBuf(atWords), s, t, alpha, delta, []VecPhysical{Z23, Z24, Z25, Z26})
		return
	}
	f.load("tables", tmp)
	VMOVDQU32(Mem{Base: tmp, Disp: 64}, t)
	VPERMD(i, t, i)
	VPSLLD(U8(1), i, low)
	VPMULLD_BCST(f.mem("packStride"), i, i)
	VPADDD(Mem{Base: tmp}, i, i)
	f.load("packLanes", tmp)
	for _, to := range []VecPhysical{s, t, alpha, delta} {
		gatherEntries(at, 0, i, to)
		LEAQ(Mem{Base: at, Index: tmp, Scale: 4}, at)
	}
}

// dropGroup scales or zeroes c as draws say.
func (p together) dropGroup(f fields, c, s, t, n, low VecPhysical) {
	high := Z25
	f.load("keys", at)
	if p > 0 {
		p.keys(at, tmp, inBuf(atWords), n, high)
	} else {
		gatherEntries(at, 4, low, high)
		gatherEntries(at, 0, low, n)
	}
	VPADDD(inBuf(atDraw), n, n)
	VPBROADCASTD(f.mem("threshold"), s)
	draw(s, n, t, high)
	VMULPS_BCST_Z(f.mem("scale"), c, K3, c)
}

// wideRows goes on with those of a batch whose coefficients are there.
func (p together) wideRows(f fields) {
	MOVQ(buf, weight)
	ADDQ(f.mem("slot"), weight)
	MOVQ(index, f.mem("first"))
	MOVQ(Mem{Base: weight, Disp: atEnd}, batchEnd)
	LEAQ(inBuf(atParts), part)
	var loops []entryLoop
	for _, l := range entryLoops() {
		if l.heads == max(1, int(p)) {
			loops = append(loops, l)
		}
	}
	bisect(f.mem("loop"), loops, entryLoop.label, entryLoop.number)
}

// gatherEntries loads float32 or words at base + 4·index in coefLanes; others become 0.
func gatherEntries(base GPPhysical, disp int, index, to VecPhysical) {
	KMOVW(coefLanes, K2)
	VPXORD(to, to, to)
	VGATHERDPS(Mem{Base: base, Index: index, Scale: 4, Disp: disp}, K2, to)
}
