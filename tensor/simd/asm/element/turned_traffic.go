package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// stage is where results of rows that are side by side wait. They leave line by line while the next group is computed: a
// line that was stored in parts can only be read when it has reached the cache, behind all that was stored before. What
// does not fill a line stays until it does.
//
// Rows that are listed may have others between them, which become zero (Fill): on stage all is zero but results.
type stage struct {
	on   Mem // whether results go there
	to   Mem // where they will go
	full Mem // their bytes
	base Mem // the row that comes next
	span Mem // how many rows the group has with those between

	asked, due Mem // rows of X that are listed or between are asked for up to here, and are due up to there; see askSpan
}

// stageRows are as many rows of float32 as there is room for; a group that has more with those between has fewer rows.
const stageRows = 64

func (t *turned) stage() reg.GPVirtual { return t.behind(roomLines) }

// setStage clears the stage for block dst, if it has one: for rows without gaps that are all there, or become so.
func (t *turned) setStage(dst string) {
	s, off, on, zero := &t.show, label("off"), label("on"), GP64()
	s.on, s.to, s.full, s.base, s.span = AllocLocal(8), AllocLocal(8), AllocLocal(8), AllocLocal(8), AllocLocal(8)
	XORQ(zero, zero)
	for _, m := range []Mem{s.on, s.full, s.base} {
		MOVQ(zero, m)
	}
	if t.listed {
		first := t.load("First")
		t.ifList(func() { MOVQ(first, s.base) })
	}
	MOVQ(t.room, s.to) // where nothing goes
	data := t.load(dst + ".Data")
	TESTQ(data, data)
	JZ(LabelRef(off))
	CMPQ(t.rowBytes(dst), t.field(dst+".Stride"))
	JNE(LabelRef(off))
	if t.listed {
		t.clearStage(dst, data, on, off)
	}
	Label(on)
	MOVQ(data, s.to)
	MOVQ(U32(1), zero)
	MOVQ(zero, s.on)
	Label(off)
	if t.listed {
		t.setAsked()
	}
}

// setAsked begins to ask for rows of X across pages, if these are far.
func (t *turned) setAsked() {
	s, far := &t.show, GP64()
	s.asked, s.due = AllocLocal(8), AllocLocal(8)
	MOVBQZX(t.field("X.Far"), far)
	MOVQ(far, s.asked)
}

// ifList runs body if there is a list.
func (t *turned) ifList(body func()) {
	all := label("all")
	CMPQ(t.field("List"), Imm(0))
	JEQ(LabelRef(all))
	body()
	Label(all)
}

// askSpan asks for so many lines if some of the group are due.
func (t *turned) askSpan(lines int) {
	none, p := label("none"), GP64()
	MOVQ(t.show.asked, p)
	CMPQ(p, t.show.due)
	JGE(LabelRef(none))
	ADDQ(U32(64*lines), t.show.asked)
	turnedAcross(p, lines)
	askAcross(p, lines)
	Label(none)
}

func (t *turned) clearStage(dst string, data reg.GPVirtual, on, off string) {
	CMPQ(t.field("List"), Imm(0))
	JEQ(LabelRef(on))
	CMPB(t.field("Fill"), Imm(0))
	JEQ(LabelRef(off))
	first, at, left, zero, again := t.load("First"), t.stage(), GP64(), t.zero(), label("clear")
	IMULQ(t.field(dst+".Stride"), first)
	ADDQ(first, data)
	MOVQ(U32(stageLines), left)
	Label(again)
	VMOVDQU64(zero, Mem{Base: at})
	ADDQ(Imm(64), at)
	DECQ(left)
	JNZ(LabelRef(again))
}

// nearby leaves the rows of a list to the next group that do not fit on stage, with those between.
func (t *turned) nearby() {
	s, all := &t.show, label("all")
	CMPQ(t.field("List"), Imm(0))
	JEQ(LabelRef(all))
	CMPQ(s.on, Imm(0))
	JEQ(LabelRef(all))
	base, room, n := t.reg(), t.all(bits(uint32(t.stageRows()))), GP64()
	VPBROADCASTD(s.base, base)
	XORQ(n, n)
	for i := range t.rows() / 16 {
		at, row, fit, count := GP64(), t.reg(), K(), GP64()
		LEAQ(Mem{Base: t.at, Disp: 16 * i}, at)
		real := t.lanes(t.left(at, 16))
		VMOVDQU32_Z(Mem{Base: t.load("List"), Index: at, Scale: 4}, real, row)
		VPSUBD(base, row, row)
		VPCMPUD(Imm(1), room, row, real, fit)
		KMOVW(fit, count.As32())
		POPCNTQ(count, count)
		ADDQ(count, n)
	}
	MOVQ(n, t.n)
	Label(all)
}

// stageRows are as many rows as a group may have with those between.
func (t *turned) stageRows() int { return t.rows() / 16 * stageRows }

// idle passes a stage of rows that are not listed.
func (t *turned) idle(dst string) {
	rows, m := GP64(), &traffic{turned: t, dst: dst}
	m.begin()
	m.end()
	MOVQ(U32(uint32(t.stageRows())), rows)
	MOVQ(rows, t.show.span)
	t.staged(dst)
}

// reach finds out how many rows the group has with those between, and what of X is asked for meanwhile.
func (t *turned) reach() {
	s, span := &t.show, GP64()
	MOVQ(t.last, span)
	INCQ(span)
	SUBQ(s.base, span)
	MOVQ(span, s.span)
	if t.listed {
		t.reachAsked()
	}
}

// reachAsked finds out what of X is asked for while the group is computed: nothing that was passed before it.
func (t *turned) reachAsked() {
	s, near, from, due := &t.show, label("near"), GP64(), GP64()
	CMPQ(s.asked, Imm(0))
	JEQ(LabelRef(near))
	MOVQ(s.base, from)
	t.row("X", from)
	ADDQ(U32(ahead), from)
	CMPQ(from, s.asked)
	CMOVQLT(s.asked, from)
	MOVQ(from, s.asked)
	MOVQ(t.last, due)
	INCQ(due)
	t.row("X", due)
	ADDQ(U32(ahead), due)
	MOVQ(due, s.due)
	Label(near)
}

// firstOnStage is where the first of rows that follow each other goes: they end with the group's last.
func (t *turned) firstOnStage(bytes reg.GPVirtual) reg.GPVirtual {
	p, skip := t.stage(), GP64()
	ADDQ(t.show.full, p)
	MOVQ(t.show.span, skip)
	SUBQ(t.n, skip)
	IMULQ(bytes, skip)
	ADDQ(skip, p)
	return p
}

// target is where row 0 of a block would be, on stage if there is one, and the distance of rows.
func (t *turned) target(block string) (data, stride reg.GPVirtual, behind int) {
	data, stride = t.load(block+".Data"), t.load(block+".Stride")
	off, skip := label("off"), GP64()
	CMPQ(t.show.on, Imm(0))
	JEQ(LabelRef(off))
	MOVQ(t.stage(), data)
	ADDQ(t.show.full, data)
	MOVQ(t.show.base, skip)
	IMULQ(stride, skip)
	SUBQ(skip, data)
	Label(off)
	return data, stride, 0
}

// staged counts the group's rows.
func (t *turned) staged(dst string) {
	rows, off := GP64(), label("off")
	MOVQ(t.show.span, rows)
	ADDQ(rows, t.show.base)
	CMPQ(t.show.on, Imm(0))
	JEQ(LabelRef(off))
	IMULQ(t.field(dst+".Stride"), rows)
	ADDQ(rows, t.show.full)
	Label(off)
}

// leave empties the stage, and says which row comes next.
func (t *turned) leave(dst string) {
	m := &traffic{turned: t, dst: dst}
	m.begin()
	m.wholeLines()
	x := m.reg()
	VMOVDQU64(Mem{Base: m.from}, x)
	VMOVDQU16(x, m.words(m.left), Mem{Base: m.to})
	if t.listed {
		base := GP64()
		MOVQ(t.show.base, base)
		MOVQ(base, t.field("First"))
	}
}

// traffic is lines that move little by little while turned rows are computed: all at once they wait for each other. Rows
// further on are asked for, as if they followed each other, and what is on stage leaves.
type traffic struct {
	*turned
	dst      string
	one      string          // the block, if rows of one are asked for
	ask      []reg.GPVirtual // rows
	due      reg.GPVirtual   // where this group's results will go
	from, to reg.GPVirtual   // of the lines that leave
	left     reg.GPVirtual   // their bytes
}

// traffic begins to move the results of block dst, if there is one, and rows of others.
func (t *turned) traffic(dst string, from ...string) *traffic {
	m := &traffic{turned: t, dst: dst}
	for _, block := range from {
		switch {
		case t.listed: // those of a list may follow each other less
			m.ask = append(m.ask, t.ahead(block, 0), t.ahead(block, 8))
		default:
			m.ask = append(m.ask, t.ahead(block, 0))
		}
	}
	if len(from) == 1 {
		m.one = from[0]
	}
	if len(from) == 1 && !t.listed {
		m.ifAcross(func() { turnedAcross(m.ask[0], 4) }, func() {})
	}
	if dst == "" {
		return m
	}
	m.begin()
	m.due = t.from(t.at)
	near := label("near")
	t.place(dst, m.due)
	CMPB(t.field(dst+".Past"), Imm(0))
	JEQ(LabelRef(near))
	MOVQ(t.room, m.due) // nothing to ask for
	Label(near)
	return m
}

// ahead is a row of a block that comes later: so far that it is asked for now, and some more. The last, if there is none.
func (t *turned) ahead(block string, more uint64) reg.GPVirtual {
	p, far := t.load("Rows"), t.from(t.at)
	DECQ(p)
	ADDQ(t.far, far)
	ADDQ(Imm(more), far)
	CMPQ(p, far)
	CMOVQGT(far, p)
	t.place(block, p)
	return p
}

// ifAcross runs across if rows are asked for across pages: of one matrix that is far, all of them. What layer norm of
// bfloat16 would wait for is little beside its instructions.
func (m *traffic) ifAcross(across, otherwise func()) {
	near, done := label("near"), label("asked")
	if m.listed {
		CMPQ(m.show.asked, Imm(0))
	} else {
		CMPB(m.field(m.one+".Far"), Imm(0))
	}
	JEQ(LabelRef(near))
	if m.size == 0 {
		CMPB(m.field(m.one+".BF16"), Imm(0))
		JNE(LabelRef(near))
	}
	across()
	JMP(LabelRef(done))
	Label(near)
	otherwise()
	Label(done)
}

// begin finds out what is on stage.
func (m *traffic) begin() {
	m.from, m.to, m.left = m.stage(), GP64(), GP64()
	MOVQ(m.show.to, m.to)
	MOVQ(m.show.full, m.left)
}

// some asks for and moves the lines of four columns of a size.
func (m *traffic) some(size int) {
	ask := func(p reg.GPVirtual, lines int) {
		for line := range lines {
			PREFETCHT0(Mem{Base: p, Disp: 64 * line})
		}
		ADDQ(U32(64*lines), p)
	}
	inOrder := func() {
		switch {
		case m.listed && m.pairs:
			askInTurns(m.ask)
		case m.listed:
			for _, p := range m.ask {
				ask(p, size/2)
			}
		default:
			for _, p := range m.ask {
				ask(p, size)
			}
		}
	}
	switch {
	case m.listed:
		m.ifAcross(func() {
			m.askSpan(size)
			m.ifList(func() { m.askSpan(size) })
		}, inOrder)
	case m.one != "" && size == 4:
		m.ifAcross(func() { askFour(m.ask[0]) }, inOrder)
	case m.one != "" && m.size == 2:
		m.ifAcross(func() { askTwo(m.ask[0]) }, inOrder)
	default:
		inOrder()
	}
	if m.dst != "" {
		ask(m.due, size)
		m.move(size)
	}
}

// move moves so many lines, if that many wait.
func (m *traffic) move(size int) {
	none := label("none")
	CMPQ(m.left, U32(64*size))
	JLT(LabelRef(none))
	SUBQ(U32(64*size), m.left)
	m.lines(size)
	Label(none)
}

// askInTurns asks for a line of one of two rows, and next time for one of the other.
func askInTurns(p []reg.GPVirtual) {
	PREFETCHT0(Mem{Base: p[0]})
	ADDQ(Imm(64), p[0])
	XCHGQ(p[0], p[1])
}

// end moves what is left, but for what does not fill a line: that goes to the front.
func (m *traffic) end() {
	m.wholeLines()
	x, zero := m.reg(), m.zero()
	VMOVDQU16_Z(Mem{Base: m.from}, m.words(m.left), x)
	if m.listed { // the last piece of a row goes on behind it
		VMOVDQU64(zero, Mem{Base: m.from})
		VMOVDQU64(zero, Mem{Base: m.from, Disp: 64})
	}
	VMOVDQU64(x, Mem{Base: m.stage()})
	MOVQ(m.to, m.show.to)
	MOVQ(m.left, m.show.full)
}

func (m *traffic) wholeLines() {
	again, last := label("line"), label("last")
	Label(again)
	CMPQ(m.left, Imm(64))
	JLT(LabelRef(last))
	SUBQ(Imm(64), m.left)
	m.lines(1)
	JMP(LabelRef(again))
	Label(last)
}

// lines moves n lines.
func (m *traffic) lines(n int) {
	v, near, done := m.regs(n), label("near"), label("moved")
	for i, x := range v {
		VMOVDQU64(Mem{Base: m.from, Disp: 64 * i}, x)
	}
	if m.listed {
		zero := m.zero()
		for i := range v {
			VMOVDQU64(zero, Mem{Base: m.from, Disp: 64 * i})
		}
	}
	ADDQ(U32(64*n), m.from)
	ADDQ(U32(64*n), m.to)
	TESTQ(U32(63), m.to)
	JNZ(LabelRef(near))
	CMPB(m.field(m.dst+".Past"), Imm(0))
	JEQ(LabelRef(near))
	for i, x := range v {
		VMOVNTDQ(x, Mem{Base: m.to, Disp: 64 * (i - n)})
	}
	JMP(LabelRef(done))
	Label(near)
	for i, x := range v {
		VMOVDQU64(x, Mem{Base: m.to, Disp: 64 * (i - n)})
	}
	Label(done)
}

// words are the first bytes/2 words of a vector, all if there are more.
func (t *turned) words(bytes reg.GPVirtual) reg.OpmaskVirtual {
	n, ones, m := t.from(bytes), GP64(), K()
	SHRQ(Imm(1), n)
	MOVQ(U32(0xffffffff), ones)
	BZHIQ(n, ones, ones)
	KMOVD(ones.As32(), m)
	return m
}
