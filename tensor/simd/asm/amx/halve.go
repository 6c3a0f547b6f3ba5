package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// Constants of halving (see simd.scaling): what clears a sign, the least exponent, and what scales are made of.
var absolute, leastExponent, scaleTop, scaleDown = Z28, Z29, Z30, Z31

func loadHalfConstants(tmp Register) {
	for _, c := range []struct {
		bits uint32
		to   VecPhysical
	}{{0x7fffffff, absolute}, {41, leastExponent}, {268, scaleTop}, {14, scaleDown}} {
		MOVL(U32(c.bits), tmp)
		VPBROADCASTD(tmp, c.to)
	}
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
func halve(x, y, wide VecPhysical) {
	VCVTPS2PH(Imm(0), x, y.AsY())
	VCVTPH2PS(y.AsY(), wide)
	VSUBPS(wide, x, x)
}

// sideBySide is the order that puts numbers of two rows side by side.
var sideBySide = Z27

// halvePair is the instructions that halve 16 columns of two rows, side by side: the upper halves into one line, the
// lower into another. It takes six registers.
func halvePair(x0, x1 Mem, m0, m1 OpmaskPhysical, scale VecPhysical, upper, lower Mem, z []VecPhysical) []func() {
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

// halveRows: 32 numbers of a row make a line of two tiles. A row is read for its largest number, and once
// more from the nearest cache.
func halveRows() {
	dst, back, src, rows, cols, stride := RDI, R9, RSI, RDX, RCX, R8
	frame.Func("halveRows512", "func(dst, back, src *byte, rows, cols, stride int)", dst, back, src, rows, cols, stride)
	left, s, d, n := R10, R11, R12, R13
	loadHalfConstants(EAX)
	lastMasks(cols, left, RAX)
	scale := Z4
	pair := func(m0, m1 OpmaskPhysical) {
		VMULPS_Z(Mem{Base: s}, scale, m0, Z0)
		VMULPS_Z(Mem{Base: s, Disp: 64}, scale, m1, Z1)
		halve(Z0, Z2, Z6)
		halve(Z1, Z3, Z7)
		VMOVUPS(Y2, Mem{Base: d})
		VMOVUPS(Y3, Mem{Base: d, Disp: 32})
		VCVTPS2PH(Imm(0), Z0, Mem{Base: d, Disp: halfBytes})
		VCVTPS2PH(Imm(0), Z1, Mem{Base: d, Disp: halfBytes + 32})
	}
	largest := func(m0, m1 OpmaskPhysical) {
		VPANDD_Z(Mem{Base: s}, absolute, m0, Z0)
		VPANDD_Z(Mem{Base: s, Disp: 64}, absolute, m1, Z1)
		VPMAXUD(Z0, Z4, Z4)
		VPMAXUD(Z1, Z5, Z5)
	}
	// each goes over the blocks of a row.
	each := func(name string, do func(m0, m1 OpmaskPhysical), step func()) {
		MOVQ(src, s)
		MOVQ(cols, n)
		TESTQ(n, n)
		JEQ(LabelRef(name + "Last"))
		Label(name)
		do(K1, K1)
		ADDQ(U32(128), s)
		step()
		DECQ(n)
		JNZ(LabelRef(name))
		Label(name + "Last")
		TESTQ(left, left)
		JEQ(LabelRef(name + "Done"))
		do(K3, K4)
		Label(name + "Done")
	}
	Label("row")
	VPXORD(Z4, Z4, Z4)
	VPXORD(Z5, Z5, Z5)
	each("largest", largest, func() {})
	VPMAXUD(Z5, Z4, Z4)
	VSHUFI32X4(Imm(0x4e), Z4, Z4, Z5)
	VPMAXUD(Z5, Z4, Z4)
	VSHUFI32X4(Imm(0xb1), Z4, Z4, Z5)
	VPMAXUD(Z5, Z4, Z4)
	VPSHUFD(Imm(0x4e), Z4, Z5)
	VPMAXUD(Z5, Z4, Z4)
	VPSHUFD(Imm(0xb1), Z4, Z5)
	VPMAXUD(Z5, Z4, Z4)
	scales(scale, Z5)
	VMOVSS(X5, Mem{Base: back})
	MOVQ(dst, d)
	each("halve", pair, func() { ADDQ(U32(halfBlockBytes), d) })
	ADDQ(stride, src)
	ADDQ(Imm(64), dst)
	ADDQ(Imm(4), back)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// halvePairs: rows 2r and 2r+1 of a block of 32 go side by side into line r of tiles of 16 columns. A panel's 32
// columns are read for their largest numbers, and once more. Rows past the last are zeros.
func halvePairs() {
	order := GLOBL("sideBySide", RODATA|NOPTR)
	for i := range 32 {
		DATA(2*i, U16(i/2+i%2*16))
	}
	p := pairing{dst: RDI, back: R9, src: RSI, rows: RDX, cols: RCX, stride: R8, panel: R10, ahead: RBX, s: R11, d: R12, n: R13, line: R15}
	frame.Func("halvePairs512", "func(dst, back, src *byte, rows, cols, stride, panel int, ahead uintptr)",
		p.dst, p.back, p.src, p.rows, p.cols, p.stride, p.panel, p.ahead)
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
	ADDQ(p.panel, p.dst)
	SUBQ(Imm(32), p.cols)
	JG(LabelRef("panel"))
	VZEROUPPER()
	RET()
	Label("none") // of the panel's last 16 columns are there
	VPXORD(Z0, Z0, Z0)
	VMOVUPS(Z0, Mem{Base: p.d, Disp: tileBytes})
	VMOVUPS(Z0, Mem{Base: p.d, Disp: halfBytes + tileBytes})
	JMP(LabelRef("some"))
}

// pairing is where halvePairs stands. K1 and K2 are the lanes of a panel's columns, whose scales are Z4 and Z5, and K5 none.
type pairing struct {
	dst, back, src, rows, cols, stride, panel, ahead GPPhysical // parameters
	s, d, n, line                                    GPPhysical
}

func (p pairing) masks() {
	MOVQ(I32(-1), RAX)
	CMPQ(p.cols, Imm(32))
	JGE(LabelRef("whole"))
	BZHIQ(p.cols, RAX, RAX)
	Label("whole")
	KMOVW(EAX, K1)
	SHRQ(Imm(16), RAX)
	KMOVW(EAX, K2)
}

// scale finds what the columns are multiplied with, and writes what takes that back.
func (p pairing) scale() {
	VPXORD(Z4, Z4, Z4)
	VPXORD(Z5, Z5, Z5)
	MOVQ(p.src, p.s)
	MOVQ(p.rows, p.n)
	Label("largest")
	VPANDD_Z(Mem{Base: p.s}, absolute, K1, Z0)
	VPANDD_Z(Mem{Base: p.s, Disp: 64}, absolute, K2, Z1)
	VPMAXUD(Z0, Z4, Z4)
	VPMAXUD(Z1, Z5, Z5)
	PREFETCHT1(Mem{Base: p.ahead})
	ADDQ(Imm(64), p.ahead)
	ADDQ(p.stride, p.s)
	DECQ(p.n)
	JNZ(LabelRef("largest"))
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
	PREFETCHT1(Mem{Base: p.ahead})
	ADDQ(Imm(64), p.ahead)
	p.column(0, 0, Z4, K1, K1)
	KTESTW(K2, K2)
	JEQ(LabelRef("none"))
	p.column(64, tileBytes, Z5, K2, K2)
	Label("some")
	LEAQ(Mem{Base: p.s, Index: p.stride, Scale: 2}, p.s)
	p.nextLine("paired")
	DECQ(p.n)
	JNZ(LabelRef("pair"))
	Label("odd")
	TESTQ(U32(1), p.rows)
	JEQ(LabelRef("rest"))
	p.column(0, 0, Z4, K1, K5)
	p.column(64, tileBytes, Z5, K2, K5)
	p.nextLine("single")
	Label("rest")
}

// column is 16 columns of two rows.
func (p pairing) column(disp, out int, scale VecPhysical, m0, m1 OpmaskPhysical) {
	z := []VecPhysical{Z0, Z1, Z2, Z3, Z6, Z7}
	inOrder(halvePair(Mem{Base: p.s, Disp: disp}, Mem{Base: p.s, Index: p.stride, Scale: 1, Disp: disp}, m0, m1, scale,
		Mem{Base: p.d, Disp: out}, Mem{Base: p.d, Disp: out + halfBytes}, z))
}

func (p pairing) nextLine(label string) {
	ADDQ(Imm(64), p.d)
	INCQ(p.line)
	TESTQ(U32(15), p.line)
	JNZ(LabelRef(label))
	ADDQ(U32(halfBlockBytes-tileBytes), p.d)
	Label(label)
}

// zeros fills the last block.
func (p pairing) zeros() {
	VPXORD(Z0, Z0, Z0)
	Label("zeros")
	TESTQ(U32(15), p.line)
	JEQ(LabelRef("done"))
	for tile := range 4 {
		VMOVUPS(Z0, Mem{Base: p.d, Disp: tile * tileBytes})
	}
	ADDQ(Imm(64), p.d)
	INCQ(p.line)
	JMP(LabelRef("zeros"))
	Label("done")
}
