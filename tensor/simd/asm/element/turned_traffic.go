package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// traffic is lines that move little by little while turned rows are computed: all at once they wait for each other. Rows
// further on are asked for, as if they followed each other, and results of the group before leave stage.
type traffic struct {
	*turned
	dst      string
	ask      []reg.GPVirtual // rows
	due      reg.GPVirtual   // where this group's results will go
	from, to reg.GPVirtual   // of the lines that leave
	left     reg.GPVirtual   // their bytes
}

// traffic begins to move the results of block dst, if there is one, and rows of others.
func (t *turned) traffic(dst string, from ...string) *traffic {
	m := &traffic{turned: t, dst: dst, due: t.from(t.at), from: t.stage(), to: GP64(), left: GP64()}
	parts := 1
	if t.listed {
		parts = 2 // those of a list may follow each other less
	}
	for _, block := range from {
		for part := range parts {
			p, far := t.load("Rows"), t.from(t.at)
			DECQ(p)
			ADDQ(t.far, far)
			ADDQ(Imm(uint64(16/parts*part)), far)
			CMPQ(p, far)
			CMOVQGT(far, p)
			t.place(block, p)
			m.ask = append(m.ask, p)
		}
	}
	if dst == "" {
		return m
	}
	near := label("near")
	t.place(dst, m.due)
	CMPB(t.field(dst+".Past"), Imm(0))
	JEQ(LabelRef(near))
	MOVQ(t.room, m.due) // nothing to ask for
	Label(near)
	m.begin()
	return m
}

// begin finds out what is on stage.
func (m *traffic) begin() {
	none := label("none")
	XORQ(m.left, m.left)
	LEAQ(Mem{Base: m.at, Disp: -16}, m.to)
	CMPQ(m.field(m.dst+".Data"), Imm(0))
	JEQ(LabelRef(none))
	TESTQ(m.to, m.to)
	JS(LabelRef(none))
	bytes := m.rowBytes(m.dst)
	m.ifApart(m.to, m.prev, none)
	CMPQ(bytes, m.field(m.dst+".Stride"))
	JNE(LabelRef(none))
	m.place(m.dst, m.to)
	MOVQ(bytes, m.left)
	IMULQ(m.prev, m.left)
	Label(none)
}

// some moves the lines of four columns of a size.
func (m *traffic) some(size int) {
	ask := func(p reg.GPVirtual, lines int) {
		for line := range lines {
			PREFETCHT0(Mem{Base: p, Disp: 64 * line})
		}
		ADDQ(U32(64*lines), p)
	}
	for _, p := range m.ask {
		if m.listed {
			ask(p, size/2)
		} else {
			ask(p, size)
		}
	}
	if m.dst != "" {
		ask(m.due, size)
	}
	if m.dst == "" {
		return
	}
	none := label("none")
	CMPQ(m.left, U32(64*size))
	JLT(LabelRef(none))
	SUBQ(U32(64*size), m.left)
	m.lines(size)
	Label(none)
}

// end moves what is left.
func (m *traffic) end() {
	again, last := label("line"), label("last")
	Label(again)
	CMPQ(m.left, Imm(64))
	JLT(LabelRef(last))
	SUBQ(Imm(64), m.left)
	m.lines(1)
	JMP(LabelRef(again))
	Label(last)
	x := m.reg()
	VMOVDQU64(Mem{Base: m.from}, x)
	VMOVDQU16(x, m.words(m.left), Mem{Base: m.to})
}

// lines moves n lines.
func (m *traffic) lines(n int) {
	v, near, done := m.regs(n), label("near"), label("moved")
	for i, x := range v {
		VMOVDQU64(Mem{Base: m.from, Disp: 64 * i}, x)
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
