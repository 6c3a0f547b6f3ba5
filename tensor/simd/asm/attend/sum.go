package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
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
	upper     = Z28 // of bfloat16 rows: the mask of odd columns
	x, y, w   = Z29, Z30, Z31
	rowFields = newFields(args, "ptr", "index", "rows", "src", "srcStride", "dst", "dstStride", "vectors", "mask", "mode",
		"weights", "gap", "patterns", "loop", "prefetch", "last",
		"inv", "invStride", "scale", "heads",
		"z", "zStride", "zbuf", "dots", "parts", "partsEnd", "places",
		"shape", "headBytes", "lastByte", "shift", "tail", "evens", "odds")
)

// What mode says about dst: it is bfloat16, its rows are whole lines that go past the caches (of bfloat16 only
// where the processor rounds), and the processor can round to bfloat16.
const (
	modeBF16   = 2
	modeStream = 4
	modeNative = 16
)

var sums = []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15}

func beginRows(patternRegs []VecPhysical) {
	f := rowFields
	Load(Param("a"), args)
	f.load("src", src)
	f.load("srcStride", stride)
	f.load("dst", dst)
	f.load("weights", weight)
	f.load("gap", gap)
	f.load("patterns", patterns)
	f.load("prefetch", ahead)
	f.load("last", last)
	f.load("ptr", tmp)
	MOVQ(Mem{Base: tmp}, tmp)
	f.load("index", index)
	LEAQ(Mem{Base: index, Index: tmp, Scale: 4}, index)
	XORQ(row, row)
	f.load("mask", tmp)
	KMOVD(tmp.As32(), K1)
	for i, v := range patternRegs {
		VMOVDQU32(Mem{Base: patterns, Disp: 64 * i}, v)
	}
	lanes.LoadUpper(upper)
}

// choose branches to the body for the number of vectors.
func choose(most int) {
	MOVQ(rowFields.mem("vectors"), tmp)
	for n := 1; n <= most; n++ {
		CMPQ(tmp, U8(n))
		JE(LabelRef(fmt.Sprintf("row%d", n)))
	}
	RET()
}

func startRow() {
	rowFields.load("ptr", tmp)
	MOVQ(Mem{Base: tmp, Index: row, Scale: 8, Disp: 8}, end)
	rowFields.load("index", tmp)
	LEAQ(Mem{Base: tmp, Index: end, Scale: 4}, end)
}

// entryRow sets at to the next entry's row.
func entryRow() {
	MOVL(Mem{Base: index}, at.As32())
	ADDQ(U8(4), index)
	IMULQ(stride, at)
	ADDQ(src, at)
}

// askRow asks for the first lines of an entry's row, and leaves tmp there.
func askRow(entry Mem, lines int) {
	LEAQ(entry, tmp)
	CMPQ(tmp, last)
	CMOVQHI(last, tmp)
	MOVL(Mem{Base: tmp}, tmp.As32())
	IMULQ(stride, tmp)
	ADDQ(src, tmp)
	for line := range lines {
		PREFETCHT0(Mem{Base: tmp, Disp: 64 * line})
	}
}

// columnWeights spreads the next entry's coefficients over the columns of vector v.
func columnWeights(v int, from Mem, regs []VecPhysical, to VecPhysical) {
	if v < len(regs) {
		VPERMPS(from, regs[v], to)
		return
	}
	VMOVDQU32(Mem{Base: patterns, Disp: 64 * v}, to)
	VPERMPS(from, to, to)
}

// storeRow writes the n vectors, or blocks, of the row in sums to dst.
func storeRow(n int, bf16 bool, name func(string) string) {
	if !bf16 {
		storeLines(n, name, func(v int) VecPhysical { return sums[v] }, func(v VecPhysical, to Mem) { VMOVUPS(v, K1, to) })
		return
	}
	put := func(v int) {
		if v == n-1 {
			VMOVDQU16(sums[2*v], K1, Mem{Base: dst, Disp: 64 * v})
		} else {
			VMOVUPS(sums[2*v], Mem{Base: dst, Disp: 64 * v})
		}
	}
	CMPQ(rowFields.mem("mode"), U8(modeBF16))
	JB(LabelRef(name("widened")))
	JA(LabelRef(name("native")))
	for v := range n {
		lanes.JoinBF16(sums[2*v], sums[2*v+1], x, y)
		put(v)
	}
	JMP(LabelRef(name("written")))
	Label(name("native"))
	for v := range n {
		lanes.JoinNative(sums[2*v], sums[2*v+1], x)
	}
	storeLines(n, name, func(v int) VecPhysical { return sums[2*v] }, func(v VecPhysical, to Mem) { VMOVDQU16(v, K1, to) })
	JMP(LabelRef(name("written")))
	Label(name("widened"))
	KSHIFTRD(U8(16), K1, K2)
	for v := range n {
		even, odd := sums[2*v], sums[2*v+1]
		lanes.Interleave(even, odd, x, y)
		if v == n-1 {
			VMOVUPS(even, K1, Mem{Base: dst, Disp: 128 * v})
			VMOVUPS(odd, K2, Mem{Base: dst, Disp: 128*v + 64})
		} else {
			VMOVUPS(even, Mem{Base: dst, Disp: 128 * v})
			VMOVUPS(odd, Mem{Base: dst, Disp: 128*v + 64})
		}
	}
	Label(name("written"))
}

// storeLines writes n vectors to dst, past the caches if mode says so; last writes what is in the row of its last.
func storeLines(n int, name func(string) string, vector func(v int) VecPhysical, last func(v VecPhysical, to Mem)) {
	TESTQ(U32(modeStream), rowFields.mem("mode"))
	JNZ(LabelRef(name("stream")))
	for v := range n - 1 {
		VMOVUPS(vector(v), Mem{Base: dst, Disp: 64 * v})
	}
	last(vector(n-1), Mem{Base: dst, Disp: 64 * (n - 1)})
	JMP(LabelRef(name("stored")))
	Label(name("stream"))
	for v := range n {
		VMOVNTPS(vector(v), Mem{Base: dst, Disp: 64 * v})
	}
	Label(name("stored"))
}

func nextRow(again string) {
	ADDQ(rowFields.mem("dstStride"), dst)
	INCQ(row)
	CMPQ(row, rowFields.mem("rows"))
	JB(LabelRef(again))
	SFENCE() // for rows that went past the caches
	VZEROUPPER()
	RET()
}

// sumRows is the forward pass's sum: dst = scale · inv · sum over entries of
// weight · source row, where weight and inv are those of the column's head.
func sumRows(bf16 bool) {
	name, most := "attendSum512", 16
	if bf16 {
		name, most = "attendSum512b16", 8
	}
	regs := []VecPhysical{Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27}
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " sums the rows of an attendRowArgs.")
	beginRows(regs)
	choose(most)
	for n := 1; n <= most; n++ {
		sumBody(n, bf16, regs)
	}
}

func sumBody(n int, bf16 bool, regs []VecPhysical) {
	f := rowFields
	name := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	vectors := n
	if bf16 {
		vectors = 2 * n
	}
	Label(name("row"))
	startRow()
	for v := range vectors {
		VPXORD(sums[v], sums[v], sums[v])
	}
	loops := sumLoops(n, bf16)
	for _, l := range loops[1:] {
		CMPQ(f.mem("loop"), U8(l.number()))
		JE(LabelRef(l.label()))
	}
	for _, l := range loops {
		l.body(regs, name("done"))
	}

	Label(name("done"))
	f.loadRow("inv", row, tmp)
	f.load("heads", at)
	KMOVW(at.As32(), K2)
	VMOVUPS_Z(Mem{Base: tmp}, K2, x)
	VMULPS_BCST(f.mem("scale"), x, x)
	for v := range vectors {
		if v < len(regs) {
			VPERMPS(x, regs[v], w)
		} else {
			VMOVDQU32(Mem{Base: patterns, Disp: 64 * v}, w)
			VPERMPS(x, w, w)
		}
		VMULPS(w, sums[v], sums[v])
	}
	storeRow(n, bf16, name)
	nextRow(name("row"))
}

// sumLoop is the loop over a row's entries, of n vectors or blocks. Where these are whole heads', as many each, a coefficient is repeated
// once a head; heads is 0 where it is looked up for each column. What few instructions there are between two lines decides
// how many lines are under way: with look-ups rows of sixteen lines take 1.1 to 1.25 times as long.
type sumLoop struct {
	n, heads  int
	bf16, ask bool // ask: bfloat16 rows are asked for; float32 has one loop for both
}

// sumLoops lists the loops of n vectors or blocks.
func sumLoops(n int, bf16 bool) (list []sumLoop) {
	for heads := 0; heads <= n; heads = max(1, 2*heads) {
		if heads > 0 && n%heads != 0 {
			break
		}
		list = append(list, sumLoop{n, heads, bf16, false})
		if bf16 {
			list = append(list, sumLoop{n, heads, bf16, true})
		}
	}
	return list
}

func (l sumLoop) number() int {
	if l.ask {
		return 2*l.heads + 1
	}
	return 2 * l.heads
}

func (l sumLoop) label() string { return fmt.Sprintf("loop%dx%d", l.n, l.number()) }

func (l sumLoop) body(regs []VecPhysical, done string) {
	Label(l.label())
	CMPQ(index, end)
	JAE(LabelRef(done))
	if l.bf16 {
		entryRow()
		l.askBlocks()
	} else {
		l.askLine()
		entryRow()
	}
	for v := range l.n {
		if l.ask {
			PREFETCHT0(Mem{Base: tmp, Disp: 64 * v})
		}
		if l.heads > 0 && v%(l.n/l.heads) == 0 {
			VBROADCASTSS(Mem{Base: weight, Disp: 4 * (v / (l.n / l.heads))}, w)
		}
		l.add(v, regs)
	}
	ADDQ(gap, weight)
	JMP(LabelRef(l.label()))
}

// add adds vector or block v of the row at at.
func (l sumLoop) add(v int, regs []VecPhysical) {
	line, from, tail := Mem{Base: at, Disp: 64 * v}, Mem{Base: weight}, v == l.n-1
	spread := func(v int) {
		if l.heads == 0 {
			columnWeights(v, from, regs, w)
		}
	}
	if l.bf16 {
		lanes.SplitBF16By(upper, line, x, y, tail, K1)
		spread(2 * v)
		VFMADD231PS(x, w, sums[2*v])
		spread(2*v + 1)
		VFMADD231PS(y, w, sums[2*v+1])
		return
	}
	spread(v)
	if tail {
		VFMADD231PS(line, w, K1, sums[v])
	} else {
		VFMADD231PS(line, w, sums[v])
	}
}

// askLine asks for the lines of a row some entries ahead, of more than four for the first, from where the processor itself goes on. With
// all sixteen fewer are under way at a time.
func (l sumLoop) askLine() {
	skip := l.label() + "near"
	TESTQ(ahead, ahead)
	JZ(LabelRef(skip))
	lines := l.n
	if l.n > 4 {
		lines = 1
	}
	askRow(Mem{Base: index, Index: ahead, Scale: 1}, lines)
	Label(skip)
}

// askBlocks asks as sums over neighbours do (asm/sparse, prefetch16): for two lines of a row far ahead, and sets tmp to the
// one whose lines are asked for between those that are summed.
func (l sumLoop) askBlocks() {
	switch {
	case !l.ask:
	case l.n <= 2:
		askRow(Mem{Base: index, Index: ahead, Scale: 1}, 0)
	default:
		askRow(Mem{Base: index, Index: ahead, Scale: 2}, 2)
		askRow(Mem{Base: index, Disp: 12}, 0)
	}
}
