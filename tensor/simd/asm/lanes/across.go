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

const (
	page   = 4 << 10
	window = 4 * page
)

// Until has memory asked for up to p, which becomes something else, as tmp does.
func (s Across) Until(p, tmp GPPhysical) {
	MOVQ(p, tmp)
	ANDQ(I32(-window), p)
	SHRQ(Imm(2), tmp)
	ANDQ(U32(page-64), tmp)
	ADDQ(tmp, p)
	MOVQ(p, s.End)
}

// Four asks for four lines, or goes on at end.
func (s Across) Four(ask func(Op), end string) {
	CMPQ(s.Next, s.End)
	JCC(LabelRef(end))
	for i := range 4 {
		ask(Mem{Base: s.Next, Disp: i * page})
	}
	same := NewLabel("page")
	ADDQ(Imm(64), s.Next)
	TESTQ(U32(page-1), s.Next)
	JNE(LabelRef(same))
	ADDQ(U32(window-page), s.Next)
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
