package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
	"starling/tensor/cpu/simd/asm/lanes"
)

// Registers of the loops over wide rows.
var (
	args      = RDI
	src       = RSI
	index     = R8 // of the next entry
	end       = R10
	dst       = RCX
	row       = RDX
	stride    = RBX
	weight    = R11 // the next entry's coefficients
	gap       = R12 // bytes of an entry's coefficients
	patterns  = R13
	ahead     = R14
	last      = RBP
	at, tmp   = RAX, R9
	zrow      = R15
	eachSum   = R15 // loads a run, of the forward pass
	askEnd    = R15 // entries before it ask for others
	upper     = Z28 // of bfloat16 rows: the mask of odd columns
	x, y, w   = Z29, Z30, Z31
	rowFields = newFields(args, "ptr", "index", "rows", "src", "srcStride", "dst", "dstStride", "mode",
		"weights", "gap", "patterns", "loop", "prefetch", "last",
		"inv", "invStride", "scale", "heads",
		"z", "zbuf",
		"each", "whole", "headBytes", "lastByte", "shift", "tail", "evens", "odds", "kind", "places", "few")
)

// What mode says about dst: it is bfloat16, its rows are whole lines that go by non-temporal stores (of bfloat16 only
// where the processor rounds), and the processor can round to bfloat16.
const (
	modeBF16   = 2
	modeStream = 4
	modeNative = 8
)

var sums = []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15}

// firstEntry sets index to the first entry of all rows, and rowEnd end behind the last of row.
func firstEntry(f fields) {
	f.load("ptr", tmp)
	MOVQ(Mem{Base: tmp}, tmp)
	f.load("index", index)
	LEAQ(Mem{Base: index, Index: tmp, Scale: 4}, index)
}

func rowEnd(f fields) {
	f.load("ptr", tmp)
	MOVQ(Mem{Base: tmp, Index: row, Scale: 8, Disp: 8}, end)
	f.load("index", tmp)
	LEAQ(Mem{Base: tmp, Index: end, Scale: 4}, end)
}

func beginRows() {
	f := rowFields
	Load(Param("a"), args)
	f.load("src", src)
	ADDQ(f.mem("whole"), src)
	f.load("srcStride", stride)
	f.load("weights", weight)
	f.load("gap", gap)
	f.load("patterns", patterns)
	f.load("prefetch", ahead)
	f.load("last", last)
	firstEntry(f)
	XORQ(row, row)
	f.load("tail", tmp)
	KMOVD(tmp.As32(), K1)
	lanes.LoadUpper(upper)
}

// spread is which head each column of a panel's vectors is of. A panel's last vectors' are in registers.
type spread []VecPhysical

func (s spread) begin() {
	for i, v := range s {
		VMOVDQU32(Mem{Base: patterns, Disp: 64 * (16 - len(s) + i)}, v)
	}
}

// lanes spreads the numbers of heads in from over the columns of the panel's vector v.
func (s spread) lanes(v int, from Op, to VecPhysical) {
	if i := v - (16 - len(s)); i >= 0 {
		VPERMPS(from, s[i], to)
		return
	}
	VMOVDQU32(Mem{Base: patterns, Disp: 64 * v}, to)
	VPERMPS(from, to, to)
}

// entryRow sets at to where the first run of the next entry's row has its last load.
func entryRow() {
	MOVL(Mem{Base: index}, at.As32())
	ADDQ(U8(4), index)
	IMULQ(stride, at)
	ADDQ(src, at)
}

// askRow sets tmp to an entry's row, as entryRow does.
func askRow(entry Mem) {
	LEAQ(entry, tmp)
	CMPQ(tmp, last)
	CMOVQHI(last, tmp)
	MOVL(Mem{Base: tmp}, tmp.As32())
	IMULQ(stride, tmp)
	ADDQ(src, tmp)
}

// panel is a row, or as much of one as fits the registers, in one run of vectors or blocks.
type panel struct {
	bf16 bool
	runs
}

func newPanel(bf16 bool) panel {
	if bf16 {
		return panel{bf16, runs{1, 1, 8}}
	}
	return panel{bf16, runs{1, 1, 16}}
}

// vectors is how many a load is, vector the first of load v, and sum where these are summed.
func (p panel) vectors() int            { return 16 / p.most }
func (p panel) vector(v int) int        { return p.vectors() * p.slot(0, v) }
func (p panel) sum(v int) []VecPhysical { return sums[p.vector(v):][:p.vectors()] }

// sumRows is the forward pass's sum: dst = scale · inv · sum over entries of
// weight · source row, where weight and inv are those of the column's head.
func sumRows(bf16 bool) {
	f, name, p := rowFields, "attendSum512", newPanel(bf16)
	if bf16 {
		name += "b16"
	}
	heads := spread{Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27}
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " sums the rows of an attendRowArgs.")
	beginRows()
	heads.begin()
	Label("row")
	rowEnd(f)
	for _, v := range sums {
		VPXORD(v, v, v)
	}
	loops := p.sumLoops()
	bisect(f.mem("loop"), loops, sumLoop.label, sumLoop.number)
	for _, l := range loops {
		l.body(heads)
	}
	Label("done")
	f.load("each", eachSum)
	p.scale(heads)
	p.storeSums()
	Label("written")
	INCQ(row)
	frame.Compare(row, f.mem("rows"), JB, "row")
	SFENCE() // for rows that went by non-temporal stores
	frame.End()
}

// sumLoop is the loop over a row's entries, of n vectors or blocks, or least to n. Where these
// are whole heads', as many each, a coefficient
// is repeated once a head; heads is 0 where it is looked up for each column. What few
// instructions there are between two lines decides
// how many lines are under way: with look-ups rows of sixteen lines take 1.1 to 1.25 times as long.
type sumLoop struct {
	panel
	least, n, heads int
	ask             bool // bfloat16 rows are asked for; float32 has one loop for both
}

// usualHeads is the number of heads that have loops of their own.
const usualHeads = 4

// sumLoops lists the loops. Each number of vectors has its own, but five to eight blocks of one
// head or of look-ups, where the comparisons
// to enter one loop in its middle take 0-2% of the time; of float32 they take 2-6%.
func (p panel) sumLoops() (list []sumLoop) {
	for n := 1; n <= p.most; n++ {
		for _, heads := range []int{0, 1, usualHeads} {
			if heads > 0 && n%heads != 0 {
				continue
			}
			least := n
			if p.bf16 && n > 4 && heads <= 1 {
				if n&(n-1) != 0 {
					continue
				}
				least = n/2 + 1
			}
			list = append(list, sumLoop{p, least, n, heads, false})
			if p.bf16 {
				list = append(list, sumLoop{p, least, n, heads, true})
			}
		}
	}
	return list
}

func (l sumLoop) number() int {
	n := 64*l.n + 2*l.heads
	if l.ask {
		n++
	}
	return n
}

func (l sumLoop) label() string { return fmt.Sprintf("loop%d", l.number()) }

func (l sumLoop) body(heads spread) {
	Label(l.label())
	again, stop, done := l.label(), end, "done"
	if l.ask {
		again, stop, done = l.label()+"again", askEnd, l.near().label()
		l.askUntil()
		Label(again)
	}
	frame.Compare(index, stop, JAE, done)
	switch {
	case l.ask:
		l.askBlocks()
	case !l.bf16:
		l.askLine()
	}
	entryRow()
	if l.heads == 1 {
		VBROADCASTSS(Mem{Base: weight}, w)
	}
	runs{1, l.least, l.n}.eachLine(loop{from: at, each: rowFields.mem("each"), load: func(_, v int, line Mem) {
		if l.ask {
			PREFETCHT0(Mem{Base: src, Index: tmp, Scale: 1, Disp: -64 * v})
		}
		if i := l.n - 1 - v; l.heads > 1 && i%(l.n/l.heads) == 0 {
			VBROADCASTSS(Mem{Base: weight, Disp: 4 * (i / (l.n / l.heads))}, w)
		}
		l.add(v, line, heads)
	}})
	ADDQ(gap, weight)
	JMP(LabelRef(again))
}

// near is the same loop for rows that nobody asks for.
func (l sumLoop) near() sumLoop {
	l.ask = false
	return l
}

// add adds load v, at line.
func (l sumLoop) add(v int, line Mem, heads spread) {
	to := l.sum(v)
	look := func(i int) {
		if l.heads == 0 {
			heads.lanes(l.vector(v)+i, Mem{Base: weight}, w)
		}
	}
	if l.bf16 {
		lanes.SplitBF16By(upper, line, x, y, v == 0, K1)
		look(0)
		VFMADD231PS(x, w, to[0])
		look(1)
		VFMADD231PS(y, w, to[1])
		return
	}
	look(0)
	if v == 0 {
		VFMADD231PS(line, w, K1, to[0])
	} else {
		VFMADD231PS(line, w, to[0])
	}
}

// askLine asks for the lines of a row some entries ahead, of more than four for the first, from
// where the processor itself goes on. With
// all sixteen fewer are under way at a time.
func (l sumLoop) askLine() {
	skip := l.label() + "near"
	frame.Test(ahead, ahead, JZ, skip)
	askRow(Mem{Base: index, Index: ahead, Scale: 1})
	lines := l.n
	if l.n > 4 {
		lines = 1
	}
	for line := range lines {
		PREFETCHT0(Mem{Base: tmp, Disp: 64 * (line - l.n + 1)})
	}
	Label(skip)
}

// askUntil sets askEnd to the row's end or, at the end of all, to where there is no entry to ask for.
func (l sumLoop) askUntil() {
	MOVQ(last, askEnd)
	SUBQ(ahead, askEnd)
	if l.far() {
		SUBQ(ahead, askEnd)
	}
	CMPQ(askEnd, end)
	CMOVQHI(end, askEnd)
}

// far says whether rows are asked for twice.
func (l sumLoop) far() bool { return l.n > 2 }

// askBlocks asks for two lines of a row far ahead, and sets tmp to how far from
// src the one is whose lines are asked for between those that are summed.
func (l sumLoop) askBlocks() {
	if !l.far() {
		MOVL(Mem{Base: index, Index: ahead, Scale: 1}, tmp.As32())
		IMULQ(stride, tmp)
		return
	}
	MOVL(Mem{Base: index, Index: ahead, Scale: 2}, tmp.As32())
	IMULQ(stride, tmp)
	first := -64 * (l.n - 1)
	if l.least < l.n {
		SUBQ(rowFields.mem("whole"), tmp)
		first = 0
	}
	for line := range 2 {
		PREFETCHT0(Mem{Base: src, Index: tmp, Scale: 1, Disp: first + 64*line})
	}
	MOVL(Mem{Base: index, Disp: 16}, tmp.As32())
	IMULQ(stride, tmp)
}

// scale multiplies a row's sums by what its coefficients were not divided by, and dropout's factor.
func (p panel) scale(heads spread) {
	f := rowFields
	f.loadRow("inv", row, tmp)
	f.load("heads", at)
	KMOVW(at.As32(), K2)
	VMOVUPS_Z(Mem{Base: tmp}, K2, x)
	VMULPS_BCST(f.mem("scale"), x, x)
	p.eachLine(loop{each: eachSum, load: func(_, v int, _ Mem) {
		for i, sum := range p.sum(v) {
			heads.lanes(p.vector(v)+i, x, w)
			VMULPS(w, sum, sum)
		}
	}})
}

// storeSums writes a row's sums to dst.
func (p panel) storeSums() {
	f := rowFields
	f.loadRow("dst", row, dst)
	if p.bf16 {
		frame.Test(U32(modeNative), f.mem("mode"), JZ, "stage")
		p.eachLine(loop{each: eachSum, load: func(_, v int, _ Mem) { lanes.JoinNative(p.sum(v)[0], p.sum(v)[1], x) }})
	}
	ADDQ(f.mem("whole"), dst)
	frame.Test(U32(modeStream), f.mem("mode"), JNZ, "stream")
	p.eachLine(loop{from: dst, each: eachSum, load: func(_, v int, to Mem) {
		if p.bf16 {
			storeWords(p.sum(v)[0], to, v == 0)
		} else {
			storeVector(p.sum(v)[0], to, v == 0)
		}
	}})
	JMP(LabelRef("written"))
	if p.bf16 {
		Label("stage")
		f.load("zbuf", zrow)
		f.load("places", end)
		ADDQ(U32(placesTo), end)
		storeStaged(f, pairs, Mem{Base: zrow}, "written")
	}
	Label("stream")
	p.eachLine(loop{from: dst, each: eachSum, load: func(_, v int, to Mem) { VMOVNTPS(p.sum(v)[0], to) }})
}
