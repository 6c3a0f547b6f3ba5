package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// series is how a kernel computes e^r - 1 for |r| <= ln2/2: r plus a polynomial in r, from
// the highest power down to r². The coefficients make the largest error relative to e^r
// least: 3e-9 for float32, 5e-6 where numbers are stored as bfloat16, which keep 4e-3.
type series []float64

var (
	fine = series{1.3814559885556219e-3, 8.368735648789684e-3, 4.1668389864968104e-2, 0.16666520477024765,
		0.4999999343737862}
	coarse = series{4.127747097819652e-2, 0.16753577500888953, 0.5000512344223605}
)

// magic added to a float32 leaves its nearest integer, plus 127, in the low bits.
const magic = 0x4b40007f

// power splits e^x, for x in [-88,0], into p and s with e^x = s·p + s, where s = 2^n
// and p = e^r - 1. Keeping p apart lets e^x - 1 = s·p + (s-1) stay exact near zero. x is
// overwritten. A NaN comes out in p. Vectors go side by side, for their steps wait
// for each other and they share constants.
func (k *kernel) power(x []vec, c series) (p, s []vec) {
	n := k.regs(len(x))
	s, p = k.regs(len(x)), k.regs(len(x))
	each := func(f func(i int)) {
		for i := range x {
			f(i)
		}
	}
	scale, round := k.all(num(1.4426950408889634)), k.all(bits(magic))
	each(func(i int) { VMOVAPS(round, s[i]) })
	each(func(i int) { VFMADD231PS(scale, x[i], s[i]) })
	each(func(i int) { VSUBPS(round, s[i], n[i]) })
	if len(c) == len(coarse) {
		ln2 := k.all(num(0.6931471805599453))
		each(func(i int) { VFNMADD231PS(ln2, n[i], x[i]) })
	} else { // ln2 in 9 bits, so that n times it is exact, and the rest
		high, low := k.all(bits(0x3f318000)), k.all(bits(0xb95e8083))
		each(func(i int) { VFNMADD231PS(high, n[i], x[i]) })
		each(func(i int) { VFNMADD231PS(low, n[i], x[i]) })
	}
	first := k.all(num(c[0]))
	each(func(i int) { VMOVAPS(first, p[i]) })
	for _, t := range c[1:] {
		c := k.all(num(t))
		each(func(i int) { VFMADD213PS(c, x[i], p[i]) })
	}
	each(func(i int) { VMULPS(x[i], p[i], p[i]) })
	each(func(i int) { VFMADD213PS(x[i], x[i], p[i]) }) // (r·q)·r + r
	each(func(i int) { VPSLLD(Imm(23), s[i], s[i]) })
	return p, s
}

// exp is e^x for x <= 0. Below -87.7 it is zero, so that no denormal slows what follows: there
// n is -127, and s as it is put together is zero. x is overwritten.
func (k *kernel) exp(x []vec, c series) []vec {
	if k.zmm && len(c) == len(coarse) {
		k.scaled(x)
		return x
	}
	low := k.all(num(lowest))
	for _, v := range x {
		VMAXPS(v, low, v)
	}
	p, s := k.power(x, c)
	for i := range p {
		VFMADD213PS(s[i], s[i], p[i])
	}
	return p
}

// scaled replaces x, from lowest to 0, by e^x for numbers stored as bfloat16.
func (k *kernel) scaled(x []vec) {
	scale := k.all(num(math.Log2E))
	for _, v := range x {
		VMULPS(scale, v, v)
	}
	k.twoTo(x, k.twoToConstants())
}

// twoTo replaces x by 2^x for numbers stored as bfloat16: a cubic of what x is beyond a whole
// number, scaled by that. It is
// off by up to 9e-5 of itself, and exact at zero.
func (k *kernel) twoTo(x, constants []vec) {
	f, p := k.regs(len(x)), k.regs(len(x))
	each := func(f func(i int)) {
		for i := range x {
			f(i)
		}
	}
	each(func(i int) { VREDUCEPS(U8(1), x[i], f[i]) }) // less what it is rounded down to
	each(func(i int) { VMOVAPS(constants[0], p[i]) })
	for _, c := range constants[1:] {
		each(func(i int) { VFMADD213PS(c, f[i], p[i]) })
	}
	each(func(i int) { VSCALEFPS(x[i], p[i], x[i]) })
}

func (k *kernel) twoToConstants() (v []vec) {
	for _, c := range append(cubic, 1) {
		v = append(v, k.all(num(c)))
	}
	return v
}

// cubic are the coefficients of 2^f - 1 for f from 0 to 1, from the highest power down to f,
// whose error relative to 2^f
// is least.
var cubic = series{0.07706704200379563, 0.22764499119524104, 0.6951167864133925}

// lowest is -127·ln2: less is no different.
const lowest = -88.03

// elu replaces what is negative of x by e^x - 1. What power makes of the other lanes is not used.
func (k *kernel) elu(x []vec, c series) {
	if k.zmm && len(c) == len(coarse) {
		k.eluByParts(x)
		return
	}
	low, one, zero, y := k.all(num(lowest)), k.all(num(1)), k.zero(), k.regs(len(x))
	for i, v := range x {
		VMAXPS(v, low, y[i])
	}
	p, s := k.power(y, c)
	for i := range p {
		if k.zmm {
			m := k.compare(notGreater, x[i], zero).k // or NaN
			VSUBPS(one, s[i], m, x[i])
			VFMADD231PS(p[i], s[i], m, x[i])
			continue
		}
		t := k.reg()
		VSUBPS(one, s[i], t)
		VFMADD213PS(t, s[i], p[i])
		k.choose(k.compare(greater, x[i], zero), x[i], p[i], x[i])
	}
}

// eluByParts is elu for numbers stored as bfloat16: e^x - 1 is a parabola in each of 32 parts, the octaves of
// 1/16 - x from 1/16 to 16 in four each. It is off by up to 1e-4 of itself, and exact at zero.
func (k *kernel) eluByParts(x []vec) {
	least, shift, zero, table := k.all(num(eluLeast)), k.all(num(eluShift)), k.zero(), k.regs(6)
	for i, t := range table {
		VMOVUPS(parabolas.Offset(64*i), t)
	}
	c := [3][]vec{k.regs(len(x)), k.regs(len(x)), k.regs(len(x))}
	for i := range x {
		VMAXPS(x[i], least, x[i])
		VSUBPS(shift, x[i], c[0][i])
	}
	for i := range x {
		VPSRLD(Imm(21), c[0][i], c[0][i]) // two bits of the mantissa, three of the exponent
		VMOVAPS(c[0][i], c[1][i])
		VMOVAPS(c[0][i], c[2][i])
		for power := range c {
			VPERMI2PS(table[2*power+1], table[2*power], c[power][i])
		}
	}
	for i := range x {
		VFMADD213PS(c[1][i], x[i], c[2][i])
		VFMADD213PS(c[0][i], c[2][i], k.compare(notGreater, x[i], zero).k, x[i])
	}
}

// parabolas are the coefficients of the parts of eluByParts: 32 constants, 32 of x, 32 of x².
var parabolas Mem

const eluLeast, eluShift = -15.9, 1. / 16

// makeParabolas lets each go through e^x - 1 where its error is then least: at the zeros of a Chebyshev
// polynomial; the first one through zero too, so that small numbers keep their digits.
func makeParabolas() {
	var c [3][32]float64
	for octave := -4; octave < 4; octave++ {
		for quarter := range 4 {
			width := math.Ldexp(0.25, octave)
			from := eluShift - math.Ldexp(1, octave) - width*float64(quarter)
			at := func(zero float64) float64 { return from - width/2*(1-zero) }
			x, y, z := at(math.Sqrt(0.75)), at(0), at(-math.Sqrt(0.75))
			if from == 0 {
				x, y, z = 0, at(math.Sqrt(0.5)), at(-math.Sqrt(0.5))
			}
			slope := func(a, b float64) float64 { return (math.Expm1(b) - math.Expm1(a)) / (b - a) }
			square := (slope(y, z) - slope(x, y)) / (z - x)
			linear := slope(x, y) - square*(x+y)
			part := (octave+127)&7<<2 | quarter
			c[0][part], c[1][part], c[2][part] = math.Expm1(x)-x*(linear+square*x), linear, square
		}
	}
	parabolas = GLOBL("elementParabolas", 16|8)
	for i := range 96 {
		DATA(i*4, U32(math.Float32bits(float32(c[i/32][i%32]))))
	}
}

// byType runs body with the series that fits the numbers of a block.
func (k *kernel) byType(block string, body func(c series)) {
	k.either(block, func() { body(fine) }, func() { body(coarse) })
}
