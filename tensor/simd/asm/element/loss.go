package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// largest is the largest number of a row, in lane 0 (all lanes of the X register).
func (k *kernel) largest(row reg.GPVirtual) vec {
	floor := k.all(bits(0xff800000)) // -Inf
	top := k.regs(2)
	VMOVAPS(floor, top[0])
	VMOVAPS(floor, top[1])
	k.columnsBy(2, func(n int, rest bool) {
		for i, v := range k.read("X", row, n, rest) {
			if rest {
				k.choose(k.tail(), v, floor, v)
			}
			VMAXPS(v, top[i], top[i])
		}
	})
	VMAXPS(top[1], top[0], top[0])
	return k.most(top[0])
}

// find puts the first column of a row that equals v into k.j; a column past the end when none does.
func (k *kernel) find(row reg.GPVirtual, v vec) {
	found, next, end := label("found"), label("next"), label("end")
	hit := GP64()
	test := func(rest bool) {
		m := k.compare(equal, k.read("X", row, 1, rest)[0], v)
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
	CMPQ(t, k.cols)
	JGT(LabelRef(last))
	test(false)
	ADDQ(Imm(uint64(k.lanes)), k.j)
	JMP(LabelRef(next))
	Label(last)
	CMPQ(k.j, k.cols)
	JGE(LabelRef(end))
	test(true)
	MOVQ(k.cols, k.j)
	JMP(LabelRef(end))
	Label(found)
	BSFL(hit.As32(), hit.As32())
	ADDQ(hit, k.j)
	Label(end)
}

func argmaxKernel(zmm bool) {
	k := begin(zmm, "argmax", "Argmax")
	k.prepareTail()
	x, dst := k.load("X.Data"), k.load("Dst")
	k.rows(map[string]reg.GPVirtual{"X": x}, func() {
		k.find(x, k.spread(k.largest(x)))
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

func softmaxKernel(zmm bool) {
	k := begin(zmm, "softmax", "Softmax")
	k.prepareTail()
	left, at, exps := k.load("Rows"), GP64(), k.load("Exp")
	XORQ(at, at)
	start := label("rows")
	Label(start)

	// i is the row; row its numbers.
	i, row := GP64(), GP64()
	listed, have := k.load("List"), label("have")
	MOVQ(at, i)
	TESTQ(listed, listed)
	JZ(LabelRef(have))
	MOVL(Mem{Base: listed, Index: at, Scale: 4}, i.As32())
	Label(have)
	MOVQ(i, row)
	IMULQ(k.field("X.Stride"), row)
	ADDQ(k.field("X.Data"), row)

	top := k.largest(row)
	all := k.spread(top)
	sum := k.zero()
	k.columns(func(n int, rest bool) {
		v := k.read("X", row, n, rest)
		for c := range v {
			VSUBPS(all, v[c], v[c])
		}
		for c, e := range k.exp(v) {
			if rest {
				k.keep(k.tail(), e)
			}
			VMOVUPS(e, k.cell(exps, 4, c))
			VADDPS(e, sum, sum)
		}
	})
	total := k.sum(sum)
	sums := k.load("Sum")
	VMOVSS(total, Mem{Base: sums, Index: at, Scale: 4})

	label32 := GP64()
	k.ifPointer("Labels", func(labels reg.GPVirtual) {
		MOVL(Mem{Base: labels, Index: i, Scale: 4}, label32.As32())
		mine, gap := k.one("X", row, label32), XMM()
		VSUBSS(mine, top, gap)
		gaps := k.load("Gap")
		VMOVSS(gap, Mem{Base: gaps, Index: at, Scale: 4})
		wrong := label("wrong")
		VUCOMISS(mine, top)
		JNE(LabelRef(wrong))
		k.find(row, all)
		CMPQ(k.j, label32)
		JNE(LabelRef(wrong))
		INCQ(k.field("Correct"))
		Label(wrong)
	})

	k.ifPointer("Dst.Data", func(dst reg.GPVirtual) {
		IMULQ(k.field("Dst.Stride"), i)
		ADDQ(i, dst)
		f := XMM()
		VMOVSS(k.field("Scale"), f)
		VDIVSS(total, f, f)
		factor := k.spread(f)
		// The label's exponential becomes what the scaled one less Scale came from.
		k.ifPointer("Labels", func(reg.GPVirtual) {
			cell := Mem{Base: exps, Index: label32, Scale: 4}
			e := XMM()
			VMOVSS(cell, e)
			VSUBSS(total, e, e)
			VMOVSS(e, cell)
		})
		k.columnsBy(2, func(n int, rest bool) {
			v := k.regs(n)
			for c := range v {
				VMULPS(k.cell(exps, 4, c), factor, v[c])
			}
			k.write("Dst", dst, v, rest)
		})
	})
	INCQ(at)
	DECQ(left)
	JNZ(LabelRef(start))
	k.end()
}

func bceKernel(zmm bool) {
	k := begin(zmm, "bce", "BCE")
	k.prepareTail()
	x, t, dst := k.load("X.Data"), k.load("T.Data"), k.load("Dst.Data")
	half := func(v vec, high bool) vec { // half of the lanes, widened
		w := k.reg()
		switch {
		case k.zmm && high:
			y := YMM()
			VEXTRACTF64X4(Imm(1), v, y)
			VCVTPS2PD(y, w)
		case k.zmm:
			VCVTPS2PD(v.AsY(), w)
		case high:
			y := XMM()
			VEXTRACTF128(Imm(1), v, y)
			VCVTPS2PD(y, w)
		default:
			VCVTPS2PD(v.AsX(), w)
		}
		return w
	}
	size := k.lanes * 4
	product := []Mem{k.field("Product"), k.field("Product").Offset(size)}
	linear := k.zero()
	k.rows(map[string]reg.GPVirtual{"X": x, "T": t, "Dst": dst}, func() {
		k.columnsBy(1, func(_ int, rest bool) {
			v, y := k.read("X", x, 1, rest)[0], k.read("T", t, 1, rest)[0]
			zero, one := k.zero(), k.all(num(1))
			term := k.reg()
			VMAXPS(v, zero, term)
			VFNMADD231PS(v, y, term)
			negative := k.reg()
			sign := k.all(bits(0x80000000))
			if k.zmm {
				VPORD(sign, v, negative)
			} else {
				VPOR(sign, v, negative)
			}
			e := k.exp([]vec{negative})[0]
			if rest {
				k.keep(k.tail(), e)
			}
			VADDPD(half(term, false), linear, linear)
			VADDPD(half(term, true), linear, linear)
			ones := k.reg()
			k.spread64(ones)
			for h, p := range product {
				w := half(e, h == 1)
				VADDPD(ones, w, w)
				VMULPD(p, w, w)
				VMOVUPD(w, p)
			}
			k.ifPointer("Dst.Data", func(reg.GPVirtual) {
				up, down := k.reg(), k.reg()
				k.choose(k.compare(less, v, zero), e, one, up)
				VADDPS(one, e, down)
				VDIVPS(down, up, up)
				VSUBPS(y, up, up)
				VMULPS(k.all(k.field("Scale")), up, up)
				k.write("Dst", dst, []vec{up}, rest)
			})
		})
	})
	k.sumDoubles(linear, k.field("Linear"))
	k.end()
}

// spread64 is 1 in every float64 lane.
func (k *kernel) spread64(v vec) { VBROADCASTSD(one64, v) }

// one64 is the float64 number 1.
var one64 Mem

// sumDoubles adds the lanes of a vector of float64 to a number in memory.
func (k *kernel) sumDoubles(sum vec, to Mem) {
	if k.zmm {
		high := YMM()
		VEXTRACTF64X4(Imm(1), sum, high)
		VADDPD(high, sum.AsY(), high)
		sum = high
	}
	a, b := XMM(), XMM()
	VEXTRACTF128(Imm(1), sum.AsY(), a)
	VADDPD(a, sum.AsX(), a)
	VPERMILPD(Imm(1), a, b)
	VADDSD(a, b, a)
	VADDSD(to, a, a)
	VMOVSD(a, to)
}
