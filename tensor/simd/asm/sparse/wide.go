package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A row that is wider than the registers is summed in panels of columns, some entries at
// a time: the panel's sum stays in registers for all of them, and the next panel's lines of
// each entry are asked for meanwhile, so that memory is never waited for and never idle. The last
// panel asks for the first one of the entries that follow. Between two such turns the sum is in memory.

// turn is the most entries that are added in one turn. What they ask for, a panel's lines
// of each, must stay in the first-level cache until the next panel.
const turn = 32

// farther is how many entries beyond those that follow the first lines of a row are asked for.
const farther = 8

// panel is how rows are summed that are wider than the registers.
type panel struct {
	least, most int // vectors (or blocks) of a source row in a panel
	sums        int // vectors of the sum for each
	add         func(v int, tail bool)
	scale       func(v int) // finishes vector (or block) v of a row, in acc(sums·v)
	store       func(v VecPhysical, to Mem, tail bool)
	finish      func(name string)
}

var (
	ask = RBP // the row to ask for; last is read from memory
	sum = RCX // the panel's sum; dst is in memory meanwhile
	all = R14 // bytes of index of a turn's entries
)

// rows sums a row of panels. What is left to do with it, finish, follows.
func (p panel) rows() {
	startRow()
	MOVQ(end, field(fieldEnd))
	MOVQ(dst, field(fieldDst))
	MOVQ(U32(1), field(fieldFresh))
	Label("wideturn")
	LEAQ(Mem{Base: index, Disp: 4 * turn}, end)
	CMPQ(end, field(fieldEnd))
	CMOVQHI(field(fieldEnd), end)
	MOVQ(end, all)
	SUBQ(index, all)
	turnWeights()
	beginPut()
	MOVQ(field(fieldAcc), tmp)
	MOVQ(tmp, field(fieldSum))
	MOVQ(field(fieldPanels), tmp)
	MOVQ(tmp, field(fieldLeft))
	p.dispatch()
	for n := p.least; n <= p.most; n++ {
		p.columns(n)
	}
	Label("widenext")
	DECQ(field(fieldLeft))
	JNZ(LabelRef("widepanel"))
	MOVQ(field(fieldSrc), src)
	MOVQ(U32(0), field(fieldFresh))
	TESTQ(colMask, colMask)
	JZ(LabelRef("wideunscaled"))
	MOVQ(field(fieldValueNext), value)
	MOVQ(field(fieldValueStep), valueStep)
	Label("wideunscaled")
	CMPQ(end, field(fieldEnd))
	JB(LabelRef("wideturn"))
	MOVQ(field(fieldDst), dst)
	CMPQ(field(fieldPut), U8(0))
	JNE(LabelRef("finishlines"))
	loadRowScale()
}

// turnWeights sets fieldTurn to the turn's weights: the values, or, if columns have scales, a list of both's products.
func turnWeights() {
	MOVQ(value, field(fieldTurn))
	TESTQ(colMask, colMask)
	JZ(LabelRef("widepanels"))
	MOVQ(index, at)
	LEAQ(field(fieldWeights), sum)
	MOVQ(sum, field(fieldTurn))
	Label("wideweights")
	CMPQ(at, end)
	JAE(LabelRef("wideweighed"))
	MOVL(Mem{Base: at}, tmp.As32())
	VMOVSS(Mem{Base: colScale, Index: tmp, Scale: 4}, X0)
	VMULSS(Mem{Base: value}, X0, X0)
	VMOVSS(X0, Mem{Base: sum})
	ADDQ(valueStep, value)
	ADDQ(U8(4), at)
	ADDQ(U8(4), sum)
	JMP(LabelRef("wideweights"))
	Label("wideweighed")
	MOVQ(value, field(fieldValueNext))
	MOVQ(U32(4), valueStep)
	Label("widepanels")
}

// beginPut sets fieldPut to where the panels of the row's last turn go when they are finished, or to 0
// where there are other turns to come or a row is not finished in registers.
func beginPut() {
	MOVQ(U32(0), field(fieldPut))
	CMPQ(end, field(fieldEnd))
	JNE(LabelRef("widesums"))
	TESTQ(U32(modeDirect), field(fieldMode))
	JZ(LabelRef("widesums"))
	MOVQ(field(fieldDst), dst)
	target("wide")
	MOVQ(tmp, field(fieldPut))
	Label("widesums")
}

// dispatch starts the next panel: K1 is the mask of its last vector.
func (p panel) dispatch() {
	Label("widepanel")
	MOVQ(end, index)
	SUBQ(all, index)
	MOVQ(field(fieldTurn), value)
	KXNORD(K1, K1, K1)
	MOVQ(field(fieldLeft), tmp)
	CMPQ(tmp, U8(1))
	JNE(LabelRef("wideinner"))
	MOVQ(field(fieldMask), at)
	KMOVD(at.As32(), K1)
	Label("wideinner")
	MOVQ(field(fieldPanel), at)
	CMPQ(tmp, field(fieldNarrower))
	JBE(LabelRef("widenarrower"))
	INCQ(at)
	Label("widenarrower")
	for n := p.least; n < p.most; n++ {
		CMPQ(at, U8(n))
		JE(LabelRef(fmt.Sprintf("panel%d", n)))
	}
	JMP(LabelRef(fmt.Sprintf("panel%d", p.most)))
}

// columns adds the turn's entries to a panel of n vectors.
func (p panel) columns(n int) {
	name := func(s string) string { return fmt.Sprintf("panel%s%d", s, n) }
	Label(name(""))
	MOVQ(field(fieldSum), sum)
	ADDQ(U32(64*n*p.sums), field(fieldSum))
	CMPQ(field(fieldFresh), U8(0))
	JE(LabelRef(name("again")))
	for v := range p.sums * n {
		VPXORD(acc(v), acc(v), acc(v))
	}
	selfEntry(name("self"), func() { p.vectors(n, func(int) {}) })
	JMP(LabelRef(name("start")))
	Label(name("again"))
	for v := range p.sums * n {
		VMOVUPS(Mem{Base: sum, Disp: 64 * v}, acc(v))
	}
	Label(name("start"))
	CMPQ(index, end)
	JE(LabelRef(name("done")))
	CMPQ(field(fieldLeft), U8(1))
	JE(LabelRef(name("last")))

	// Rows need not start on a line: the last bytes are asked for, since the first are in a line of this panel.
	Label(name("inner"))
	unscaledEntry()
	p.vectors(n, func(v int) { PREFETCHT0(Mem{Base: at, Disp: 64*(n+v) + 63}) })
	CMPQ(index, end)
	JB(LabelRef(name("inner")))
	JMP(LabelRef(name("done")))

	Label(name("last"))
	LEAQ(Mem{Base: index, Index: all, Scale: 1}, tmp)
	askFirst(tmp, ask)
	LEAQ(Mem{Base: index, Index: all, Scale: 1, Disp: 4 * farther}, tmp)
	askFirst(tmp, tmp)
	PREFETCHT0(Mem{Base: tmp})
	PREFETCHT0(Mem{Base: tmp, Disp: 64})
	unscaledEntry()
	p.vectors(n, func(v int) { PREFETCHT0(Mem{Base: ask, Disp: 64*v + 63}) })
	PREFETCHT0(Mem{Base: ask, Disp: 64*n + 63}) // the first panel may be one wider
	CMPQ(index, end)
	JB(LabelRef(name("last")))

	Label(name("done"))
	ADDQ(U32(64*n), src)
	CMPQ(field(fieldPut), U8(0))
	JNE(LabelRef(name("put")))
	for v := range p.sums * n {
		VMOVUPS(acc(v), Mem{Base: sum, Disp: 64 * v})
	}
	JMP(LabelRef("widenext"))

	Label(name("put"))
	loadRowScale()
	for v := range n {
		p.scale(v)
	}
	MOVQ(field(fieldPut), tmp)
	ADDQ(U32(64*n), field(fieldPut))
	TESTQ(U32(modeStream), field(fieldMode))
	JNZ(LabelRef(name("stream")))
	for v := range n {
		p.store(acc(p.sums*v), Mem{Base: tmp, Disp: 64 * v}, v == n-1)
	}
	JMP(LabelRef("widenext"))
	Label(name("stream"))
	for v := range n {
		VMOVNTPS(acc(p.sums*v), Mem{Base: tmp, Disp: 64 * v})
	}
	JMP(LabelRef("widenext"))
}

// vectors adds an entry's n vectors, and asks before each.
func (p panel) vectors(n int, ask func(v int)) {
	for v := range n {
		ask(v)
		p.add(v, v == n-1)
	}
}

// askFirst sets to to the start of the source row of an entry, or of the last.
func askFirst(entry, to GPPhysical) {
	CMPQ(entry, field(fieldLast))
	CMOVQHI(field(fieldLast), entry)
	MOVL(Mem{Base: entry}, to.As32())
	IMULQ(stride, to)
	ADDQ(field(fieldSrc), to)
}
