package lanes

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Across asks for memory that is read from one end to the other, across pages: of each four pages line 0 of all, then line
// 1 of all, and so on (see simd.acrossPages). In order, one page is looked up at a time, and what the processor asks for by
// itself starts anew with each.
type Across struct {
	Next GPPhysical // the line of a first page that is asked for next
	End  Op         // the first that is not
}

// Page is how many bytes a page has, and Window four pages.
const (
	Page   = 4 << 10
	Window = 4 * Page
)

// Until has memory asked for up to p, which becomes something else, as tmp does.
func (s Across) Until(p, tmp GPPhysical) {
	MOVQ(p, tmp)
	ANDQ(I32(-Window), p)
	SHRQ(Imm(2), tmp)
	ANDQ(U32(Page-64), tmp)
	ADDQ(tmp, p)
	MOVQ(p, s.End)
}

// Four asks for four lines, or goes on at end.
func (s Across) Four(ask func(Op), end string) {
	CMPQ(s.Next, s.End)
	JCC(LabelRef(end))
	for i := range 4 {
		ask(Mem{Base: s.Next, Disp: i * Page})
	}
	ADDQ(Imm(64), s.Next)
	NextWindow(s.Next, NewLabel("page"))
}

// NextWindow goes on from the end of a window's first page to the next window; elsewhere, at same.
func NextWindow(line interface {
	Register
	GP
}, same string) {
	TESTL(U32(Page-64), line.As32())
	JNZ(LabelRef(same))
	ADDQ(U32(Window-Page), line)
	Label(same)
}

// Fours asks for four lines as often as times says, which becomes something else.
func (s Across) Fours(ask func(Op), times GPPhysical, name string) {
	Label(name)
	s.Four(ask, name+"end")
	DECQ(times)
	JNZ(LabelRef(name))
	Label(name + "end")
}
