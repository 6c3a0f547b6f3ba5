package main

import (
	"fmt"
	"math/bits"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// The backward pass goes through the entries of a source's row in batches of some groups, which fill a vector with one number
// a head: coefficients of a batch, its wide rows, gradients of its scores. An exponential is a chain of instructions that wait for
// each other, so a batch has several under way. Coefficients are made one batch ahead, so that nobody waits for them,
// and all of it is in flight at once: what is computed hides behind the wide rows that are waited for. What
// depends on how heads lie in vectors is in the body of a shape; the rest is shared, and goes back to the shape by comparing.

var backFields = newFields(args, "ptr", "index", "rows", "src", "srcStride", "dst", "dstStride", "z", "zStride",
	"shape", "each", "whole", "headBytes", "lastByte", "shift", "tail", "evens", "odds", "runs", "dstHead", "dstShift", "dstWhole", "unused", "mode", "loop", "prefetch", "last", "ask", "buf",
	"packed", "packStride", "packLanes", "lanes", "together", "heads", "groupBytes", "batchBytes", "tables", "left", "leftStride", "dleft", "dleftStride",
	"slope", "drop", "threshold", "scale", "keys", "srcIDs", "firstSrc", "edge", "edgeStride", "perm", "add",
	// Room: where the batch starts, which half of the coefficients' room is its own, and how far coefficients are.
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
	// Of the group that coefficients are made for:
	next      = R12 // its first entry; batchEnd is set later
	coefLanes = K7  // its lanes
)

// A batch has so many groups and entries at most.
const (
	batchGroups  = 8
	batchEntries = 32
)

// What lies at buf: of a batch's groups, one after the other, coefficients after dropout, the same times the slope of the leaky
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

func fmtHeads(name string, heads int) string { return fmt.Sprintf("%s%d", name, heads) }

func inBuf(at int) Mem { return Mem{Base: buf, Disp: at} }

// backward is the backward pass of rows whose heads, a power of two, are the shape's.
func backward(bf16 bool) {
	f, name := backFields, "attendGrad512"
	if bf16 {
		name += "b16"
	}
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes an attendGradArgs.")
	Load(Param("a"), args)
	f.load("src", src)
	ADDQ(f.mem("whole"), src)
	f.load("srcStride", stride)
	f.load("prefetch", ahead)
	f.load("last", last)
	f.load("buf", buf)
	f.load("ptr", tmp)
	MOVQ(Mem{Base: tmp}, tmp)
	f.load("index", index)
	LEAQ(Mem{Base: index, Index: tmp, Scale: 4}, index)
	for i, field := range []string{"tail", "evens", "odds"} {
		f.load(field, tmp)
		KMOVD(tmp.As32(), []OpmaskPhysical{K1, K5, K6}[i])
	}
	lanes.LoadUpper(upper)
	XORQ(row, row)

	MOVQ(index, f.mem("coefIndex"))
	MOVQ(index, f.mem("coefEnd"))
	toBatch()
	Label("row")
	f.load("ptr", tmp)
	MOVQ(Mem{Base: tmp, Index: row, Scale: 8, Disp: 8}, end)
	f.load("index", tmp)
	LEAQ(Mem{Base: tmp, Index: end, Scale: 4}, end)
	VPXORD(Z16, Z16, Z16)
	VMOVUPS(Z16, inBuf(atTotal))
	toShape("start", bf16, 0)
	for _, p := range []together{0, 4, 8, 16} {
		p.coefficients(bf16)
	}
	eachFolded(bf16, folded.backBody)
	for heads := 1; heads <= 16; heads *= 2 {
		scores(bf16, heads)
	}
	if bf16 {
		storeStaged(f, inBuf(atZ), part, false)
		JMP(LabelRef("written"))
		storeStaged(f, inBuf(atZ), part, true)
	}
	Label("written")
	INCQ(row)
	CMPQ(row, f.mem("rows"))
	JB(LabelRef("row"))
	SFENCE() // for rows that went past the caches
	VZEROUPPER()
	RET()
}

// toShape goes on at a label of the shape's, which has so many heads (0: any).
func toShape(label string, bf16 bool, heads int) {
	var list []folded
	eachFolded(bf16, func(t folded) {
		if heads == 0 || heads == t.heads {
			list = append(list, t)
		}
	})
	slices.SortFunc(list, func(a, b folded) int { return a.shape() - b.shape() })
	bisect(backFields.mem("shape"), list, func(t folded) string { return t.label(label) }, folded.shape)
}

// coefRow moves on to the next row that has entries, whose coefficients are to be made. What they take of the row goes to memory, since
// sums take the registers. It goes to made after the last row.
func coefRow(f fields, made string) {
	again, noIDs, hash, drawn := lanes.NewLabel("again"), lanes.NewLabel("noids"), lanes.NewLabel("hash"), lanes.NewLabel("drawn")
	r := at
	Label(again)
	f.load("coefRow", r)
	CMPQ(r, f.mem("rows"))
	JAE(LabelRef(made))
	f.load("ptr", tmp)
	MOVQ(Mem{Base: tmp, Index: r, Scale: 8, Disp: 8}, tmp)
	f.load("index", tmp2)
	LEAQ(Mem{Base: tmp2, Index: tmp, Scale: 4}, tmp)
	MOVQ(tmp, f.mem("coefEnd"))
	INCQ(f.mem("coefRow"))
	CMPQ(tmp, next)
	JE(LabelRef(again))
	mine, t := Z16, Z17
	f.loadRow("left", r, tmp)
	f.load("heads", tmp2)
	KMOVW(tmp2.As32(), K2)
	f.load("tables", tmp2)
	VMOVUPS_Z(Mem{Base: tmp}, K2, mine)
	VMOVDQU32(Mem{Base: tmp2}, t)
	VPERMPS(mine, t, mine)
	VMOVUPS(mine, inBuf(atMine))
	CMPQ(f.mem("drop"), U8(0))
	JE(LabelRef(drawn))
	f.load("srcIDs", tmp)
	TESTQ(tmp, tmp)
	JZ(LabelRef(noIDs))
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
	CMPQ(tmp, f.mem("ask"))
	JA(LabelRef(stop))
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
		CMPQ(tmp2, f.mem("askEnd"))
		JB(LabelRef(again))
	} else {
		for k := range n {
			MOVL(Mem{Base: next, Disp: 4 * (aheadWords + k)}, tmp.As32())
			IMULQ(f.mem("packStride"), tmp)
			for line := range int(p) / 4 {
				PREFETCHT0(Mem{Base: packed, Index: tmp, Scale: 4, Disp: 64 * line})
			}
			MOVL(Mem{Base: places, Disp: 4 * (aheadWords + k)}, tmp2.As32())
			IMULQ(f.mem("edgeStride"), tmp2)
			PREFETCHT0(Mem{Base: edge, Index: tmp2, Scale: 4})
		}
		CMPQ(f.mem("drop"), U8(0))
		JE(LabelRef(keys))
		f.load("keys", edge)
		for k := range n {
			MOVL(Mem{Base: next, Disp: 4 * (aheadWords + k)}, tmp.As32())
			PREFETCHT0(Mem{Base: edge, Index: tmp, Scale: 8})
		}
		Label(keys)
	}
	Label(stop)
}

// coefficients makes those of the batch that follows, of any number of heads or of four or eight that lie together. Then it
// goes on with the wide rows of the batch whose coefficients were made before.
func (p together) coefficients(bf16 bool) {
	f := backFields
	name := func(s string) string { return p.name(s) }
	s, t, n, factor, alpha, c, delta := Z16, Z17, Z18, Z19, Z20, Z21, Z22
	i, low, high := Z23, Z24, Z25
	out, words := part, inBuf(atWords)
	Label(name("batch"))
	f.load("coefIndex", next)
	CMPQ(next, f.mem("coefEnd"))
	JB(LabelRef(name("same")))
	coefRow(f, name("made"))
	Label(name("same"))
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
	Label(name("group"))
	p.askSmall(f)
	f.load("coefOut", out)
	p.size(f, f.mem("coefIndex"))
	p.lanesOf(f, at)
	VMOVDQU32_Z(Mem{Base: next}, K2, i)
	f.load("packed", at)
	if p > 0 {
		VMOVDQU32(i.AsX(), words)
		p.packed(f, at, tmp, words, s, t, alpha, delta, []VecPhysical{Z23, Z24, Z25, Z26})
	} else {
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
	VADDPS(inBuf(atMine), s, s)
	VBROADCASTSS(lanes.Num(1), factor)
	VPXORD(n, n, n)
	VCMPPS(U8(2), n, s, K3)
	VBROADCASTSS(f.mem("slope"), K3, factor)
	VMULPS(factor, s, s)
	VSUBPS(t, s, s)
	lanes.Exp(s, t, n)
	VMULPS_Z(s, alpha, coefLanes, alpha)
	VMOVAPS(alpha, c)
	CMPQ(f.mem("drop"), U8(0))
	JE(LabelRef(name("kept")))
	f.load("keys", at)
	if p > 0 {
		p.keys(at, tmp, words, n, high)
	} else {
		gatherEntries(at, 4, low, high)
		gatherEntries(at, 0, low, n)
	}
	VPADDD(inBuf(atDraw), n, n)
	VPBROADCASTD(f.mem("threshold"), s)
	draw(s, n, t, high)
	VMULPS_BCST_Z(f.mem("scale"), c, K3, c)
	Label(name("kept"))
	VMOVUPS(c, Mem{Base: out, Disp: atCoef})
	VMULPS(factor, c, c)
	VMOVUPS(c, Mem{Base: out, Disp: atSlope})
	VMULPS(factor, alpha, alpha)
	VMULPS(delta, alpha, alpha)
	VMOVUPS(alpha, Mem{Base: out, Disp: atDelta})
	ADDQ(U8(64), f.mem("coefOut"))
	if p > 0 {
		ADDQ(U8(4*p.entries()), next)
	} else {
		ADDQ(f.mem("groupBytes"), next)
	}
	CMPQ(next, f.mem("coefIndex"))
	JB(LabelRef(name("group")))
	Label(name("made"))
	CMPQ(f.mem("begun"), U8(0))
	JNE(LabelRef(name("begun")))
	INCQ(f.mem("begun"))
	XORQ(U32(atNext), f.mem("slot"))
	JMP(LabelRef("row"))
	Label(name("begun"))
	MOVQ(buf, weight)
	ADDQ(f.mem("slot"), weight)
	MOVQ(index, f.mem("first"))
	MOVQ(Mem{Base: weight, Disp: atEnd}, batchEnd)
	LEAQ(inBuf(atParts), part)
	toShape("entry", bf16, int(p))
}

// gatherEntries loads float32 or words at base + 4·index in coefLanes; others become 0.
func gatherEntries(base GPPhysical, disp int, index, to VecPhysical) {
	KMOVW(coefLanes, K2)
	VPXORD(to, to, to)
	VGATHERDPS(Mem{Base: base, Index: index, Scale: 4, Disp: disp}, K2, to)
}

// backBody is a row's start, an entry, and its end.
func (t folded) backBody() {
	f := backFields
	Label(t.label("start"))
	f.loadRow("z", row, at)
	ADDQ(f.mem("whole"), at)
	// Entries from anywhere keep the processor from seeing that sources follow each other.
	MOVQ(at, tmp)
	ADDQ(f.mem("zStride"), tmp)
	t.copyZ(f, at, inBuf(atZ), tmp)
	for v := range t.sums() {
		VPXORD(sums[v], sums[v], sums[v])
	}
	CMPQ(index, end)
	JAE(LabelRef(fmtHeads("total", t.heads)))
	toBatch()

	Label(t.label("entry"))
	if t.least < t.most {
		f.load("each", each)
	}
	loops := t.entryLoops()
	for _, l := range loops[1:] {
		CMPQ(f.mem("loop"), U8(l.number))
		JE(LabelRef(t.label(l.name)))
	}
	for _, l := range loops {
		if l.blocks > 0 {
			t.wholeEntries(l)
		} else {
			t.entries(l)
		}
	}

	Label(t.label("done"))
	f.loadRow("dst", row, dst)
	ADDQ(f.mem("dstWhole"), dst)
	t.storeHeads(f)
}

// toBatch goes on with the next batch.
func toBatch() {
	for _, p := range []together{4, 8, 16} {
		CMPQ(backFields.mem("together"), U8(p))
		JE(LabelRef(p.name("batch")))
	}
	JMP(LabelRef(together(0).name("batch")))
}

// storeHeads writes the row in sums to dst. Behind a head's end come columns of the next, which is stored later.
func (t folded) storeHeads(f fields) {
	row := loop{from: dst, headBytes: f.mem("dstHead"), each: f.mem("each"), load: t.store}
	streams := t.pairs() || !t.bf16 // half a block is no line
	if streams {
		TESTQ(U32(modeStream), f.mem("mode"))
		JNZ(LabelRef(t.label("stream")))
	}
	if t.bf16 {
		TESTQ(U32(modeNative), f.mem("mode"))
		JZ(LabelRef(t.label("stage")))
	}
	t.eachVector(row, f.mem("dstShift"))
	JMP(LabelRef("written"))
	if t.bf16 {
		Label(t.label("stage"))
		stageSums(inBuf(atZ), t.sums())
		JMP(LabelRef(stageName(t.pairs())))
	}
	if streams {
		Label(t.label("stream"))
		row.load = func(r, v int, to Mem) { VMOVNTPS(t.rounded(r, v), to) }
		t.eachLine(row)
		JMP(LabelRef("written"))
	}
}

// rounded is load v of run r as dst has it: as summed or, if a block, in bfloat16.
func (t folded) rounded(r, v int) VecPhysical {
	i := t.slot(r, v)
	if !t.pairs() {
		return sums[i]
	}
	lanes.JoinNative(sums[2*i], sums[2*i+1], x)
	return sums[2*i]
}

// store writes load v of run r.
func (t folded) store(r, v int, to Mem) {
	switch sum, last := t.rounded(r, v), t.last(r, v); {
	case t.bf16 && t.single:
		lanes.RoundOne(sum, x.AsY())
		storeWords(x.AsY(), to, last)
	case t.pairs():
		storeWords(sum, to, last)
	default:
		storeVector(sum, to, last)
	}
}
