package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// Loops over rows ask across pages (see lanes.Across) without a count of what is asked for: where a line of a window is
// read tells which of the next window is due.
const page, window = lanes.Page, lanes.Window

// turnedAcross makes of a line's address that of the first of so many to ask for when it is read, less a window: of its number
// within the window the lowest two bits become the highest. Four lines are one of each page.
func turnedAcross(p reg.GPVirtual, lines int) {
	ANDQ(I32(-64*min(lines, 4)), p)
	SHRQ(Imm(6), p)
	RORB(Imm(2), p.As8())
	SHLQ(Imm(6), p)
}

// askAcross asks for lines of four pages in turns, the first of which is a window beyond p.
func askAcross(p reg.GPVirtual, lines int) {
	for i := range lines {
		PREFETCHT0(Mem{Base: p, Disp: window + i%4*page + i/4*64})
	}
}

// askFour asks for four lines and goes on to those that follow.
func askFour(p reg.GPVirtual) {
	askAcross(p, 4)
	ADDQ(Imm(64), p)
	lanes.NextWindow(p, label("same"))
}

// askTwo asks for two of such four lines, the first ones or the others, and goes on to those that follow.
func askTwo(p reg.GPVirtual) {
	same := label("same")
	for i := range 2 {
		PREFETCHT0(Mem{Base: p, Disp: window + i*page})
	}
	ADDQ(U32(2*page), p)
	TESTL(U32(2*page), p.As32())
	JNZ(LabelRef(same))
	ADDQ(I32(64-window), p)
	lanes.NextWindow(p, same)
}

// across asks for a block's rows while they are read from start to end; in order if the block is not far, or ends within a
// window.
type across struct {
	*kernel
	block string
	last  Mem           // a window before the end of the rows
	next  reg.GPVirtual // what is asked for next; zero: in order
}

func (k *kernel) across(block string, data reg.GPVirtual) *across {
	a := &across{kernel: k, block: block, last: AllocLocal(8), next: GP64()}
	XORQ(a.next, a.next)
	k.ifField(block+".Far", func() {
		MOVQ(k.field("Rows"), a.next)
		IMULQ(k.field(block+".Stride"), a.next)
		ADDQ(data, a.next)
		SUBQ(U32(window), a.next)
	})
	MOVQ(a.next, a.last)
	return a
}

// row begins with a row.
func (a *across) row(p reg.GPVirtual) {
	none, done := label("none"), label("row")
	CMPQ(p, a.last)
	JGE(LabelRef(none))
	MOVQ(p, a.next)
	turnedAcross(a.next, 4)
	JMP(LabelRef(done))
	Label(none)
	XORQ(a.next, a.next)
	Label(done)
}

// read is kernel.read of such a row.
func (a *across) read(p reg.GPVirtual, n int, rest bool) []vec {
	return a.readWith(a.block, p, n, rest, func(size int) { a.ask(p, size, n) })
}

// ask asks for as much as n vectors from column j on of the row are; across pages four lines at a time.
func (a *across) ask(p reg.GPVirtual, size, n int) {
	near, done := label("near"), label("asked")
	TESTQ(a.next, a.next)
	JZ(LabelRef(near))
	if n*a.lanes*size < 256 {
		TESTQ(U32(uint32(256/size-1)), a.j)
		JNZ(LabelRef(done))
	}
	askFour(a.next)
	JMP(LabelRef(done))
	Label(near)
	a.prefetch(p, size, n)
	Label(done)
}
