package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// Constants of scaling (see simd.scaling): the least exponent, and what scales are made of.
var leastExponent, scaleTop, scaleDown = Z29, Z30, Z31

func loadHalfConstants(tmp Register) {
	for _, c := range []struct {
		bits uint32
		to   VecPhysical
	}{{41, leastExponent}, {268, scaleTop}, {14, scaleDown}} {
		MOVL(U32(c.bits), tmp)
		VPBROADCASTD(tmp, c.to)
	}
	loadRangeConstants(tmp)
}

// scales turns the largest absolute numbers, as bits, into what their columns are multiplied with, and makes of it
// what takes that back.
func scales(largest, back VecPhysical) {
	VPSRLD(Imm(23), largest, largest)
	VPMAXUD(leastExponent, largest, largest)
	VPSUBD(scaleDown, largest, back)
	VPSLLD(Imm(23), back, back)
	VPSUBD(largest, scaleTop, largest)
	VPSLLD(Imm(23), largest, largest)
}

// halve makes the upper half of x, as y, and leaves in x what is lower.
func splitFP16(x, y, wide VecPhysical) {
	VCVTPS2PH(Imm(0), x, y.AsY())
	VCVTPH2PS(y.AsY(), wide)
	VSUBPS(wide, x, x)
}

// sideBySide is the order that puts numbers of two rows side by side.
var sideBySide = Z27

// splitPairFP16 is the instructions that halve 16 columns of two rows, side by side: the upper
// halves into one line, the
// lower into another. It takes six registers.
func splitPairFP16(x0, x1 Mem, m0, m1 OpmaskPhysical, scale VecPhysical, upper, lower Mem, z []VecPhysical) []func() {
	join := func() { VINSERTI64X4(Imm(1), z[3].AsY(), z[2], z[2]) }
	order := func() { VPERMW(z[2], sideBySide, z[2]) }
	return []func(){
		func() { VMULPS_Z(x0, scale, m0, z[0]) },
		func() { VMULPS_Z(x1, scale, m1, z[1]) },
		func() { VCVTPS2PH(Imm(0), z[0], z[2].AsY()) },
		func() { VCVTPS2PH(Imm(0), z[1], z[3].AsY()) },
		func() { VCVTPH2PS(z[2].AsY(), z[4]) },
		func() { VCVTPH2PS(z[3].AsY(), z[5]) },
		func() { VSUBPS(z[4], z[0], z[0]) },
		func() { VSUBPS(z[5], z[1], z[1]) },
		join, order,
		func() { VMOVUPS(z[2], upper) },
		func() { VCVTPS2PH(Imm(0), z[0], z[2].AsY()) },
		func() { VCVTPS2PH(Imm(0), z[1], z[3].AsY()) },
		join, order,
		func() { VMOVUPS(z[2], lower) },
	}
}

// splitRowsTwoWay: 32 numbers of a row make a line of two tiles. A row is read for its range, and once more from the
// nearest cache.
func splitRowsTwoWay() {
	dst, back, ranges, src, rows, cols, stride := RDI, R9, R14, RSI, RDX, RCX, R8
	frame.Func("splitRowsFP16", "func(dst, back, ranges, src *byte, rows, cols, stride int)", dst, back, ranges, src,
		rows, cols, stride)
	left, s, d, n := R10, R11, R12, R13
	loadHalfConstants(EAX)
	lastMasks(cols, left, RAX)
	scale := Z4
	pair := func(m0, m1 OpmaskPhysical) {
		VMULPS_Z(Mem{Base: s}, scale, m0, Z0)
		VMULPS_Z(Mem{Base: s, Disp: 64}, scale, m1, Z1)
		splitFP16(Z0, Z2, Z6)
		splitFP16(Z1, Z3, Z7)
		VMOVUPS(Y2, Mem{Base: d})
		VMOVUPS(Y3, Mem{Base: d, Disp: 32})
		VCVTPS2PH(Imm(0), Z0, Mem{Base: d, Disp: halfBytes})
		VCVTPS2PH(Imm(0), Z1, Mem{Base: d, Disp: halfBytes + 32})
	}
	rowRange := func(m0, m1 OpmaskPhysical) {
		widenRange(Mem{Base: s}, m0, Z0, Z2, Z4, Z6)
		widenRange(Mem{Base: s, Disp: 64}, m1, Z1, Z3, Z5, Z7)
	}
	// each goes over the blocks of a row.
	each := func(name string, do func(m0, m1 OpmaskPhysical), step func()) {
		MOVQ(src, s)
		MOVQ(cols, n)
		frame.Test(n, n, JEQ, name+"Last")
		Label(name)
		do(K1, K1)
		ADDQ(U32(128), s)
		step()
		frame.Next(n, name)
		Label(name + "Last")
		frame.Test(left, left, JEQ, name+"Done")
		do(K3, K4)
		Label(name + "Done")
	}
	Label("row")
	clearRanges()
	each("range", rowRange, func() {})
	joinRow(ranges, Z4, Z5, Z6, Z7)
	scales(scale, Z5)
	VMOVSS(X5, Mem{Base: back})
	MOVQ(dst, d)
	each("halve", pair, func() { ADDQ(U32(halfBlockBytes), d) })
	ADDQ(stride, src)
	ADDQ(Imm(64), dst)
	ADDQ(Imm(4), back)
	ADDQ(Imm(4), ranges)
	frame.Next(rows, "row")
	frame.End()
}

// splitPairsTwoWay: rows 2r and 2r+1 of a block of 32 go side by side into line r of tiles of 16 columns. A panel's 32
// columns are read for their ranges, and once more. Rows past the last are zeros.
func splitPairsTwoWay() {
	order := GLOBL("sideBySide", RODATA|NOPTR)
	for i := range 32 {
		DATA(2*i, U16(i/2+i%2*16))
	}
	p := pairing{dst: RDI, back: R9, ranges: R14, src: RSI, rows: RDX, cols: RCX, stride: R8, panel: R10,
		s: R11, d: R12, n: R13, line: R15}
	frame.Func("splitPairsFP16", "func(dst, back, ranges, src *byte, rows, cols, stride, panel int)",
		p.dst, p.back, p.ranges, p.src, p.rows, p.cols, p.stride, p.panel)
	loadHalfConstants(EAX)
	VMOVUPS(order, sideBySide)
	KXORW(K5, K5, K5)
	Label("panel")
	p.masks()
	p.scale()
	p.pairs()
	p.zeros()
	ADDQ(U32(128), p.src)
	ADDQ(U32(128), p.back)
	ADDQ(U32(2*rangesHigh), p.ranges)
	ADDQ(p.panel, p.dst)
	SUBQ(Imm(32), p.cols)
	JG(LabelRef("panel"))
	frame.End()
	Label("none") // of the panel's last 16 columns are there
	VPXORD(Z0, Z0, Z0)
	VMOVUPS(Z0, Mem{Base: p.d, Disp: tileBytes})
	VMOVUPS(Z0, Mem{Base: p.d, Disp: halfBytes + tileBytes})
	JMP(LabelRef("some"))
}

// pairing is where splitPairsTwoWay stands. K1 and K2 are the lanes of a panel's columns, whose
// scales are Z4 and Z5, and K5 none.
type pairing struct {
	dst, back, ranges, src, rows, cols, stride, panel GPPhysical // parameters
	s, d, n, line                                     GPPhysical
}

func (p pairing) masks() {
	MOVQ(I32(-1), RAX)
	frame.Compare(p.cols, Imm(32), JGE, "whole")
	BZHIQ(p.cols, RAX, RAX)
	Label("whole")
	KMOVW(EAX, K1)
	SHRQ(Imm(16), RAX)
	KMOVW(EAX, K2)
}

// scale finds the ranges of the columns and what these are multiplied with, and writes what takes that back.
func (p pairing) scale() {
	clearRanges()
	MOVQ(p.src, p.s)
	MOVQ(p.rows, p.n)
	Label("range")
	widenRange(Mem{Base: p.s}, K1, Z0, Z2, Z4, Z6)
	widenRange(Mem{Base: p.s, Disp: 64}, K2, Z1, Z3, Z5, Z7)
	ADDQ(p.stride, p.s)
	frame.Next(p.n, "range")
	joinColumns(p.ranges, 0, Z6, Z4, Z0)
	joinColumns(p.ranges, 64, Z7, Z5, Z0)
	scales(Z4, Z0)
	scales(Z5, Z1)
	VMOVUPS(Z0, Mem{Base: p.back})
	VMOVUPS(Z1, Mem{Base: p.back, Disp: 64})
}

// pairs halves all rows of a panel, the last by itself if their number is odd.
func (p pairing) pairs() {
	MOVQ(p.src, p.s)
	MOVQ(p.dst, p.d)
	XORQ(p.line, p.line)
	MOVQ(p.rows, p.n)
	SHRQ(Imm(1), p.n)
	JEQ(LabelRef("odd"))
	Label("pair")
	p.column(0, 0, Z4, K1, K1)
	KTESTW(K2, K2)
	JEQ(LabelRef("none"))
	p.column(64, tileBytes, Z5, K2, K2)
	Label("some")
	LEAQ(Mem{Base: p.s, Index: p.stride, Scale: 2}, p.s)
	p.nextLine("paired")
	frame.Next(p.n, "pair")
	Label("odd")
	frame.Test(U32(1), p.rows, JEQ, "rest")
	p.column(0, 0, Z4, K1, K5)
	p.column(64, tileBytes, Z5, K2, K5)
	p.nextLine("single")
	Label("rest")
}

// column is 16 columns of two rows.
func (p pairing) column(disp, out int, scale VecPhysical, m0, m1 OpmaskPhysical) {
	z := []VecPhysical{Z0, Z1, Z2, Z3, Z6, Z7}
	inOrder(splitPairFP16(Mem{Base: p.s, Disp: disp}, Mem{Base: p.s, Index: p.stride, Scale: 1, Disp: disp}, m0, m1,
		scale,
		Mem{Base: p.d, Disp: out}, Mem{Base: p.d, Disp: out + halfBytes}, z))
}

func (p pairing) nextLine(label string) {
	ADDQ(Imm(64), p.d)
	INCQ(p.line)
	frame.Test(U32(15), p.line, JNZ, label)
	ADDQ(U32(halfBlockBytes-tileBytes), p.d)
	Label(label)
}

// zeros fills the last block.
func (p pairing) zeros() {
	VPXORD(Z0, Z0, Z0)
	Label("zeros")
	frame.Test(U32(15), p.line, JEQ, "done")
	for tile := range 4 {
		VMOVUPS(Z0, Mem{Base: p.d, Disp: tile * tileBytes})
	}
	ADDQ(Imm(64), p.d)
	INCQ(p.line)
	JMP(LabelRef("zeros"))
	Label("done")
}
