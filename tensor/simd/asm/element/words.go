package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// words is short rows of bfloat16 on their side, 32 at a time, so that less waits for what comes before. A vector has two
// columns of sixteen rows, one in each half of its lanes. So they are compared, as integers; only their exponentials are
// widened. The rows where a block ends are copied first.
//
// In room are the first two columns of the first sixteen rows, those of the others, then the next two columns, and so on.
type words struct {
	*turned
	src, stride Mem               // where the group's rows are read, and how far they are apart; 0: as listed
	labels      Mem               // where their labels are
	half        Mem               // how far a half's vectors are behind those of the first: 0 or 64
	some        reg.OpmaskVirtual // the first 32 columns of a row
	rest        reg.OpmaskVirtual // those behind
}

// Behind the stage are exponentials, both halves' of the first column, of the second, ...; then what is kept of rows, a
// vector for each half; then the copies of rows and labels.
const (
	expsAt   = roomLines + stageLines
	keptAt   = expsAt + 2*(turnedMost+8)
	copiesAt = keptAt + 2*keptAll
	copied   = 128 // bytes from one row to the next
)

const (
	keptLabels = iota // in both halves of a lane, as columns are numbered
	keptFactor
	keptOwn // the label's result, rounded, in both halves
	keptAll
)

func (k *kernel) newWords(listed bool) *words {
	const behind = copiesAt + 32*copied/64 + 2 - expsAt
	return &words{turned: &turned{kernel: k, size: 2, pairs: true, listed: listed, more: behind}}
}

// turnRows reads 32 rows at a time and runs body on them. What it writes goes to block dst, if there is one.
func (w *words) turnRows(dst string, pad uint32, prepare, body func()) {
	w.turned.turnRows(dst, func() {
		w.src, w.stride, w.labels, w.half = AllocLocal(8), AllocLocal(8), AllocLocal(8), AllocLocal(8)
		w.columnMasks()
		prepare()
	}, func() {
		w.find()
		w.readRows(pad)
		body()
	})
}

func (w *words) columnMasks() {
	ones := GP64()
	MOVQ(I32(-1), ones)
	BZHIQ(w.cols, ones, ones)
	w.some, w.rest = K(), K()
	KMOVD(ones.As32(), w.some)
	SHRQ(Imm(32), ones)
	KMOVD(ones.As32(), w.rest)
}

// halves runs body on the first sixteen rows, then on the others.
func (w *words) halves(body func()) {
	again, half := label("half"), GP64()
	XORQ(half, half)
	MOVQ(half, w.half)
	Label(again)
	body()
	ADDQ(Imm(64), w.half)
	CMPQ(w.half, Imm(64))
	JEQ(LabelRef(again))
}

// behindHalf is where vectors of this half begin, so many lines on in room.
func (w *words) behindHalf(lines int) reg.GPVirtual {
	p := w.behind(lines)
	ADDQ(w.half, p)
	return p
}

// kept is a vector that is kept of the rows of a half, keptHere of this one.
func (w *words) kept(what, half int) Mem {
	return Mem{Base: w.room, Disp: 64 * (keptAt + 2*what + half)}
}

func (w *words) keptHere(what int) Mem {
	half := GP64()
	MOVQ(w.half, half)
	m := w.kept(what, 0)
	m.Index, m.Scale = half, 1
	return m
}

// copies is where rows are copied to, then their labels.
func (w *words) copies() reg.GPVirtual { return w.behind(copiesAt) }

// find sets where the group's rows and labels are read: where they are, if there are 32 and what the last piece of the
// last one goes on to is there, else from a copy.
func (w *words) find() {
	few, apart, done := label("few"), label("apart"), label("found")
	first, last, end, stride := w.from(w.at), GP64(), w.load("Rows"), w.load("X.Stride")
	beyond := w.beyond()
	if !w.listed { // a list may leave rows to the next group
		CMPQ(w.n, Imm(32))
		JNE(LabelRef(few))
	}
	DECQ(end)
	w.place("X", end)
	MOVQ(w.last, last)
	w.row("X", last)
	ADDQ(beyond, last)
	CMPQ(last, end)
	JGT(LabelRef(few))
	w.ifApart(apart)
	w.number(first)
	if w.listed {
		labels := w.load("Labels")
		LEAQ(Mem{Base: labels, Index: first, Scale: 4}, labels)
		MOVQ(labels, w.labels)
	}
	IMULQ(stride, first)
	ADDQ(w.field("X.Data"), first)
	MOVQ(first, w.src)
	MOVQ(stride, w.stride)
	JMP(LabelRef(done))
	if w.listed {
		Label(apart)
		XORQ(stride, stride)
		MOVQ(stride, w.stride)
		LEAQ(Mem{Base: w.copies(), Disp: 32 * copied}, first)
		MOVQ(first, w.labels)
		JMP(LabelRef(done))
	}
	Label(few)
	w.copyRows()
	Label(done)
}

// beyond is how many bytes behind the last row are read.
func (w *words) beyond() reg.GPVirtual {
	n, few, more := w.rowBytes("X"), w.from(w.cols), label("more")
	NEGQ(n)
	ANDQ(Imm(15), n)
	CMPQ(few, Imm(fewColumns))
	JGT(LabelRef(more))
	MOVQ(U32(64), n)
	SHLQ(Imm(3), few)
	SUBQ(few, n)
	Label(more)
	return n
}

// copyRows copies the group's rows and labels, its last one for those there are not.
func (w *words) copyRows() {
	i, again, x, y := GP64(), label("copy"), w.reg(), w.reg()
	to, labels, stride := w.copies(), GP64(), GP64()
	MOVQ(to, w.src)
	MOVQ(U32(copied), stride)
	MOVQ(stride, w.stride)
	LEAQ(Mem{Base: to, Disp: 32 * copied}, labels)
	MOVQ(labels, w.labels)
	XORQ(i, i)
	Label(again)
	row, end := GP64(), w.load("Rows")
	LEAQ(Mem{Base: w.at, Index: i, Scale: 1}, row)
	DECQ(end)
	CMPQ(row, end)
	CMOVQGT(end, row)
	w.number(row)
	CMPQ(row, w.turned.last)
	CMOVQGT(w.turned.last, row)
	if w.listed {
		w.ifPointer("Labels", func(all reg.GPVirtual) {
			one := GP32()
			MOVL(Mem{Base: all, Index: row, Scale: 4}, one)
			MOVL(one, Mem{Base: labels, Index: i, Scale: 4})
		})
	}
	IMULQ(w.field("X.Stride"), row)
	ADDQ(w.field("X.Data"), row)
	VMOVDQU16_Z(Mem{Base: row}, w.some, x)
	VMOVDQU16_Z(Mem{Base: row, Disp: 64}, w.rest, y)
	VMOVDQU64(x, Mem{Base: to})
	VMOVDQU64(y, Mem{Base: to, Disp: 64})
	ADDQ(U32(copied), to)
	INCQ(i)
	CMPQ(i, Imm(32))
	JLT(LabelRef(again))
}

// readRows turns the group's rows; beside the last column of an odd number is pad.
func (w *words) readRows(pad uint32) {
	more, done := label("more"), label("read")
	w.ifFew(w.stride, more)
	w.readFew(pad)
	JMP(LabelRef(done))
	Label(more)
	w.halves(w.readHalf)
	w.padOdd(pad)
	Label(done)
}

// readHalf turns sixteen rows.
func (w *words) readHalf() {
	first, stride, half, column, left := GP64(), GP64(), GP64(), w.behindHalf(0), w.rowBytes("X")
	MOVQ(w.stride, stride)
	MOVQ(w.half, half)
	SHRQ(Imm(2), half) // 16 for the second
	IMULQ(stride, half)
	MOVQ(w.src, first)
	ADDQ(half, first)
	rows, again, done := w.rowsFrom(first, stride), label("piece"), label("read")
	if w.listed {
		listed := label("listed")
		TESTQ(stride, stride)
		JNZ(LabelRef(listed))
		w.inHalf(func() { w.readListed(column, left) })
		JMP(LabelRef(done))
		Label(listed)
	}
	Label(again)
	w.storeColumns(2, w.readPiece(rows), column)
	rows.move(16)
	SUBQ(Imm(16), left)
	JG(LabelRef(again))
	Label(done)
}

// readListed turns sixteen rows of a list and looks up their labels. Those that come 32 later are asked for if they are of
// more than a line: what asks for others does so as if they followed each other.
func (w *words) readListed(column, left reg.GPVirtual) {
	few, again, byte := label("few"), label("piece"), GP64()
	CMPQ(left, Imm(64))
	JLE(LabelRef(few))
	w.askListed()
	Label(few)
	w.ifPointer("Labels", func(labels reg.GPVirtual) {
		found, to := w.reg(), GP64()
		w.gatherLabels(labels, found)
		MOVQ(w.labels, to)
		ADDQ(w.half, to)
		VMOVDQU32(found, Mem{Base: to})
	})
	places := w.places("X", 0)
	XORQ(byte, byte)
	Label(again)
	w.storeColumns(2, w.readPieceAt(places, byte, nil), column)
	ADDQ(Imm(16), byte)
	SUBQ(Imm(16), left)
	JG(LabelRef(again))
}

// inHalf runs body with the half as a group.
func (w *words) inHalf(body func()) {
	move := func(by func(a, b Op)) {
		half := GP64()
		MOVQ(w.half, half)
		SHRQ(Imm(2), half)
		by(half, w.at)
	}
	move(ADDQ)
	body()
	move(SUBQ)
}

// padOdd puts pad beside the last column of an odd number.
func (w *words) padOdd(pad uint32) {
	even, end := label("even"), w.from(w.cols)
	TESTQ(U32(1), end)
	JZ(LabelRef(even))
	SHLQ(Imm(6), end)
	v := w.all(bits(pad))
	for half := range 2 {
		last, x := Mem{Base: w.room, Index: end, Scale: 1, Disp: 64 * (half - 1)}, w.reg()
		VMOVDQU64(last, x)
		VMOVDQU16(v, w.kernel.upper, x)
		VMOVDQU64(x, last)
	}
	Label(even)
}

// eachPair runs body on two columns at a time: how far they are in room, and their numbers.
func (w *words) eachPair(body func(at reg.GPVirtual, numbers vec)) {
	at, end, table, again := GP64(), w.from(w.cols), GP64(), label("pair")
	XORQ(at, at)
	SHLQ(Imm(6), end)
	LEAQ(pairNumbers, table)
	Label(again)
	body(at, w.all(Mem{Base: table}))
	ADDQ(Imm(4), table)
	ADDQ(U32(128), at)
	CMPQ(at, end)
	JLT(LabelRef(again))
}

// pair is two columns of a half.
func (w *words) pair(at reg.GPVirtual, half int) Mem {
	return Mem{Base: w.room, Index: at, Scale: 1, Disp: 64 * half}
}

// ordered replaces numbers by integers in the same order, and these by the numbers: zero is one of both, whatever its
// sign. No number becomes the least integer.
func (w *words) ordered(x, least vec) {
	negative := K()
	VPMOVW2M(x, negative)
	VPSUBW(x, least, negative, x)
}

// largest is the rows' largest numbers, ordered, in the upper half of a lane; below it, if those are asked for, the
// number of the first column that has it. meanwhile is run for each two columns.
func (w *words) largest(numbered bool, meanwhile func()) []vec {
	top, first, least := w.regs(2), w.zeros(2), w.all(bits(0x80008000))
	for _, x := range top {
		VMOVAPS(least, x)
	}
	w.eachPair(func(at reg.GPVirtual, numbers vec) {
		meanwhile()
		for i := range top {
			x, above := w.reg(), K()
			VMOVDQU64(w.pair(at, i), x)
			w.ordered(x, least)
			if !numbered {
				VPMAXSW(x, top[i], top[i])
				continue
			}
			VPCMPGTW(top[i], x, above)
			VMOVDQU16(x, above, top[i])
			VMOVDQU16(numbers, above, first[i])
		}
	})
	for i := range top {
		even := w.reg()
		VPSLLD(Imm(16), top[i], even)
		if numbered { // columns are numbered downwards: of equal numbers the first wins
			lower := K()
			KNOTD(w.kernel.upper, lower)
			VMOVDQU16(first[i], lower, even)
			VPSRLD(Imm(16), first[i], first[i])
			VMOVDQU16(first[i], lower, top[i])
		} else {
			VPANDD(w.turned.upper, top[i], top[i])
		}
		VPMAXSD(even, top[i], top[i])
	}
	return top
}

// validHalves are the lanes of rows.
func (w *words) validHalves() []reg.OpmaskVirtual {
	count, ones, m := GP64(), GP64(), []reg.OpmaskVirtual{K(), K()}
	MOVQ(w.n, count)
	MOVQ(I32(-1), ones)
	BZHIQ(count, ones, ones)
	KMOVW(ones.As32(), m[0])
	SHRQ(Imm(16), ones)
	KMOVW(ones.As32(), m[1])
	return m
}

// store stores a number of each row.
func (w *words) store(x []vec, to string) {
	p, valid := w.load(to), w.validHalves()
	for i, v := range x {
		VMOVUPS(v, valid[i], Mem{Base: p, Index: w.at, Scale: 4, Disp: 64 * i})
	}
}

// pairNumbers are the numbers of two columns each, counted downwards from 65535.
var pairNumbers Mem

func makePairNumbers() {
	pairNumbers = GLOBL("elementPairs", 16|8)
	for i := range turnedMost/2 + 4 {
		DATA(i*4, U32(^uint32(2*i|(2*i+1)<<16)))
	}
}

// argmaxWords is argmax of short rows of bfloat16.
func (k *kernel) argmaxWords() {
	w := k.newWords(false)
	w.turnRows("", 0xffffffff, func() {}, func() {
		lines := w.traffic("", "X")
		best, column := w.largest(true, func() { lines.some(2) }), w.all(bits(0xffff))
		for _, x := range best {
			VPANDND(column, x, x)
		}
		w.store(best, "Dst")
	})
}
