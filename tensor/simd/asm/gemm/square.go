package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// Offsets of the fields of simd.Square.
const (
	fieldSquareA = 8 * iota
	fieldSquareB
	fieldSquareC
	fieldSquareRoom
	fieldSquareARow
	fieldSquareDepth
	fieldSquareUnits
	fieldSquareCols
)

// squareAhead is how many bytes ahead rows are asked for.
const squareAhead = 4 << 10

// square is eight rows of up to 48 columns at a time, whose sums are three vectors each. With half, the third has up to
// eight columns: numbers of A come two at a time, beside two of B's last columns in turn, and sums of both are added up at
// the end.
type square struct {
	half bool
	wide int // vectors of whole columns

	a, low, row, row3 GPPhysical // rows from the first and from the fifth on, and how far one and three are apart
	b, c, crow, depth GPPhysical
	room, from, to    GPPhysical // where sums go, those that leave, and where to: nowhere before the first
	n, ask            GPPhysical
	next, units       Mem // rows to come

	x, one    []VecPhysical
	two, line VecPhysical
}

func (s square) sum(r, v int) VecPhysical { return avx512.vec[3*r+v] }

// square512: sixteen rows at a time to a room, eight by eight; meanwhile those before leave it line by line.
func square512(half bool) {
	s := square{half: half, wide: 3, a: RSI, low: RDI, row: R9, row3: R10, b: RDX, c: R8, crow: R11, depth: R13,
		room: R12, from: R14, to: R15, n: RCX, ask: RBX,
		x: avx512.vec[24:27], one: avx512.vec[27:29], two: avx512.vec[29], line: avx512.vec[30]}
	name := "square512by48"
	if half {
		name, s.wide = "square512by40", 2
	}
	frame.Begin(name)
	s.begin()
	Label("unit")
	MOVQ(s.room, s.c)
	s.group("upper")
	SHRQ(Imm(1), s.n)
	s.lines("upperLines")
	s.group("lower")
	MOVQ(s.n, s.b)
	SHRQ(Imm(1), s.b)
	SUBQ(s.b, s.n)
	s.lines("lowerLines")
	s.leave()
	SUBQ(Imm(1), s.units)
	JNZ(LabelRef("unit"))
	frame.Get(fieldSquareCols, s.n)
	s.lines("last")
	VZEROUPPER()
	RET()
}

func (s *square) begin() {
	frame.Locals(&s.next, &s.units)
	frame.Get(fieldSquareCols, s.n)
	MOVQ(s.n, s.crow)
	SHLQ(Imm(2), s.crow)
	SUBQ(Imm(32), s.n)
	MOVQ(I32(-1), s.b)
	BZHIQ(s.n, s.b, s.b)
	KMOVW(s.b.As32(), K1) // the last columns
	frame.Get(fieldSquareRoom, s.room)
	frame.Get(fieldSquareARow, s.row)
	LEAQ(Mem{Base: s.row, Index: s.row, Scale: 2}, s.row3)
	frame.Get(fieldSquareDepth, s.depth)
	frame.Keep(fieldSquareA, s.a, s.next)
	frame.Keep(fieldSquareUnits, s.n, s.units)
	XORQ(s.to, s.to)
	if s.half {
		VMOVUPS(outerOrder("squareRows", func(i int) int { return i%8/2*4 + i%2 + i/8*2 }), Z31)
	}
}

// group makes sums of eight rows, and leaves in n how many lines sixteen have.
func (s *square) group(name string) {
	MOVQ(s.next, s.a)
	LEAQ(Mem{Base: s.a, Index: s.row, Scale: 4}, s.low)
	LEAQ(Mem{Base: s.low, Index: s.row, Scale: 4}, s.n)
	MOVQ(s.n, s.next)
	LEAQ(Mem{Base: s.a, Disp: squareAhead}, s.ask)
	frame.Get(fieldSquareB, s.b)
	for _, sum := range avx512.vec[:24] {
		VPXORD(sum, sum, sum)
	}
	MOVQ(s.depth, s.n)
	Label(name)
	s.step(0)
	if s.half {
		s.step(1)
		s.lastOfTwo()
		s.advance(2, 5)
		SUBQ(Imm(2), s.n)
	} else {
		s.advance(1, 3)
		DECQ(s.n)
	}
	JNZ(LabelRef(name))
	s.store()
	frame.Get(fieldSquareCols, s.n)
}

// number is that of row r.
func (s *square) number(r int) Mem {
	m := Mem{Base: []GPPhysical{s.a, s.low}[r/4]}
	switch r % 4 {
	case 1, 2:
		m.Index, m.Scale = s.row, uint8(r%4)
	case 3:
		m.Index, m.Scale = s.row3, 1
	}
	return m
}

// step is a number of each row, i behind the first.
func (s *square) step(i int) {
	for v := range s.wide {
		VMOVUPS(Mem{Base: s.b, Disp: 64 * (s.wide*i + v)}, s.x[v])
	}
	for r := range 8 {
		m := s.number(r)
		m.Disp = 4 * i
		VBROADCASTSS(m, s.one[r%2])
		for v := range s.wide {
			VFMADD231PS(s.x[v], s.one[r%2], s.sum(r, v))
		}
	}
}

// lastOfTwo is the last columns of two numbers of each row.
func (s *square) lastOfTwo() {
	VMOVUPS(Mem{Base: s.b, Disp: 256}, s.x[2])
	for r := range 8 {
		VBROADCASTF32X2(s.number(r), s.two)
		VFMADD231PS(s.x[2], s.two, s.sum(r, 2))
	}
}

func (s *square) advance(numbers, vectors int) {
	ADDQ(Imm(uint64(4*numbers)), s.a)
	ADDQ(Imm(uint64(4*numbers)), s.low)
	ADDQ(U32(uint32(64*vectors)), s.b)
	PREFETCHT0(Mem{Base: s.ask})
	ADDQ(Imm(uint64(32*numbers)), s.ask)
}

// store puts eight rows into the room.
func (s *square) store() {
	last := Mem{Base: s.c, Disp: 128}
	for r := range 8 {
		VMOVUPS(s.sum(r, 0), Mem{Base: s.c})
		VMOVUPS(s.sum(r, 1), Mem{Base: s.c, Disp: 64})
		switch {
		case !s.half:
			VMOVUPS(s.sum(r, 2), K1, last)
		case r%2 == 0:
			VSHUFPS(Imm(0x88), s.sum(r+1, 2), s.sum(r, 2), s.x[0])
			VSHUFPS(Imm(0xdd), s.sum(r+1, 2), s.sum(r, 2), s.x[1])
			VADDPS(s.x[1], s.x[0], s.x[0])
			VPERMPS(s.x[0], Z31, s.x[0])
			VMOVUPS(s.x[0].AsY(), K1, last)
		default:
			VEXTRACTF32X8(Imm(1), s.x[0], s.x[0].AsY())
			VMOVUPS(s.x[0].AsY(), K1, last)
		}
		ADDQ(s.crow, s.c)
	}
}

func (s *square) lines(name string) { linesPast(name, s.from, s.to, s.n, s.line) }

// leave has what was made leave with the next rows, which go to the other half of the room.
func (s *square) leave() {
	TESTQ(s.to, s.to)
	JNE(LabelRef("begun"))
	frame.Get(fieldSquareC, s.to)
	Label("begun")
	MOVQ(s.room, s.from)
	MOVQ(s.crow, s.b)
	SHLQ(Imm(4), s.b)
	frame.Get(fieldSquareRoom, s.n)
	ADDQ(s.n, s.b)
	CMPQ(s.room, s.n)
	MOVQ(s.n, s.room)
	CMOVQEQ(s.b, s.room)
}
