package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// Offsets of the fields of simd.Eights.
const (
	fieldEightsA = 8 * iota
	fieldEightsB
	fieldEightsC
	fieldEightsARow
	fieldEightsCRow
	fieldEightsK
	fieldEightsRows
	fieldEightsCols
	fieldEightsAdd
	fieldEightsAhead
	fieldEightsAheadStep
	fieldEightsAheadUnit
)

// eightsRows is how many rows a unit has, by vectors: simd.EightsRows. Their sums, a row of B and two of A fill the
// registers.
var eightsRows = map[int]int{2: 12, 3: 8, 4: 6, 5: 5}

// eights is one unit after the other: all sums stay in registers while k runs, two steps at a time. A row's two numbers
// are repeated together, one load for all vectors.
type eights struct {
	vectors, rows int
	b, two        []VecPhysical
}

func newEights(vectors int) eights {
	rows := eightsRows[vectors]
	free := avx512.vec[vectors*rows:]
	return eights{vectors, rows, free[:vectors], free[vectors : vectors+2]}
}

func (e eights) sum(r, v int) VecPhysical { return avx512.vec[e.vectors*r+v] }

func eights512(vectors int) {
	e := newEights(vectors)
	frame.Begin(fmt.Sprintf("eights512w%d", vectors))
	var next, asked Mem
	frame.Locals(&next, &asked)
	c, left := RSI, R15
	frame.Keep(fieldEightsA, RDX, next)
	frame.Keep(fieldEightsAhead, RDX, asked)
	frame.Get(fieldEightsC, c)
	frame.Get(fieldEightsRows, left)
	e.masks()
	Label("unit")
	e.own(c)
	e.multiply(next, asked)
	e.store(c, left)
	JMP(LabelRef("unit"))
	Label("done")
	VZEROUPPER()
	RET()
}

func (e eights) zero() {
	for _, s := range avx512.vec[:e.vectors*e.rows] {
		VPXORD(s, s, s)
	}
}

// masks puts into K1 which of the last columns there are, of a vector or of half of one, and into K2 every other lane.
func (e eights) masks() {
	frame.Get(fieldEightsCols, RCX)
	SUBQ(Imm(uint64((e.vectors-1)/2*16)), RCX)
	MOVQ(I32(-1), RDX)
	BZHIQ(RCX, RDX, RDX)
	KMOVW(EDX, K1)
	MOVL(U32(0x5555), EDX)
	KMOVW(EDX, K2)
}

// own asks for rows of C, which are stored at the very end, to own them by then.
func (e eights) own(c GPPhysical) {
	MOVQ(c, RBX)
	frame.Get(fieldEightsCRow, RCX)
	for r := range e.rows {
		for line := range (e.vectors + 1) / 2 {
			prefetchToWrite(uint32(64 * line))
		}
		if r+1 < e.rows {
			ADDQ(RCX, RBX)
		}
	}
}

// multiply makes the sums of a unit.
func (e eights) multiply(next, asked Mem) {
	a, row, row3 := []GPPhysical{R8, R9, R10}, R11, R12
	panel, k, ahead, step := RDI, RCX, R13, RBX
	frame.Get(fieldEightsARow, row)
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
	MOVQ(next, a[0])
	LEAQ(Mem{Base: a[0], Index: row, Scale: 4}, a[1])
	LEAQ(Mem{Base: a[1], Index: row, Scale: 4}, a[2])
	LEAQ(e.number(a, row, row3, e.rows), RDX)
	MOVQ(RDX, next)
	MOVQ(asked, ahead)
	frame.Get(fieldEightsAheadUnit, RDX)
	ADDQ(RDX, asked)
	frame.Get(fieldEightsAheadStep, step)
	frame.Get(fieldEightsB, panel)
	frame.Get(fieldEightsK, k)
	e.zero()
	pair := func(i int, repeat func(m Mem, to VecPhysical)) {
		for v := range e.vectors {
			VMOVUPS(Mem{Base: panel, Disp: 64 * (e.vectors*i + v)}, e.b[v])
		}
		for r := range e.rows {
			m := e.number(a, row, row3, r)
			m.Disp = 8 * i
			repeat(m, e.two[r%2])
			for v := range e.vectors {
				VFMADD231PS(e.b[v], e.two[r%2], e.sum(r, v))
			}
		}
	}
	turn := func(name string, pairs int, after string) {
		CMPQ(k, Imm(uint64(2*pairs)))
		JLT(LabelRef(after))
		Label(name)
		for i := range pairs {
			pair(i, func(m Mem, to VecPhysical) { VBROADCASTF32X2(m, to) })
			PREFETCHT0(Mem{Base: ahead})
			ADDQ(step, ahead)
		}
		ADDQ(U32(uint32(64*e.vectors*pairs)), panel)
		for _, p := range a[:(e.rows+3)/4] {
			ADDQ(Imm(uint64(8*pairs)), p)
		}
		SUBQ(Imm(uint64(2*pairs)), k)
		CMPQ(k, Imm(uint64(2*pairs)))
		JGE(LabelRef(name))
		Label(after)
	}
	turn("turn", 2, "rest")
	turn("pair", 1, "last")
	// A number without another: where that would be is a zero.
	TESTQ(k, k)
	JEQ(LabelRef("sums"))
	pair(0, func(m Mem, to VecPhysical) { VBROADCASTSS_Z(m, K2, to) })
	Label("sums")
}

// number is where row r of a unit begins.
func (e eights) number(a []GPPhysical, row, row3 GPPhysical, r int) Mem {
	m := Mem{Base: a[min(r/4, len(a)-1)]}
	switch r -= 4 * min(r/4, len(a)-1); r {
	case 1, 2, 4:
		m.Index, m.Scale = row, uint8(r)
	case 3:
		m.Index, m.Scale = row3, 1
	}
	return m
}

// store adds up sums of even and of odd steps, which are side by side, and writes or adds them row by row.
func (e eights) store(c, left GPPhysical) {
	x, y, order := e.b[0], e.b[1], e.two[0]
	fold := func(one, other, to VecPhysical) {
		VSHUFPS(Imm(0x88), other, one, x)
		VSHUFPS(Imm(0xdd), other, one, y)
		VADDPS(y, x, to)
	}
	for r := range e.rows {
		for v := 0; v+1 < e.vectors; v += 2 {
			fold(e.sum(r, v), e.sum(r, v+1), e.sum(r, v/2))
		}
	}
	half := e.vectors / 2 // where the last columns are: two rows' are a vector
	if e.vectors%2 == 1 {
		VMOVUPS(outerOrder(fmt.Sprintf("eightsRows%d", e.vectors), func(i int) int { return i%8/2*4 + i%2 + i/8*2 }), order)
		for r := 0; r < e.rows; r += 2 {
			other := min(r+1, e.rows-1)
			fold(e.sum(r, e.vectors-1), e.sum(other, e.vectors-1), e.sum(r, half))
			VPERMPS(e.sum(r, half), order, e.sum(r, half))
			if other > r {
				VEXTRACTF32X8(Imm(1), e.sum(r, half), e.sum(other, half).AsY())
			}
		}
	}
	crow := RDX
	frame.Get(fieldEightsCRow, crow)
	each := func(do func(m Mem, s Op, last bool)) {
		for r := range e.rows {
			for v := range e.vectors / 2 {
				do(Mem{Base: c, Disp: 64 * v}, e.sum(r, v), 2*v+2 == e.vectors)
			}
			if e.vectors%2 == 1 {
				do(Mem{Base: c, Disp: 64 * half}, e.sum(r, half).AsY(), true)
			}
			ADDQ(crow, c)
			SUBQ(Imm(1), left)
			JEQ(LabelRef("done"))
		}
	}
	write := func(m Mem, s Op, last bool) {
		if last {
			VMOVUPS(s, K1, m)
		} else {
			VMOVUPS(s, m)
		}
	}
	CMPQ(frame.Field(fieldEightsAdd), Imm(0))
	JEQ(LabelRef("write"))
	each(func(m Mem, s Op, last bool) {
		if last {
			VADDPS(m, s, K1, s)
		} else {
			VADDPS(m, s, s)
		}
		write(m, s, last)
	})
	JMP(LabelRef("unit"))
	Label("write")
	each(write)
}
