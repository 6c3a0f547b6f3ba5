package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// largest is the largest number of a row, in lane 0 (all lanes of the X register).
// Meanwhile it asks for next.
func (k *kernel) largest(row, next reg.GPVirtual) vec {
	floor := k.all(bits(0xff800000)) // -Inf
	top := k.regs(2)
	VMOVAPS(floor, top[0])
	VMOVAPS(floor, top[1])
	k.columnsBy(2, func(n int, rest bool) {
		for i, v := range k.readAsking("X", row, next, n, rest) {
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
		k.find(x, k.spread(k.largest(x, nil)))
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

// softmaxKernel: rows of up to four vectors stay in registers from their maximum to
// their gradient (AVX-512 only: AVX2 has too few); longer ones are read twice and
// their exponentials kept in Exp.
func softmaxKernel(zmm bool) {
	k := begin(zmm, "softmax", "Softmax")
	k.prepareTail()
	done := label("done")
	if zmm {
		k.pin(expConstants()...)
		for n := 1; n <= 4; n++ {
			wider := label("wider")
			CMPQ(k.cols, Imm(uint64(n*k.lanes)))
			JGT(LabelRef(wider))
			k.softmaxRows(func(r *softmaxRow) { r.short(n) })
			JMP(LabelRef(done))
			Label(wider)
		}
	}
	k.softmaxRows(func(r *softmaxRow) { r.long() })
	Label(done)
	k.end()
}

// softmaxRow is the row a softmax is at.
type softmaxRow struct {
	*kernel
	at, i reg.GPVirtual // place in the list, row number
	row   reg.GPVirtual // its numbers
	next  reg.GPVirtual // those of the row that is asked for meanwhile
	label reg.GPVirtual
}

// softmaxRows runs body on the rows of the list.
func (k *kernel) softmaxRows(body func(r *softmaxRow)) {
	r := &softmaxRow{kernel: k, at: GP64(), i: GP64(), row: GP64(), next: GP64(), label: GP64()}
	XORQ(r.at, r.at)
	far := k.rowsAhead()
	start := label("rows")
	Label(start)
	listed, have := k.load("List"), label("have")
	MOVQ(r.at, r.i)
	TESTQ(listed, listed)
	JZ(LabelRef(have))
	MOVL(Mem{Base: listed, Index: r.at, Scale: 4}, r.i.As32())
	Label(have)
	MOVQ(r.i, r.row)
	IMULQ(k.field("X.Stride"), r.row)
	ADDQ(k.field("X.Data"), r.row)
	r.ask(far)
	MOVQ(I32(-1), r.label)
	k.ifPointer("Labels", func(labels reg.GPVirtual) {
		MOVL(Mem{Base: labels, Index: r.i, Scale: 4}, r.label.As32())
	})
	body(r)
	INCQ(r.at)
	CMPQ(r.at, k.field("Rows"))
	JLT(LabelRef(start))
}

// rowsAhead is how many rows of X are at least as many bytes as reads look ahead.
func (k *kernel) rowsAhead() reg.GPVirtual {
	far, n := GP64(), GP64()
	XORQ(far, far)
	XORQ(n, n)
	again := label("far")
	Label(again)
	INCQ(n)
	ADDQ(k.cols, far)
	ADDQ(k.cols, far)
	CMPQ(far, U32(ahead/2))
	JLT(LabelRef(again))
	return n
}

// ask sets the row that is asked for while this one is computed: as far ahead in
// the list, or this one where the list ends.
func (r *softmaxRow) ask(far reg.GPVirtual) {
	k, then, listed, have := r.kernel, GP64(), r.load("List"), label("next")
	LEAQ(Mem{Base: r.at, Index: far, Scale: 1}, then)
	MOVQ(r.row, r.next)
	CMPQ(then, k.field("Rows"))
	JGE(LabelRef(have))
	MOVQ(then, r.next)
	unlisted := label("unlisted")
	TESTQ(listed, listed)
	JZ(LabelRef(unlisted))
	MOVL(Mem{Base: listed, Index: then, Scale: 4}, r.next.As32())
	Label(unlisted)
	IMULQ(k.field("X.Stride"), r.next)
	ADDQ(k.field("X.Data"), r.next)
	Label(have)
}

// score stores the row's sum and gap and counts it if first leaves the label's column in k.j.
func (r *softmaxRow) score(top, total vec, first func()) {
	VMOVSS(total, Mem{Base: r.load("Sum"), Index: r.at, Scale: 4})
	none := label("unlabelled")
	TESTQ(r.label, r.label)
	JS(LabelRef(none))
	mine, gap := r.one("X", r.row, r.label), XMM()
	VSUBSS(mine, top, gap)
	VMOVSS(gap, Mem{Base: r.load("Gap"), Index: r.at, Scale: 4})
	VUCOMISS(mine, top)
	JNE(LabelRef(none))
	first()
	CMPQ(r.j, r.label)
	JNE(LabelRef(none))
	INCQ(r.field("Correct"))
	Label(none)
}

// target is the row of Dst, factor Scale/total.
func (r *softmaxRow) target(total vec, body func(dst reg.GPVirtual, factor vec)) {
	r.ifPointer("Dst.Data", func(dst reg.GPVirtual) {
		IMULQ(r.field("Dst.Stride"), r.i)
		ADDQ(r.i, dst)
		f := XMM()
		VMOVSS(r.field("Scale"), f)
		VDIVSS(total, f, f)
		body(dst, r.spread(f))
	})
}

// short is a row of n vectors, the last of them perhaps in part.
func (r *softmaxRow) short(n int) {
	k := r.kernel
	XORQ(k.j, k.j)
	last := K() // lanes of the last vector: all where the columns fill it
	left := GP64()
	MOVQ(k.cols, left)
	SUBQ(Imm(uint64((n-1)*k.lanes)), left)
	ones := GP64()
	MOVQ(U32(0xffff), ones)
	BZHIQ(left, ones, ones)
	KMOVW(ones.As32(), last)
	x := k.regs(n)
	k.either("X", func() {
		k.prefetchAt(r.next, 4, n)
		for c := range n - 1 {
			VMOVUPS(k.cell(r.row, 4, c), x[c])
		}
		VMOVUPS_Z(k.cell(r.row, 4, n-1), last, x[n-1])
	}, func() {
		k.prefetchAt(r.next, 2, n)
		for c := range n - 1 {
			VPMOVZXWD(k.cell(r.row, 2, c), x[c])
			VPSLLD(Imm(16), x[c], x[c])
		}
		VPMOVZXWD_Z(k.cell(r.row, 2, n-1), last, x[n-1])
		VPSLLD(Imm(16), x[n-1], x[n-1])
	})
	VBLENDMPS(x[n-1], k.all(bits(0xff800000)), last, x[n-1]) // -Inf where there is no column
	most := k.reg()
	VMOVAPS(x[0], most)
	for c := 1; c < n; c++ {
		VMAXPS(x[c], most, most)
	}
	top := k.most(most)
	all := k.spread(top)
	hits := GP64() // the columns that are as large as the largest
	for c := range n {
		m, bits := k.compare(equal, x[c], all), GP64()
		KMOVW(m.k, bits.As32())
		if c == 0 {
			MOVQ(bits, hits)
			continue
		}
		SHLQ(Imm(uint64(c*k.lanes)), bits)
		ORQ(bits, hits)
	}
	for c := range n {
		VSUBPS(all, x[c], x[c])
	}
	e := k.exp(x)
	sum := k.reg()
	VMOVAPS(e[0], sum)
	for c := 1; c < n; c++ {
		VADDPS(e[c], sum, sum)
	}
	total := k.sum(sum)
	r.score(top, total, func() { BSFQ(hits, k.j) })
	r.target(total, func(dst reg.GPVirtual, factor vec) {
		XORQ(k.j, k.j)
		wanted, whole := k.reg(), k.spread(total)
		VPBROADCASTD(r.label.As32(), wanted)
		for c := range n {
			m := K()
			VPCMPEQD(columns64.Offset(c*64), wanted, m)
			VSUBPS(whole, e[c], m, e[c])
			VMULPS(factor, e[c], e[c])
		}
		k.either("Dst", func() {
			for c := range n - 1 {
				VMOVUPS(e[c], k.cell(dst, 4, c))
			}
			VMOVUPS(e[n-1], last, k.cell(dst, 4, n-1))
		}, func() {
			h := k.rounded(e)
			for c := range n - 1 {
				VPMOVDW(h[c], k.cell(dst, 2, c))
			}
			VPMOVDW(h[n-1], last, k.cell(dst, 2, n-1))
		})
	})
}

// columns64 is the numbers 0 to 63.
var columns64 Mem

// long is a row of any length.
func (r *softmaxRow) long() {
	k, exps := r.kernel, r.load("Exp")
	top := k.largest(r.row, r.next)
	all := k.spread(top)
	sum := k.zero()
	k.columns(func(n int, rest bool) {
		v := k.readAsking("X", r.row, nil, n, rest)
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
	r.score(top, total, func() { k.find(r.row, all) })
	r.target(total, func(dst reg.GPVirtual, factor vec) {
		// The label's exponential less the sum, times Scale/sum, is its softmax less one, times Scale.
		none := label("unlabelled")
		TESTQ(r.label, r.label)
		JS(LabelRef(none))
		cell, e := Mem{Base: exps, Index: r.label, Scale: 4}, XMM()
		VMOVSS(cell, e)
		VSUBSS(total, e, e)
		VMOVSS(e, cell)
		Label(none)
		k.columnsBy(2, func(n int, rest bool) {
			v := k.regs(n)
			for c := range v {
				VMULPS(k.cell(exps, 4, c), factor, v[c])
			}
			k.write("Dst", dst, v, rest)
		})
	})
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
	kept := []Mem{k.field("Product"), k.field("Product").Offset(size)}
	product, linear := k.regs(2), []vec{k.zero(), k.zero()}
	for h, p := range product {
		VMOVUPD(kept[h], p)
	}
	k.rows(map[string]reg.GPVirtual{"X": x, "T": t, "Dst": dst}, func() {
		k.columnsBy(k.wide/2, func(n int, rest bool) {
			v, y := k.read("X", x, n, rest), k.read("T", t, n, rest)
			zero, sign := k.zero(), k.all(bits(0x80000000))
			negative := k.regs(n)
			for i := range v {
				term := k.reg()
				VMAXPS(v[i], zero, term)
				VFNMADD231PS(v[i], y[i], term)
				for h, l := range linear {
					VADDPD(half(term, h == 1), l, l)
				}
				if k.zmm {
					VPORD(sign, v[i], negative[i])
				} else {
					VPOR(sign, v[i], negative[i])
				}
			}
			e := k.exp(negative)
			ones := k.reg()
			VBROADCASTSD(one64, ones)
			for i := range e {
				if rest {
					k.keep(k.tail(), e[i])
				}
				for h, p := range product {
					w := half(e[i], h == 1)
					VADDPD(ones, w, w)
					VMULPD(w, p, p)
				}
			}
			k.ifPointer("Dst.Data", func(reg.GPVirtual) {
				one, scale := k.all(num(1)), k.all(k.field("Scale"))
				for i := range e {
					up := k.reg()
					k.choose(k.compare(less, v[i], k.zero()), e[i], one, up)
					VADDPS(one, e[i], e[i])
					VDIVPS(e[i], up, up)
					VSUBPS(y[i], up, up)
					VMULPS(scale, up, v[i])
				}
				k.write("Dst", dst, v, rest)
			})
		})
	})
	for h, p := range product {
		VMOVUPD(p, kept[h])
	}
	VADDPD(linear[1], linear[0], linear[0])
	k.sumDoubles(linear[0], k.field("Linear"))
	k.end()
}

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
	k.upper(sum, a)
	VADDPD(a, sum.AsX(), a)
	VPERMILPD(Imm(1), a, b)
	VADDSD(a, b, a)
	VADDSD(to, a, a)
	VMOVSD(a, to)
}
