package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// logSumKernel multiplies the first n numbers, of each 64 and lane before exponents grow too
// large, and adds up the others.
func logSumKernel() {
	TEXT("logSumFast", 4, "func(a *byte, sum *float32, gap *float32, n int)")
	a, sum, gap, left := Load(Param("a"), GP64()), Load(Param("sum"), GP64()), Load(Param("gap"),
		GP64()), Load(Param("n"), GP64())
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
