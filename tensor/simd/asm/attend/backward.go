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

// The backward pass goes through the entries of a source's row in groups that fill a vector with one number a head:
// coefficients of a group, its wide rows, gradients of its scores. Coefficients are made one group ahead, so that nobody
// waits for them, and all of it is in flight at once: what is computed hides behind the wide rows that are waited for. What
// depends on how heads lie in vectors is in the body of a shape; the rest is shared, and goes back to the shape by comparing.

var backFields = newFields(args, "ptr", "index", "rows", "src", "srcStride", "dst", "dstStride", "z", "zStride",
	"shape", "each", "whole", "headBytes", "lastByte", "shift", "tail", "evens", "odds", "runs", "dstHead", "dstShift", "dstWhole", "unused", "mode", "loop", "prefetch", "last", "ask", "buf",
	"packed", "packStride", "packLanes", "lanes", "together", "heads", "groupBytes", "tables", "left", "leftStride", "dleft", "dleftStride",
	"slope", "drop", "threshold", "scale", "keys", "srcIDs", "firstSrc", "edge", "edgeStride", "perm", "add",
	// Room: where the group starts, which half of the coefficients' room is its own, and how far coefficients are.
	"first", "slot", "begun", "coefRow", "coefIndex", "coefEnd", "askEnd")

// Registers of the backward pass, beside those of all loops over wide rows.
var (
	buf      = R15
	groupEnd = R12
	tmp2     = RCX
	each     = RCX                      // loads a run, while wide rows are added up
	headMask = []OpmaskPhysical{K5, K6} // of a head's last vector or, of bfloat16, of its even and odd columns
	entries  = K4                       // the lanes of the group's entries
	// Of the group that coefficients are made for:
	next      = R12 // its first entry; groupEnd is set later
	coefLanes = K7  // its lanes
)

// What lies at buf.
const (
	atCoef  = 64 * iota // coefficients after dropout
	atSlope             // the same times the slope of the leaky ReLU
	atDelta             // α·delta times that slope
	atGroup             // where the group ends, and its lanes
	atNext              // all of the above once more, of another group
	_
	_
	_
	atMine  // the score of the source that coefficients are made for
	atDraw  // what draws of that source have in common
	atTotal // the sum of a row's gradients of scores
	atWords // room
	atParts // half-made dot products of a group's entries
	atZ     = atParts + 16*64
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
	toGroup()
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

// size sets tmp to the bytes in index of a group of entries that end at end.
func (p together) size(f fields, from GPPhysical, end Op) {
	MOVQ(end, tmp)
	SUBQ(from, tmp)
	if p > 0 {
		MOVL(U32(4*p.entries()), tmp2.As32())
	} else {
		f.load("groupBytes", tmp2)
	}
	CMPQ(tmp, tmp2)
	CMOVQHI(tmp2, tmp)
}

// lanesOf sets K2 to the first lanes of tmp/4, the entries of a group, and coefLanes, tmp as well, to those of their heads.
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

// coefficients makes those of the group that follows, of any number of heads or of four or eight that lie together. Then it
// goes on with the wide rows of the group whose coefficients were made before.
func (p together) coefficients(bf16 bool) {
	f := backFields
	name := func(s string) string { return p.name(s) }
	s, t, n, factor, alpha, c, delta := Z16, Z17, Z18, Z19, Z20, Z21, Z22
	i, low, high := Z23, Z24, Z25
	out, words := part, inBuf(atWords)
	Label(name("group"))
	f.load("coefIndex", next)
	CMPQ(next, f.mem("coefEnd"))
	JB(LabelRef(name("same")))
	coefRow(f, name("made"))
	Label(name("same"))
	p.askSmall(f)
	p.size(f, next, f.mem("coefEnd"))
	f.load("slot", out)
	XORQ(U32(atNext), out)
	ADDQ(buf, out)
	LEAQ(Mem{Base: next, Index: tmp, Scale: 1}, at)
	MOVQ(at, f.mem("coefIndex"))
	MOVQ(at, Mem{Base: out, Disp: atGroup})
	p.lanesOf(f, at)
	MOVQ(tmp, Mem{Base: out, Disp: atGroup + 8})
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
	MOVQ(Mem{Base: weight, Disp: atGroup}, groupEnd)
	KMOVW(Mem{Base: weight, Disp: atGroup + 8}, entries)
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
	toGroup()

	Label(t.label("entry"))
	if t.least < t.most {
		f.load("each", each)
	}
	loops := t.entryLoops()
	for i, l := range loops[1:] {
		CMPQ(f.mem("loop"), U8(i+1))
		JE(LabelRef(t.label(l.name)))
	}
	for _, l := range loops {
		t.entries(l)
	}

	Label(t.label("done"))
	f.loadRow("dst", row, dst)
	ADDQ(f.mem("dstWhole"), dst)
	t.storeHeads(f)
}

// entryLoop is a loop over wide rows, by how it asks for those that come later: between the lines that are summed, since all at
// once keep what is computed from hiding behind them, or not at all.
type entryLoop struct {
	name string
	ask  func(Op)
}

// entryLoops lists the shape's loops, in the order of their numbers. Float32 rows of eight lines and more that are in no cache are asked for
// into the second-level one only: the first has sixteen places for lines under way, which all others would wait for.
func (t folded) entryLoops() []entryLoop {
	list := []entryLoop{{"near", nil}, {"asked", PREFETCHT0}, {"far", PREFETCHT1}}
	if t.bf16 || t.share > 1 || t.count*t.most < 8 {
		return list[:2]
	}
	return list
}

// entries goes through the wide rows of a group.
func (t folded) entries(l entryLoop) {
	f := backFields
	Label(t.label(l.name))
	entryRow()
	if l.ask != nil {
		askRow(Mem{Base: index, Index: ahead, Scale: 1}, 0, 0)
	}
	q := t.dotProducts(f, at, each, func(r int) {
		t.weights(r)
		if l.ask != nil && r > 0 {
			ADDQ(f.mem("headBytes"), tmp)
		}
	}, func(r, v int) Mem { return inBuf(atZ + t.z(r, v)) }, func(r, v int) {
		if l.ask != nil {
			t.askLine(l.ask, r, v)
		}
		if i := t.slot(r, v); t.pairs() {
			VFMADD231PS(x, w, sums[2*i])
			VFMADD231PS(y, w, sums[2*i+1])
		} else {
			VFMADD231PS(x, w, sums[i])
		}
	})
	VMOVUPS(q, Mem{Base: part})
	ADDQ(U8(64), part)
	ADDQ(U8(4*t.heads), weight)
	CMPQ(index, groupEnd)
	JB(LabelRef(t.label(l.name)))
	JMP(LabelRef(fmtHeads("scores", t.heads)))
}

// askLine asks for load v of run r of the row at tmp.
func (t folded) askLine(ask func(Op), r, v int) {
	ask(Mem{Base: tmp, Disp: -64 * v})
	if t.last(r, v) { // rows need not start on a line
		ADDQ(backFields.mem("lastByte"), tmp)
		ask(Mem{Base: tmp})
	}
}

// weights spreads the coefficients of the heads of run r over their lanes of w.
func (t folded) weights(r int) {
	if t.share == 1 {
		VBROADCASTSS(Mem{Base: weight, Disp: 4 * r}, w)
		return
	}
	VMOVDQU32(lanes.Table(fmt.Sprintf("shared%d", t.share), 16, func(i int) uint32 { return uint32(i / (16 / t.share)) }), w)
	VPERMPS(Mem{Base: weight, Disp: 4 * r * t.share}, w, w)
}

// toGroup goes on with the next group.
func toGroup() {
	for _, p := range []together{4, 8, 16} {
		CMPQ(backFields.mem("together"), U8(p))
		JE(LabelRef(p.name("group")))
	}
	JMP(LabelRef(together(0).name("group")))
}

// scores makes the gradients of a group's scores, sums them over the row and puts them to their places in edge, or adds
// them to their destinations' there. After the last group the sum goes to dleft.
func scores(bf16 bool, heads int) {
	f := backFields
	name := func(s string) string { return fmtHeads(s, heads) }
	group := 16 / heads
	Label(name("scores"))
	k := stack{}
	for e := range group {
		q := k.push(bits.Len(uint(heads)) - 1)
		VMOVUPS(inBuf(atParts+64*e), q)
		k.fold()
	}
	s, t, total := Z23, Z24, Z25
	VMOVUPS(lanes.Table("transposed", 16, func(i int) uint32 { return uint32(i%4*4 + i/4) }), t)
	VPERMPS(k.top(), t, t)
	MOVQ(buf, at)
	ADDQ(f.mem("slot"), at)
	VMOVUPS(Mem{Base: at, Disp: atSlope}, s)
	VFMSUB213PS(Mem{Base: at, Disp: atDelta}, t, s)
	VMOVUPS(inBuf(atTotal), total)
	VADDPS(s, total, entries, total)
	VMOVUPS(total, inBuf(atTotal))
	VMOVUPS(s, inBuf(atWords))
	f.load("edge", at)
	f.load("perm", part)
	SUBQ(f.mem("index"), part)
	ADDQ(f.mem("first"), part)
	MOVQ(groupEnd, tmp2)
	SUBQ(f.mem("first"), tmp2)
	CMPQ(f.mem("add"), U8(0))
	JNE(LabelRef(name("add")))
	placeScores(f, heads, false, name("placed"))
	JMP(LabelRef(name("placed")))
	Label(name("add"))
	placeScores(f, heads, true, name("placed"))
	Label(name("placed"))
	XORQ(U32(atNext), f.mem("slot"))
	CMPQ(index, end)
	JAE(LabelRef(name("total")))
	toGroup()

	Label(name("total"))
	VMOVUPS(inBuf(atTotal), total)
	for d := heads; d < 16; d *= 2 {
		lanes.Swap(d, total, t)
		VADDPS(t, total, total)
	}
	f.loadRow("dleft", row, tmp)
	f.load("heads", at)
	KMOVW(at.As32(), K2)
	VMOVUPS(total, K2, Mem{Base: tmp})
	toShape("done", bf16, heads)
}

// placeScores puts the gradients of a group's entries, tmp2/4 of them, to their places at part.
func placeScores(f fields, heads int, add bool, done string) {
	for k := range 16 / heads {
		MOVL(Mem{Base: part, Disp: 4 * k}, tmp.As32())
		IMULQ(f.mem("edgeStride"), tmp)
		from, to := inBuf(atWords+4*heads*k), Mem{Base: at, Index: tmp, Scale: 4}
		switch heads {
		case 1:
			VMOVSS(from, X24)
			if add {
				VADDSS(to, X24, X24)
			}
			VMOVSS(X24, to)
		case 2:
			VMOVSD(from, X24)
			if add {
				VMOVSD(to, X25)
				VADDPS(X25, X24, X24)
			}
			VMOVSD(X24, to)
		default:
			v := map[int]VecPhysical{4: X24, 8: Y24, 16: Z24}[heads]
			VMOVUPS(from, v)
			if add {
				VADDPS(to, v, v)
			}
			VMOVUPS(v, to)
		}
		if k < 16/heads-1 {
			CMPQ(tmp2, U8(4*(k+1)))
			JE(LabelRef(done))
		}
	}
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
