package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// power splits e^x, for x in [-87,0], into p and s with e^x = s·p + s, where s = 2^n
// and p = e^r - 1 for |r| <= ln2/2, by its Taylor series up to r^7 (error under
// 2e-8 of p). Keeping p apart lets e^x - 1 = s·p + (s-1) stay exact near zero. x is
// overwritten. A NaN comes out in p. Vectors go side by side, for their steps wait
// for each other and they share constants.
func (k *kernel) power(x []vec) (p, s []vec) {
	n := k.regs(len(x))
	each := func(f func(i int)) {
		for i := range x {
			f(i)
		}
	}
	c := k.constant(num(1.4426950408889634))
	each(func(i int) { VMULPS(c, x[i], n[i]) })
	each(func(i int) {
		if k.zmm {
			VRNDSCALEPS(Imm(8), n[i], n[i])
		} else {
			VROUNDPS(Imm(8), n[i], n[i])
		}
	})
	high, low := k.constant(bits(0x3f318000)), k.constant(bits(0xb95e8083)) // ln2: 9 bits, so that n times it is exact, and the rest
	each(func(i int) { VFNMADD231PS(high, n[i], x[i]) })
	each(func(i int) { VFNMADD231PS(low, n[i], x[i]) })
	p = k.regs(len(x))
	first := k.constant(num(1. / 5040))
	each(func(i int) { VMOVAPS(first, p[i]) })
	for _, t := range []float64{1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2} {
		c := k.constant(num(t))
		each(func(i int) { VFMADD213PS(c, x[i], p[i]) })
	}
	each(func(i int) { VMULPS(x[i], p[i], p[i]) })
	each(func(i int) { VFMADD213PS(x[i], x[i], p[i]) }) // (r·q)·r + r
	bias := k.constant(bits(127))
	each(func(i int) {
		VCVTPS2DQ(n[i], n[i])
		VPADDD(bias, n[i], n[i])
		VPSLLD(Imm(23), n[i], n[i])
	})
	return p, n
}

// exp is e^x for x <= 0; below -87 it is zero, so that no denormal slows what follows. x is overwritten.
func (k *kernel) exp(x []vec) []vec {
	low := k.constant(num(-87))
	some := make([]mask, len(x))
	for i, v := range x {
		some[i] = k.compare(notLess, v, low)
		VMAXPS(v, low, v)
	}
	p, s := k.power(x)
	for i := range p {
		VFMADD213PS(s[i], s[i], p[i])
		k.keep(some[i], p[i])
	}
	return p
}

// expm1 is e^x - 1 for x <= 0. x is overwritten.
func (k *kernel) expm1(x []vec) []vec {
	low, one := k.constant(num(-87)), k.constant(num(1))
	for _, v := range x {
		VMAXPS(v, low, v)
	}
	p, s := k.power(x)
	for i := range p {
		t := k.reg()
		VSUBPS(one, s[i], t)
		VFMADD213PS(t, s[i], p[i])
	}
	return p
}

// expConstants are what exp uses, for kernels with registers to spare.
func expConstants() []Mem {
	m := []Mem{bits(0x3f318000), bits(0xb95e8083), bits(127)}
	for _, x := range []float64{-87, 1.4426950408889634, 1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2} {
		m = append(m, num(x))
	}
	return m
}
