package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// entryLoop is a loop over wide rows of a shape, by how it asks for those that come later:
// between the lines that are summed, since all at
// once keep what is computed from hiding behind them.
type entryLoop struct {
	folded
	way int
	ask func(Op)
}

// entryLoops lists the loops in the order of their numbers. Float32 rows of eight lines and
// more that are in no cache are asked for
// into the second-level one only: the first has sixteen places for lines under way, which all
// others would wait for. Rows of one head, or
// few loads, that are in cache are so soon done that asking for them takes 1.05 to 1.1 times as
// long; of others it makes no difference.
func entryLoops() (list []entryLoop) {
	eachFolded(func(t folded) {
		if t.heads == 1 || t.count*t.most <= 4 {
			list = append(list, entryLoop{folded: t})
		}
		list = append(list, t.asked())
		if t.kind == floats && t.count*t.most >= 8 {
			list = append(list, entryLoop{folded: t, way: 2, ask: PREFETCHT1})
		}
	})
	slices.SortFunc(list, func(a, b entryLoop) int { return a.number() - b.number() })
	return list
}

func (t folded) asked() entryLoop { return entryLoop{folded: t, way: 1, ask: PREFETCHT0} }

func (l entryLoop) number() int   { return 8*l.shape() + l.way }
func (l entryLoop) label() string { return fmt.Sprintf("loop%d", l.number()) }

// entries goes through the wide rows of a batch.
func (l entryLoop) entries() {
	f, again := backFields, l.label()
	Label(again)
	var headBytes Op = f.mem("headBytes")
	switch {
	case l.least < l.most:
		f.load("each", each)
	case l.count > 1: // the register is free
		f.load("headBytes", each)
		headBytes = each
	}
	if l.most > 1 || l.count > 1 {
		again += "again"
		Label(again)
	}
	entryRow()
	if l.ask != nil {
		askRow(Mem{Base: index, Index: ahead, Scale: 1})
	}
	once := l.most == 1 && l.vectors() == 1 // a coefficient multiplies a single vector
	q := l.dotProducts(f, headBytes, func(r int) {
		if !once {
			l.weights(r)
		}
		if l.ask != nil && r > 0 {
			ADDQ(headBytes, tmp)
		}
	}, func(r, v int) {
		if l.ask != nil {
			l.askLine(l.ask, r, v)
		}
		if once {
			VFMADD231PS_BCST(Mem{Base: weight, Disp: 4 * r}, x, l.sum(r, v)[0])
			return
		}
		for i, to := range l.sum(r, v) {
			VFMADD231PS([]VecPhysical{x, y}[i], w, to)
		}
	})
	l.nextEntry(q, again)
}

// nextEntry leaves an entry's half-made dot products in parts and goes on with the batch's
// next, or gradients of its scores.
func (t folded) nextEntry(q VecPhysical, again string) {
	VMOVUPS(q, Mem{Base: part})
	ADDQ(U8(64), part)
	ADDQ(U8(4*t.heads), weight)
	CMPQ(index, batchEnd)
	JB(LabelRef(again))
	JMP(LabelRef(fmt.Sprintf("scores%d", t.heads)))
}

// askLine asks for load v of run r of the row at tmp.
func (t folded) askLine(ask func(Op), r, v int) {
	if t.kind != singles || r%2 == 0 { // two are no more than a line
		ask(Mem{Base: tmp, Disp: -64 * v})
	}
	if t.last(r, v) { // rows need not start on a line
		ADDQ(backFields.mem("lastByte"), tmp)
		ask(Mem{Base: tmp})
	}
}

// weights repeats the coefficient of the head of run r in all lanes of w.
func (t folded) weights(r int) { VBROADCASTSS(Mem{Base: weight, Disp: 4 * r}, w) }
