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
		"weights", "gap", "patterns", "prefetch", "last",
		"inv", "invStride", "scale", "heads",
		"z", "zStride", "zbuf", "dots", "parts", "partsEnd", "places",
		"shape", "headBytes", "lastByte", "shift", "tail", "evens", "odds")
)

// What mode says about dst: it is bfloat16, and, beside that, the processor can round to it.
const (
	modeBF16   = 2
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

// nextEntry sets at to the next entry's row, after asking for one some entries ahead.
func nextEntry(lines int, skip string) {
	TESTQ(ahead, ahead)
	JZ(LabelRef(skip))
	LEAQ(Mem{Base: index, Index: ahead, Scale: 1}, tmp)
	CMPQ(tmp, last)
	CMOVQHI(last, tmp)
	MOVL(Mem{Base: tmp}, tmp.As32())
	IMULQ(stride, tmp)
	ADDQ(src, tmp)
	for line := range lines {
		PREFETCHT0(Mem{Base: tmp, Disp: 64 * line})
	}
	Label(skip)
	MOVL(Mem{Base: index}, at.As32())
	ADDQ(U8(4), index)
	IMULQ(stride, at)
	ADDQ(src, at)
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
		for v := range n {
			if v == n-1 {
				VMOVUPS(sums[v], K1, Mem{Base: dst, Disp: 64 * v})
			} else {
				VMOVUPS(sums[v], Mem{Base: dst, Disp: 64 * v})
			}
		}
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
		put(v)
	}
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

func nextRow(again string) {
	ADDQ(rowFields.mem("dstStride"), dst)
	INCQ(row)
	CMPQ(row, rowFields.mem("rows"))
	JB(LabelRef(again))
	VZEROUPPER()
	RET()
}

// sumRows is the forward pass's sum: dst = scale · inv · sum over entries of
// weight · source row, where weight and inv are those of the column's head.
// Blocks of bfloat16 that are whole heads' have one weight for even and odd columns.
func sumRows(bf16, whole bool) {
	name, most := "attendSum512", 16
	if bf16 {
		name, most = "attendSum512b16", 8
	}
	if whole {
		name = "attendSumWhole512b16"
	}
	regs := []VecPhysical{Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27}
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " sums the rows of an attendRowArgs.")
	beginRows(regs)
	choose(most)
	for n := 1; n <= most; n++ {
		sumBody(n, bf16, whole, regs)
	}
}

func sumBody(n int, bf16, whole bool, regs []VecPhysical) {
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
	Label(name("next"))
	CMPQ(index, end)
	JAE(LabelRef(name("done")))
	nextEntry(n, name("ask"))
	from := Mem{Base: weight}
	for v := range n {
		line := Mem{Base: at, Disp: 64 * v}
		if bf16 {
			lanes.SplitBF16By(upper, line, x, y, v == n-1, K1)
			columnWeights(2*v, from, regs, w)
			VFMADD231PS(x, w, sums[2*v])
			if !whole {
				columnWeights(2*v+1, from, regs, w)
			}
			VFMADD231PS(y, w, sums[2*v+1])
			continue
		}
		columnWeights(v, from, regs, w)
		if v == n-1 {
			VFMADD231PS(line, w, K1, sums[v])
		} else {
			VFMADD231PS(line, w, sums[v])
		}
	}
	ADDQ(gap, weight)
	JMP(LabelRef(name("next")))

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
