package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// softmaxWords is softmax of short rows of bfloat16. Vectors of rows are two, of sixteen each.
type softmaxWords struct {
	*words
	scale  vec   // log2(e) in so few bits that its product with a bfloat16 is exact
	top    []vec // the rows' maxima times scale
	powers []vec // what exponentials are made with
}

func (k *kernel) softmaxWords() {
	s := &softmaxWords{words: k.newWords(true)}
	s.turnRows("Dst", 0xff80ff80, s.clearBehind, func() {
		s.exponentials()
		s.ifPointer("Dst.Data", func(reg.GPVirtual) { s.gradients() })
	})
}

// clearBehind zeroes what would be exponentials behind the last column: pieces go on there.
func (s *softmaxWords) clearBehind() {
	end, zero := s.from(s.cols), s.zero()
	SHLQ(Imm(7), end)
	ADDQ(s.room, end)
	for i := range 16 {
		VMOVUPS(zero, Mem{Base: end, Disp: 64 * (expsAt + i)})
	}
}

// exponentials makes them, and of their sums what is kept of the rows.
func (s *softmaxWords) exponentials() {
	top := s.regs(2)
	s.top = s.regs(2)
	plain, done, lines := label("plain"), label("largest"), s.traffic("Dst", "X")
	ask := func() { lines.ifAcross(func() { s.ifList(func() { s.askSpan(2) }) }, func() { askInTurns(lines.ask) }) }
	CMPQ(s.field("Labels"), Imm(0))
	JEQ(LabelRef(plain))
	s.keepLabels()
	s.score(s.largest(true, func() {
		all := label("all")
		ask()
		CMPQ(s.field("List"), Imm(0))
		JEQ(LabelRef(all))
		lines.move(2) // with those between the rows of a list there are more
		Label(all)
	}), top)
	JMP(LabelRef(done))
	Label(plain)
	for i, x := range s.largest(false, ask) {
		VMOVAPS(x, top[i])
	}
	Label(done)
	sign := s.all(bits(0x80000000))
	s.scale = s.all(bits(0x3fb8aa00))
	for i, x := range top {
		negative := K()
		VPMOVD2M(x, negative)
		VPSUBD(x, sign, negative, x)
		VMULPS(s.scale, x, s.top[i])
	}
	for i, p := range lines.ask { // the first sixteen have been asked for
		MOVQ(s.ahead("X", uint64(16+8*i)), p)
	}
	total, mine := s.exps(lines)
	s.store(total, "Sum")
	factor := s.inverses(total)
	s.ifPointer("Labels", func(reg.GPVirtual) { s.own(top, total, factor, mine) })
}

// keepLabels keeps the labels of the rows.
func (s *softmaxWords) keepLabels() {
	p, labels := GP64(), s.regs(2)
	MOVQ(s.labels, p)
	for i, x := range labels {
		VMOVDQU32(Mem{Base: p, Disp: 64 * i}, x)
	}
	most := s.reg()
	VPMAXUD(labels[0], labels[1], most)
	s.seeLabels(most)
	for i, x := range labels {
		upper := s.reg()
		VPSLLD(Imm(16), x, upper)
		VPTERNLOGD(U8(0x03), upper, upper, x) // neither
		VMOVDQU32(x, s.kept(keptLabels, i))
	}
}

// score counts rows whose first largest number is the label's, and puts the largest into top.
func (s *softmaxWords) score(largest, top []vec) {
	column, valid := s.all(bits(0xffff)), s.validHalves()
	for i, x := range largest {
		differ, right, count := s.reg(), K(), GP64()
		VPXORD(s.kept(keptLabels, i), x, differ)
		VPTESTNMD(column, differ, valid[i], right)
		KMOVW(right, count.As32())
		POPCNTQ(count, count)
		ADDQ(count, s.field("Correct"))
		VPANDD(s.turned.upper, x, top[i])
	}
}

// exps stores exponentials and sums them; mine are the labels' numbers.
func (s *softmaxWords) exps(lines *traffic) (total, mine []vec) {
	total, mine = s.zeros(4), s.zeros(2)
	s.powers = s.twoToConstants()
	s.eachPair(func(at reg.GPVirtual, numbers vec) {
		x, v, unlabelled := s.regs(2), s.regs(4), label("unlabelled")
		for i := range x {
			VMOVDQU64(s.pair(at, i), x[i])
		}
		CMPQ(s.field("Labels"), Imm(0))
		JEQ(LabelRef(unlabelled))
		for i := range x {
			m := K()
			VPCMPEQW(s.kept(keptLabels, i), numbers, m)
			VMOVDQU16(x[i], m, mine[i])
		}
		Label(unlabelled)
		lines.some(2)
		for i := range x {
			VPSLLD(Imm(16), x[i], v[i])
			VPANDD(s.turned.upper, x[i], v[2+i])
		}
		s.power2(v)
		for i, e := range v {
			VADDPS(e, total[i], total[i])
			VMOVUPS(e, Mem{Base: s.room, Index: at, Scale: 2, Disp: 64 * (expsAt + i)})
		}
	})
	lines.end()
	for i := range 2 {
		VADDPS(total[2+i], total[i], total[i])
	}
	return total[:2], mine
}

// power2 replaces numbers, of either half in turns, by the exponentials of what they are beyond the largest.
func (s *softmaxWords) power2(x []vec) {
	for i, v := range x {
		VFMSUB213PS(s.top[i%2], s.scale, v)
	}
	s.twoTo(x, s.powers)
}

// inverses keeps what exponentials are multiplied by.
func (s *softmaxWords) inverses(total []vec) (factor []vec) {
	factor = s.regs(2)
	scale, one := s.all(s.field("Scale")), s.all(num(1))
	for i, sum := range total {
		VMULPS(s.inverse(sum, one, true), scale, factor[i])
		VMOVUPS(factor[i], s.kept(keptFactor, i))
	}
	return factor
}

// own stores what the labels' numbers are below the largest, and keeps their results.
func (s *softmaxWords) own(top, total, factor, mine []vec) {
	words := s.reg()
	VMOVDQU16(pairedWords, words)
	for i, x := range mine {
		even := s.reg()
		VPSLLD(Imm(16), x, even)
		VPANDD(s.turned.upper, x, x)
		VPORD(even, x, x)
		VSUBPS(x, top[i], top[i])
	}
	s.store(top, "Gap")
	s.power2(mine)
	for i, x := range mine {
		VSUBPS(total[i], x, x)
		VMULPS(factor[i], x, x)
	}
	for i, pair := range s.roundPairs([]vec{mine[0], mine[0], mine[1], mine[1]}) {
		VPERMW(pair, words, pair)
		VMOVDQU32(pair, s.kept(keptOwn, i))
	}
}

// gradients makes them of the exponentials.
func (s *softmaxWords) gradients() {
	to, stride := AllocLocal(8), AllocLocal(8)
	apart, done, bytes, zero := label("apart"), label("found"), s.rowBytes("Dst"), GP64()
	CMPQ(s.show.on, Imm(0))
	JEQ(LabelRef(apart))
	s.ifApart(apart)
	MOVQ(bytes, stride)
	MOVQ(s.firstOnStage(bytes), to)
	JMP(LabelRef(done))
	Label(apart)
	XORQ(zero, zero)
	MOVQ(zero, stride)
	Label(done)
	s.halves(func() { s.writeHalf(to, stride) })
}

// writeHalf writes sixteen rows, on stage so far apart or, if that is 0, each at its own place. Pieces go from the last to
// the first, rows from the first to the last, so that what goes on into the next row is overwritten.
func (s *softmaxWords) writeHalf(to, stride Mem) {
	r := &wordResults{softmaxWords: s, words: s.reg(), factor: s.reg(), labels: s.reg(), own: s.reg(), at: s.rowBytes("Dst")}
	VMOVDQU16(pairedWords, r.words)
	VMOVUPS(s.keptHere(keptFactor), r.factor)
	VMOVDQU32(s.keptHere(keptLabels), r.labels)
	VMOVDQU32(s.keptHere(keptOwn), r.own)
	ADDQ(Imm(15), r.at)
	ANDQ(I8(-16), r.at)
	var places Mem
	known, again, done := label("known"), label("piece"), label("written")
	CMPQ(stride, Imm(0))
	JNE(LabelRef(known))
	s.inHalf(func() { places = s.placesOf(s.target("Dst")) })
	Label(known)
	Label(again)
	SUBQ(Imm(16), r.at)
	pairs := r.eight()
	r.writeFew(pairs, to, stride, done)
	v, apart, next := s.turn(pairs), label("apart"), label("next")
	distance, first := GP64(), GP64()
	MOVQ(stride, distance)
	TESTQ(distance, distance)
	JZ(LabelRef(apart))
	MOVQ(s.half, first)
	SHRQ(Imm(2), first)
	IMULQ(distance, first)
	ADDQ(to, first)
	ADDQ(r.at, first)
	s.writePiece(s.rowsFrom(first, distance), v)
	JMP(LabelRef(next))
	Label(apart)
	r.writeListed(places, v)
	Label(next)
	TESTQ(r.at, r.at)
	JNZ(LabelRef(again))
	Label(done)
}

// wordResults are sixteen rows of results.
type wordResults struct {
	*softmaxWords
	words, factor, labels, own vec
	at                         reg.GPVirtual // how many bytes of a row come before the piece
}

// writeListed writes a piece of rows at their places: on stage zeros go on behind a row's end, else nothing.
func (r *wordResults) writeListed(places Mem, v []vec) {
	real, off, done := r.wordsOfPiece(r.rowBytes("Dst"), r.at), label("off"), label("piece")
	CMPQ(r.show.on, Imm(0))
	JEQ(LabelRef(off))
	for _, x := range v {
		VMOVDQU16_Z(x, real, x)
	}
	r.writePieceAt(places, r.at, v)
	JMP(LabelRef(done))
	Label(off)
	r.writePartAt(places, r.at, v, real)
	Label(done)
}

// eight are the results of a piece's columns, rounded.
func (r *wordResults) eight() []vec {
	x, unlabelled, numbers, column := r.regs(8), label("unlabelled"), GP64(), r.from(r.at)
	SHLQ(Imm(6), column)
	ADDQ(r.behindHalf(expsAt), column)
	for i := range x {
		VMULPS(Mem{Base: column, Disp: 128 * i}, r.factor, x[i])
	}
	pairs := r.roundPairs(x)
	for _, p := range pairs {
		VPERMW(p, r.words, p)
	}
	CMPQ(r.field("Labels"), Imm(0))
	JEQ(LabelRef(unlabelled))
	LEAQ(pairNumbers, numbers)
	for i, p := range pairs {
		m := K()
		VPCMPEQW(r.all(Mem{Base: numbers, Index: r.at, Scale: 1, Disp: 4 * i}), r.labels, m)
		VMOVDQU16(r.own, m, p)
	}
	Label(unlabelled)
	return pairs
}
