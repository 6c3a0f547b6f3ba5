package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ascendingKernel and belowKernel look for a number out of place, sixteen at a time. AVX-512 only.
func ascendingKernel() {
	TEXT("ascendingFast", 4, "func(list *uint32, n int) bool")
	v := ZMM()
	allLess(func(at reg.Register, m reg.OpmaskVirtual) {
		VMOVDQU32(Mem{Base: at}, v)
		VPCMPUD(Imm(1), Mem{Base: at, Disp: 4}, v, m)
	})
}

func belowKernel() {
	TEXT("belowFast", 4, "func(list *uint32, n int, end uint32) bool")
	end := ZMM()
	VPBROADCASTD(Load(Param("end"), GP32()), end)
	allLess(func(at reg.Register, m reg.OpmaskVirtual) { VPCMPUD(Imm(6), Mem{Base: at}, end, m) })
}

// allLess compares n numbers, a multiple of sixteen, and returns whether all comparisons held.
func allLess(compare func(at reg.Register, m reg.OpmaskVirtual)) {
	at, left, m, yes := Load(Param("list"), GP64()), Load(Param("n"), GP64()), K(), GP8()
	Label("sixteen")
	compare(at, m)
	KORTESTW(m, m)
	JCC(LabelRef("done")) // some are not less
	ADDQ(Imm(64), at)
	SUBQ(Imm(16), left)
	JNZ(LabelRef("sixteen"))
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
