package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// power splits e^x, for x in [-87,0], into p and s with e^x = s·p + s, where s = 2^n
// and p = e^r - 1 for |r| <= ln2/2, by its Taylor series up to r^7 (error under
// 2e-8 of p). Keeping p apart lets e^x - 1 = s·p + (s-1) stay exact near zero.
// x is overwritten. A NaN comes out in p.
func (k *kernel) power(x vec) (p, s vec) {
	n := k.reg()
	VMULPS(k.all(num(1.4426950408889634)), x, n)
	if k.zmm {
		VRNDSCALEPS(Imm(8), n, n)
	} else {
		VROUNDPS(Imm(8), n, n)
	}
	VFNMADD231PS(k.all(bits(0x3f318000)), n, x) // ln2, first 9 bits: n times it is exact
	VFNMADD231PS(k.all(bits(0xb95e8083)), n, x) // ln2, the rest
	q := k.all(num(1. / 5040))
	for _, c := range []float64{1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2} {
		VFMADD213PS(k.all(num(c)), x, q)
	}
	VMULPS(x, q, q)
	VFMADD213PS(x, x, q) // p = (r·q)·r + r
	s = k.reg()
	VCVTPS2DQ(n, s)
	VPADDD(k.all(bits(127)), s, s)
	VPSLLD(Imm(23), s, s)
	return q, s
}

// exp is e^x for x <= 0; below -87 it is zero, so that no denormal slows what follows. x is overwritten.
func (k *kernel) exp(x vec) vec {
	low := k.all(num(-87))
	tiny := k.compare(less, x, low)
	VMAXPS(x, low, x)
	p, s := k.power(x)
	VFMADD213PS(s, s, p)
	if k.zmm {
		zero := k.zero()
		VMOVAPS(zero, tiny.k, p)
	} else {
		VANDNPS(p, tiny.v, p)
	}
	return p
}

// expm1 is e^x - 1 for x <= 0. x is overwritten.
func (k *kernel) expm1(x vec) vec {
	VMAXPS(x, k.all(num(-87)), x)
	p, s := k.power(x)
	less := k.reg()
	VSUBPS(k.all(num(1)), s, less)
	VFMADD213PS(less, s, p)
	return p
}
