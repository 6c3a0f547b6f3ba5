package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// softmaxTurned is softmax of short rows of float32, turned.
type softmaxTurned struct {
	*turned
	labels, top, total vec
	mine               vec // the labels' numbers
	first              vec // the first column that is as large as the largest
}

func (k *kernel) softmaxTurned() {
	t := &turned{kernel: k, size: 4, listed: true}
	t.turnRows("Dst", func() {}, func() {
		s := &softmaxTurned{turned: t, labels: k.all(bits(0xffffffff)), first: k.all(bits(0xffffffff)), mine: k.zero()}
		s.ifPointer("Labels", func(labels reg.GPVirtual) { s.lookUp(labels) })
		s.read("X", s.room, s.all(bits(0xff800000)))
		s.top = s.largestColumn(func() {
			across := &traffic{turned: s.turned}
			across.ifAcross(func() { s.ifList(func() { s.askSpan(4) }) }, func() {})
		})
		s.exps()
		s.store()
		s.ifPointer("Dst.Data", func(reg.GPVirtual) { s.gradients() })
	})
}

// lookUp finds the labels of the rows.
func (s *softmaxTurned) lookUp(labels reg.GPVirtual) {
	apart, have, first := label("apart"), label("labels"), s.from(s.at)
	s.ifApart(apart)
	CMPQ(s.n, Imm(16))
	JNE(LabelRef(apart))
	s.number(first)
	VMOVDQU32(Mem{Base: labels, Index: first, Scale: 4}, s.labels)
	JMP(LabelRef(have))
	Label(apart)
	s.gatherLabels(labels, s.labels)
	Label(have)
	seen := s.reg()
	VMOVDQA32(s.labels, seen)
	s.seeLabels(seen)
}

// seeLabels keeps the largest labels for the caller, who knows then if any is no class.
func (t *turned) seeLabels(labels vec) {
	VPMAXUD(t.field("Seen"), labels, labels)
	VMOVDQU32(labels, t.field("Seen"))
}

// gatherLabels finds the labels of sixteen rows wherever they are. The indices of a gather have signs, row numbers have
// none.
func (t *turned) gatherLabels(labels reg.GPVirtual, to vec) {
	row, middle := t.rowNumbers(0), GP64()
	VPXORD_BCST(bits(0x80000000), row, row)
	MOVQ(U64(4<<31), middle)
	ADDQ(labels, middle)
	VPGATHERDD(Mem{Base: middle, Index: row, Scale: 4}, t.every(), to)
}

// largestColumn is the rows' maxima.
func (t *turned) largestColumn(meanwhile func()) vec {
	top := t.regs(4)
	for _, x := range top {
		VBROADCASTSS(bits(0xff800000), x)
	}
	t.each(func(at reg.GPVirtual) {
		meanwhile()
		for i, x := range top {
			VMAXPS(t.column(at, i), x, x)
		}
	})
	return t.foldFour(top, func(a, b, dst Op) { VMAXPS(a, b, dst) })
}

func (t *turned) foldFour(v []vec, op func(a, b, dst Op)) vec {
	op(v[1], v[0], v[0])
	op(v[3], v[2], v[2])
	op(v[2], v[0], v[0])
	return v[0]
}

func (t *turned) column(at reg.GPVirtual, i int) Mem {
	return Mem{Base: t.room, Index: at, Scale: 1, Disp: 64 * i}
}

// exps replaces the numbers by their exponentials and sums these.
func (s *softmaxTurned) exps() {
	total, lines := s.zeros(4), s.traffic("Dst", "X")
	s.each(func(at reg.GPVirtual) {
		x, unlabelled := s.regs(4), label("unlabelled")
		for i := range x {
			VMOVUPS(s.column(at, i), x[i])
		}
		CMPQ(s.field("Labels"), Imm(0))
		JEQ(LabelRef(unlabelled))
		s.find(x, at)
		Label(unlabelled)
		lines.some(4)
		for i := range x {
			VSUBPS(s.top, x[i], x[i])
		}
		for i, e := range s.exp(x, fine) {
			VADDPS(e, total[i], total[i])
			VMOVUPS(e, s.column(at, i))
		}
	})
	lines.end()
	s.total = s.foldFour(total, func(a, b, dst Op) { VADDPS(a, b, dst) })
}

// find notes columns that are as large as the largest, unless one before was, and the labels' numbers.
func (s *softmaxTurned) find(x []vec, at reg.GPVirtual) {
	number := s.numberAt(at)
	for i, v := range x {
		VPMINUD_BCST(number.Offset(4*i), s.first, s.compare(equal, v, s.top).k, s.first)
		m := K()
		VPCMPEQD_BCST(number.Offset(4*i), s.labels, m)
		VMOVAPS(v, m, s.mine)
	}
}

// numberAt is in memory the number of the column that is so far in room.
func (t *turned) numberAt(at reg.GPVirtual) Mem {
	numbers, n := GP64(), t.from(at)
	LEAQ(columnNumbers, numbers)
	SHRQ(Imm(4), n)
	return Mem{Base: numbers, Index: n, Scale: 1}
}

// store stores sums and counts rows whose first largest number is the label's.
func (s *softmaxTurned) store() {
	VMOVUPS(s.total, s.valid(), Mem{Base: s.load("Sum"), Index: s.at, Scale: 4})
	s.ifPointer("Labels", func(reg.GPVirtual) {
		VSUBPS(s.mine, s.top, s.mine)
		VMOVUPS(s.mine, s.valid(), Mem{Base: s.load("Gap"), Index: s.at, Scale: 4})
		right, count := K(), GP64()
		VPCMPEQD(s.labels, s.first, s.valid(), right)
		KMOVW(right, count.As32())
		POPCNTQ(count, count)
		ADDQ(count, s.field("Correct"))
	})
}

// gradients makes them of the exponentials.
func (s *softmaxTurned) gradients() {
	factor := s.all(s.field("Scale"))
	VMULPS(s.inverse(s.total, s.all(num(1)), true), factor, factor)
	s.write("Dst", func(column reg.GPVirtual, n int) []vec {
		x, at := s.regs(n), s.from(column)
		SUBQ(s.room, at)
		number := s.numberAt(at)
		for i := range x {
			VMOVUPS(Mem{Base: column, Disp: 64 * i}, x[i])
			m := K()
			VPCMPEQD_BCST(number.Offset(4*i), s.labels, m)
			VSUBPS(s.total, x[i], m, x[i])
			VMULPS(factor, x[i], x[i])
		}
		return x
	})
}

// argmaxTurned is argmax of short rows of float32, turned: their maxima, then the first columns that equal them.
func (k *kernel) argmaxTurned() {
	t := &turned{kernel: k, size: 4}
	t.turnRows("", func() {}, func() {
		t.read("X", t.room, t.all(bits(0xff800000)))
		top, first, lines := t.largestColumn(func() {}), t.all(bits(0xffffffff)), t.traffic("", "X")
		t.each(func(at reg.GPVirtual) {
			lines.some(4)
			number := t.numberAt(at)
			for i := range 4 {
				m := K()
				VCMPPS(U8(equal), t.column(at, i), top, m)
				VPMINUD_BCST(number.Offset(4*i), first, m, first)
			}
		})
		// A NaN may equal nothing.
		cols, some := t.reg(), K()
		VPBROADCASTD(t.cols.As32(), cols)
		VPCMPUD(Imm(1), cols, first, some)
		VMOVDQU32_Z(first, some, first)
		VMOVDQU32(first, t.valid(), Mem{Base: t.load("Dst"), Index: t.at, Scale: 4})
	})
}
