package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// softmaxKernel keeps exponentials in Exp. Maxima, exponentials and results are computed of three rows that follow each
// other, one of each: within a row each waits for a sum or maximum over all lanes.
func softmaxKernel(s set) {
	k := begin(s, "softmax", "Softmax")
	k.flush("X")
	k.prepareTail()
	k.softmaxTurns()
	k.end()
}

// softmaxRow is the row a softmax is at.
type softmaxRow struct {
	*kernel
	at, i reg.GPVirtual // place in the list, row number
	row   reg.GPVirtual // its numbers
	next  reg.GPVirtual // those of the listed row that is prefetched meanwhile
	label reg.GPVirtual
}

func (k *kernel) newSoftmaxRow() *softmaxRow {
	r := &softmaxRow{kernel: k, at: GP64(), i: GP64(), row: GP64(), label: GP64(), next: GP64()}
	XORQ(r.at, r.at)
	return r
}

// softmaxTurns computes rows of any length.
func (k *kernel) softmaxTurns() {
	r, far, start := k.newSoftmaxRow(), k.rowsAhead(), label("turn")
	Label(start)
	r.turn(func(reg.GPVirtual) {
		r.ifListed(func() {
			r.ask(far)
			r.storeTop(func(size, n int) { k.prefetchAt(r.next, size, n) })
		}, func() {
			r.storeTop(func(size, n int) { k.prefetch(r.row, size, n) })
		})
	})
	DECQ(r.at)
	r.turn(r.storeExps)
	DECQ(r.at)
	r.turn(r.fromExps)
	ADDQ(Imm(3), r.at)
	last := GP64()
	LEAQ(Mem{Base: r.at, Disp: -2}, last)
	frame.Compare(last, k.field("Rows"), JLT, start)
}

// turn runs body on the row at, if there is one, with the place of its exponentials.
func (r *softmaxRow) turn(body func(exps reg.GPVirtual)) {
	k, skip := r.kernel, label("skip")
	CMPQ(r.at, k.field("Rows"))
	JCC(LabelRef(skip)) // -1 and -2 are large too
	r.locate()
	exps, wide := k.load("Exp"), GP64()
	LEAQ(Mem{Base: k.cols, Disp: 15}, wide)
	ANDQ(I32(-16), wide)
	even := label("even")
	frame.Test(U32(1), r.at, JZ, even)
	LEAQ(Mem{Base: exps, Index: wide, Scale: 4}, exps)
	Label(even)
	body(exps)
	Label(skip)
}

// locate sets the row's number and its numbers.
func (r *softmaxRow) locate() {
	k, listed, have := r.kernel, r.load("List"), label("have")
	MOVQ(r.at, r.i)
	frame.Test(listed, listed, JZ, have)
	MOVL(Mem{Base: listed, Index: r.at, Scale: 4}, r.i.As32())
	Label(have)
	MOVQ(r.i, r.row)
	IMULQ(k.field("X.Stride"), r.row)
	ADDQ(k.field("X.Data"), r.row)
}

// loadLabel sets label, to -1 where there are none.
func (r *softmaxRow) loadLabel() {
	MOVQ(I32(-1), r.label)
	r.ifPointer("Labels", func(labels reg.GPVirtual) {
		MOVL(Mem{Base: labels, Index: r.i, Scale: 4}, r.label.As32())
	})
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
	frame.Compare(far, U32(ahead), JLT, again)
	return n
}

// ifListed runs yes where there is a list, else no.
func (r *softmaxRow) ifListed(yes, no func()) {
	all, done := label("all"), label("listed")
	frame.Compare(r.field("List"), Imm(0), JEQ, all)
	yes()
	JMP(LabelRef(done))
	Label(all)
	no()
	Label(done)
}

// ask sets the row that is asked for while this one is computed: as far ahead in
// the list, or this one where the list ends.
func (r *softmaxRow) ask(far reg.GPVirtual) {
	k, then, have := r.kernel, GP64(), label("next")
	LEAQ(Mem{Base: r.at, Index: far, Scale: 1}, then)
	MOVQ(r.row, r.next)
	frame.Compare(then, k.field("Rows"), JGE, have)
	MOVL(Mem{Base: r.load("List"), Index: then, Scale: 4}, r.next.As32())
	IMULQ(k.field("X.Stride"), r.next)
	ADDQ(k.field("X.Data"), r.next)
	Label(have)
}

// score stores the row's sum and gap and counts it if first leaves the label's column in k.j.
func (r *softmaxRow) score(top, total vec, first func()) {
	VMOVSS(total, Mem{Base: r.load("Sum"), Index: r.at, Scale: 4})
	none := label("unlabelled")
	frame.Test(r.label, r.label, JS, none)
	mine, gap := r.one("X", r.row, r.label), XMM()
	VSUBSS(mine, top, gap)
	VMOVSS(gap, Mem{Base: r.load("Gap"), Index: r.at, Scale: 4})
	VUCOMISS(mine, top)
	JNE(LabelRef(none))
	first()
	frame.Compare(r.j, r.label, JNE, none)
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

// storeTop keeps the row's maximum in Gap, and asks for others meanwhile.
func (r *softmaxRow) storeTop(ask func(size, n int)) {
	VMOVSS(r.largest(r.row, ask), Mem{Base: r.load("Gap"), Index: r.at, Scale: 4})
}

// storeExps stores the row's exponentials and their sum.
func (r *softmaxRow) storeExps(exps reg.GPVirtual) {
	k := r.kernel
	all := k.all(Mem{Base: r.load("Gap"), Index: r.at, Scale: 4})
	sums := []vec{k.zero(), k.zero()}
	k.columns(func(n int, rest bool) {
		v := k.readAsking("X", r.row, nil, n, rest)
		for c := range v {
			VSUBPS(all, v[c], v[c])
		}
		k.byType("X", func(s series) {
			for c, e := range k.exp(v, s) {
				if rest {
					k.keep(k.tail(), e)
				}
				VMOVUPS(e, k.cell(exps, 4, c))
				VADDPS(e, sums[c%2], sums[c%2])
			}
		})
	})
	VADDPS(sums[1], sums[0], sums[0])
	total := k.sum(sums[0])
	VMOVSS(total, Mem{Base: r.load("Sum"), Index: r.at, Scale: 4})
	r.lessLabel(exps, total)
}

// lessLabel takes the sum from the label's exponential: that times Scale/sum is its softmax
// less one, times Scale. It is read a turn later, when it has reached the cache: a vector
// that was written in parts must wait for that.
func (r *softmaxRow) lessLabel(exps reg.GPVirtual, total vec) {
	none, e := label("unlabelled"), XMM()
	r.loadLabel()
	frame.Test(r.label, r.label, JS, none)
	at := Mem{Base: exps, Index: r.label, Scale: 4}
	VMOVSS(at, e)
	VSUBSS(total, e, e)
	VMOVSS(e, at)
	Label(none)
}

// fromExps makes the row's result of its exponentials.
func (r *softmaxRow) fromExps(exps reg.GPVirtual) {
	k, top, total := r.kernel, XMM(), XMM()
	r.loadLabel()
	VMOVSS(Mem{Base: r.load("Gap"), Index: r.at, Scale: 4}, top)
	VMOVSS(Mem{Base: r.load("Sum"), Index: r.at, Scale: 4}, total)
	r.score(top, total, func() { k.find(r.row, k.spread(top)) })
	r.target(total, func(dst reg.GPVirtual, factor vec) {
		k.columns(func(n int, rest bool) {
			v := k.regs(n)
			for c := range v {
				VMULPS(k.cell(exps, 4, c), factor, v[c])
			}
			k.write("Dst", dst, v, rest)
		})
	})
}
