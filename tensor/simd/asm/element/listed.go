package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ascendingKernel compares n numbers, a multiple of 64, with the next ones, and returns whether all are less. Lines are
// asked for across pages. AVX-512 only.
func ascendingKernel() {
	TEXT("ascendingFast", 4, "func(list *uint32, n int) bool")
	at, left, ask, v, yes := Load(Param("list"), GP64()), Load(Param("n"), GP64()), GP64(), ZMM(), GP8()
	MOVQ(at, ask)
	turnedAcross(ask, 4)
	Label("lines")
	askFour(ask)
	m := []reg.OpmaskVirtual{K(), K(), K(), K()}
	for i := range m {
		VMOVDQU32(Mem{Base: at, Disp: 64 * i}, v)
		VPCMPUD(Imm(1), Mem{Base: at, Disp: 64*i + 4}, v, m[i])
	}
	KANDW(m[1], m[0], m[0])
	KANDW(m[3], m[2], m[2])
	KANDW(m[2], m[0], m[0])
	KORTESTW(m[0], m[0])
	JCC(LabelRef("done")) // some are not less
	ADDQ(U32(256), at)
	SUBQ(Imm(64), left)
	JNZ(LabelRef("lines"))
	STC()
	Label("done")
	SETCS(yes)
	Store(yes, ReturnIndex(0))
	VZEROUPPER()
	RET()
}

// logSumKernel multiplies the first n numbers, of each 64 and lane before exponents grow too large, and adds up the others.
func logSumKernel() {
	TEXT("logSumFast", 4, "func(a *byte, sum *float32, gap *float32, n int)")
	a, sum, gap, left := Load(Param("a"), GP64()), Load(Param("sum"), GP64()), Load(Param("gap"), GP64()), Load(Param("n"), GP64())
	field := func(i int) Mem { return Mem{Base: a, Disp: 64 * i} }
	product, exponent, linear := []reg.VecVirtual{ZMM(), ZMM()}, ZMM(), []reg.VecVirtual{ZMM(), ZMM()}
	for i := range 2 {
		VMOVUPD(field(i), product[i])
		VMOVUPD(field(3+i), linear[i])
	}
	VMOVUPD(field(2), exponent)
	x := ZMM()
	Label("next")
	for step := range 8 {
		VCVTPS2PD(Mem{Base: sum, Disp: 32 * step}, x)
		VMULPD(x, product[step%2], product[step%2])
		VCVTPS2PD(Mem{Base: gap, Disp: 32 * step}, x)
		VADDPD(x, linear[step%2], linear[step%2])
	}
	for _, p := range product {
		VGETEXPPD(p, x)
		VADDPD(x, exponent, exponent)
		VGETMANTPD(Imm(0), p, p)
	}
	ADDQ(U32(256), sum)
	ADDQ(U32(256), gap)
	SUBQ(Imm(64), left)
	JNZ(LabelRef("next"))
	for i := range 2 {
		VMOVUPD(product[i], field(i))
		VMOVUPD(linear[i], field(3+i))
	}
	VMOVUPD(exponent, field(2))
	VZEROUPPER()
	RET()
}
