package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// largest is the largest number of a row, in lane 0 (all lanes of the X register). Meanwhile it asks for others.
//
// Of bfloat16 two vectors are read at once, the even and the odd columns: half the work.
func (k *kernel) largest(row reg.GPVirtual, ask func(size, n int)) vec {
	floor, upper := k.all(bits(0xff800000)), k.all(bits(0xffff0000)) // -Inf; the odd columns
	top := k.regs(k.wide)
	for i := range top {
		VMOVAPS(floor, top[i])
	}
	single := func(v []vec, rest bool) {
		for i := range v {
			if rest {
				k.choose(k.tail(), v[i], floor, v[i])
			}
			VMAXPS(v[i], top[i], top[i])
		}
	}
	k.columns(func(n int, rest bool) {
		if n == 1 {
			single(k.readWith("X", row, n, rest, func(size int) { ask(size, n) }), rest)
			return
		}
		k.either("X", func() {
			ask(4, n)
			for i := range n {
				VMAXPS(k.cell(row, 4, i), top[i], top[i])
			}
		}, func() {
			ask(2, n)
			for i := 0; i < n; i += 2 {
				odd, even := k.reg(), k.reg()
				VMOVUPS(k.cell(row, 2, i), odd)
				VPSLLD(Imm(16), odd, even)
				k.and(upper, odd, odd)
				VMAXPS(even, top[i], top[i])
				VMAXPS(odd, top[i+1], top[i+1])
			}
		})
	})
	for n := len(top) / 2; n > 0; n /= 2 {
		for i := range n {
			VMAXPS(top[n+i], top[i], top[i])
		}
	}
	return k.most(top[0])
}

// find puts the first column of a row that equals v into k.j; a column past the end when none does.
func (k *kernel) find(row reg.GPVirtual, v vec) {
	found, next, end := label("found"), label("next"), label("end")
	hit := GP64()
	test := func(rest bool) {
		m := k.compare(equal, k.readAsking("X", row, nil, 1, rest)[0], v)
		if rest {
			// Only columns that exist count: the others read as zero.
			if k.zmm {
				KANDW(k.tailK, m.k, m.k)
			} else {
				VPAND(k.tailY, m.v, m.v)
			}
		}
		if k.zmm {
			KMOVW(m.k, hit.As32())
		} else {
			VMOVMSKPS(m.v, hit.As32())
		}
		TESTL(hit.As32(), hit.As32())
		JNZ(LabelRef(found))
	}
	XORQ(k.j, k.j)
	t := GP64()
	last := label("last")
	Label(next)
	LEAQ(Mem{Base: k.j, Disp: k.lanes}, t)
	frame.Compare(t, k.cols, JGT, last)
	test(false)
	ADDQ(Imm(uint64(k.lanes)), k.j)
	JMP(LabelRef(next))
	Label(last)
	frame.Compare(k.j, k.cols, JGE, end)
	test(true)
	MOVQ(k.cols, k.j)
	JMP(LabelRef(end))
	Label(found)
	BSFL(hit.As32(), hit.As32())
	ADDQ(hit, k.j)
	Label(end)
}

func argmaxKernel(s set) {
	k := begin(s, "argmax", "Argmax")
	k.prepareTail()
	x, dst := k.load("X.Data"), k.load("Dst")
	k.rows(map[string]reg.GPVirtual{"X": x}, func() {
		k.find(x, k.spread(k.largest(x, func(size, n int) { k.prefetch(x, size, n) })))
		// A NaN may equal nothing.
		zero := GP64()
		XORQ(zero, zero)
		CMPQ(k.j, k.cols)
		CMOVQGE(zero, k.j)
		MOVL(k.j.As32(), Mem{Base: dst})
		ADDQ(Imm(4), dst)
	})
	k.end()
}

// one loads a single number of a row into an X register.
func (k *kernel) one(block string, row, column reg.GPVirtual) vec {
	x := XMM()
	k.either(block, func() {
		VMOVSS(Mem{Base: row, Index: column, Scale: 4}, x)
	}, func() {
		w := GP32()
		MOVWLZX(Mem{Base: row, Index: column, Scale: 2}, w)
		SHLL(Imm(16), w)
		VMOVD(w, x)
	})
	return x
}

// bceFew is how many steps, of up to four vectors each, a product or a sum of float32 takes before it goes to one of
// float64: by then a product is at most 2^64, and a sum has lost less than 1e-6 of itself.
const bceFew = 16

func bceKernel(s set) {
	k := begin(s, "bce", "BCE")
	k.flush("X")
	k.prepareTail()
	x, t, dst := k.load("X.Data"), k.load("T.Data"), k.load("Dst.Data")
	product, linear, few := k.all(num(1)), k.zero(), GP64()
	MOVQ(U32(bceFew), few)
	wide := k.wide
	if !k.zmm {
		wide = 1 // two need more registers than there are
	}
	k.rows(map[string]reg.GPVirtual{"X": x, "T": t, "Dst": dst}, func() {
		k.columnsBy(wide, func(n int, rest bool) {
			v, y := k.read("X", x, n, rest), k.read("T", t, n, rest)
			zero, sign := k.zero(), k.all(bits(0x80000000))
			negative, term := k.regs(n), k.regs(n)
			for i := range v {
				VMAXPS(v[i], zero, term[i])
				VFNMADD231PS(v[i], y[i], term[i])
				if k.zmm {
					VPORD(sign, v[i], negative[i])
				} else {
					VPOR(sign, v[i], negative[i])
				}
			}
			for i := range term {
				VADDPS(term[i], linear, linear)
			}
			k.byType("X", func(s series) {
				e := k.exp(negative, s)
				one := k.all(num(1))
				below := k.regs(n) // 1 + e
				for i := range e {
					if rest {
						k.keep(k.tail(), e[i])
					}
					VADDPS(one, e[i], below[i])
					VMULPS(below[i], product, product)
				}
				k.ifPointer("Dst.Data", func(reg.GPVirtual) {
					scale := k.all(k.field("Scale"))
					for i := range e {
						k.choose(k.compare(less, v[i], k.zero()), e[i], one, e[i])
						k.divideLess(below[i], y[i], e[i], one, s)
						VMULPS(scale, e[i], e[i])
					}
					k.write("Dst", dst, e, rest)
				})
			})
			more := label("more")
			frame.Next(few, more)
			k.widenBCE(product, linear)
			MOVQ(U32(bceFew), few)
			Label(more)
		})
	})
	k.widenBCE(product, linear)
	k.end()
}

// oneDouble is 1.
var oneDouble Mem

// widenBCE takes a product and a sum to those of float64, and starts new ones.
func (k *kernel) widenBCE(product, linear vec) {
	sum, size := k.halfDoubles(linear, false), k.lanes*4
	VADDPD(k.halfDoubles(linear, true), sum, sum)
	k.sumDoubles(sum, k.field("Linear"))
	one := k.reg()
	VPBROADCASTQ(oneDouble, one)
	for h := range 2 {
		p, e := k.halfDoubles(product, h == 1), k.reg()
		kept, doublings := k.field("Product").Offset(h*size), k.field("Exponent").Offset(h*size)
		VMULPD(kept, p, p)
		// p is at least 1, or NaN, which linear is then too: what its exponent has beyond that of 1 is taken out.
		VPSUBQ(one, p, e)
		VPSRLQ(Imm(52), e, e)
		sum := k.reg()
		VPADDQ(doublings, e, sum)
		VMOVUPD(sum, doublings)
		VPSLLQ(Imm(52), e, e)
		VPSUBQ(e, p, p)
		VMOVUPD(p, kept)
	}
	VBROADCASTSS(bits(0), linear)
	VBROADCASTSS(num(1), product)
}

// halfDoubles is the lower or upper half of the lanes, widened.
func (k *kernel) halfDoubles(v vec, high bool) vec {
	w, narrow := k.reg(), YMM()
	switch {
	case k.zmm && high:
		VEXTRACTF64X4(Imm(1), v, narrow)
		VCVTPS2PD(narrow, w)
	case k.zmm:
		VCVTPS2PD(v.AsY(), w)
	case high:
		VEXTRACTF128(Imm(1), v, narrow.AsX())
		VCVTPS2PD(narrow.AsX(), w)
	default:
		VCVTPS2PD(v.AsX(), w)
	}
	return w
}

// divideLess: x = x/by - y, for by from 1 to 2.
func (k *kernel) divideLess(by, y, x, one vec, c series) {
	if !k.zmm {
		VDIVPS(by, x, x)
		VSUBPS(y, x, x)
		return
	}
	VFMSUB213PS(y, k.inverse(by, one, len(c) != len(coarse)), x)
}

// inverse is an estimate of 1/by to 14 bits on AVX-512, which is enough for bfloat16, or if exactly with one step of
// Newton's: a quarter of a division's time.
func (k *kernel) inverse(by, one vec, exactly bool) vec {
	inverse := k.reg()
	VRCP14PS(by, inverse)
	if exactly {
		off := k.reg()
		VMOVAPS(one, off)
		VFNMADD231PS(by, inverse, off)
		VFMADD231PS(off, inverse, inverse)
	}
	return inverse
}

// sumDoubles adds the lanes of a vector of float64 to a number in memory.
func (k *kernel) sumDoubles(sum vec, to Mem) {
	if k.zmm {
		high := YMM()
		VEXTRACTF64X4(Imm(1), sum, high)
		VADDPD(high, sum.AsY(), high)
		sum = high
	}
	a, b := XMM(), XMM()
	k.upperHalf(sum, a)
	VADDPD(a, sum.AsX(), a)
	VPERMILPD(Imm(1), a, b)
	VADDSD(a, b, a)
	VADDSD(to, a, a)
	VMOVSD(a, to)
}
