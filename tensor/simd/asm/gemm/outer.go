package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// Offsets of the fields of simd.Outer.
const (
	fieldOuterA = 8 * iota
	fieldOuterB
	fieldOuterC
	fieldOuterARow
	fieldOuterBRow
	fieldOuterCRow
	fieldOuterRows
	fieldOuterCols
	fieldOuterLeft
	fieldOuterAdd
	fieldOuterAhead
	fieldOuterAheadStep
)

// outerAhead is how many bytes ahead rows of A are asked for.
const outerAhead = 8 << 10

// outer512: up to eight columns of A by up to three vectors of B, whose sums stay in registers for all rows. Rows of both
// are read as they lie.
func outer512(vectors int) {
	frame.Begin(fmt.Sprintf("outer512w%d", vectors))
	sum := func(j, v int) VecPhysical { return avx512.vec[vectors*j+v] }
	x, one := avx512.vec[24:27], avx512.vec[27:29]
	a, b, c, arow, brow, crow, rows, left, ahead, step, tmp := RSI, RDI, R8, R14, R9, R10, R11, RDX, R12, R13, RBX

	frame.Get(fieldOuterCols, RCX)
	for v := range vectors { // the lanes of the last vector, and all of others
		MOVQ(I32(-1), tmp)
		BZHIQ(RCX, tmp, tmp)
		KMOVW(tmp.As32(), []OpmaskPhysical{K1, K2, K3}[v])
		SUBQ(Imm(16), RCX)
	}
	frame.Get(fieldOuterA, a)
	frame.Get(fieldOuterB, b)
	frame.Get(fieldOuterARow, arow)
	frame.Get(fieldOuterBRow, brow)
	frame.Get(fieldOuterCRow, crow)
	frame.Get(fieldOuterRows, rows)
	frame.Get(fieldOuterLeft, left)
	frame.Get(fieldOuterAhead, ahead)
	frame.Get(fieldOuterAheadStep, step)
	for j := range 8 {
		for v := range vectors {
			VPXORD(sum(j, v), sum(j, v), sum(j, v))
		}
	}
	Label("row")
	for v := range vectors {
		VMOVUPS_Z(Mem{Base: b, Disp: 64 * v}, []OpmaskPhysical{K1, K2, K3}[v], x[v])
		m := Mem{Base: ahead}
		if v > 0 {
			m.Index, m.Scale = step, uint8(v)
		}
		PREFETCHT1(m) // and from there, a few rows before it is needed, into the nearest cache
		PREFETCHT0(Mem{Base: b, Index: brow, Scale: 8, Disp: 64 * v})
	}
	PREFETCHT0(Mem{Base: a, Disp: outerAhead})
	for j := range 8 {
		VBROADCASTSS(Mem{Base: a, Disp: 4 * j}, one[j%2])
		for v := range vectors {
			VFMADD231PS(x[v], one[j%2], sum(j, v))
		}
		if j < 7 {
			CMPQ(left, Imm(uint64(j+1)))
			JEQ(LabelRef("next"))
		}
	}
	Label("next")
	ADDQ(arow, a)
	ADDQ(brow, b)
	ADDQ(brow, ahead)
	DECQ(rows)
	JNZ(LabelRef("row"))

	frame.Get(fieldOuterC, c)
	CMPQ(frame.Field(fieldOuterAdd), Imm(0))
	JEQ(LabelRef("write"))
	MOVQ(c, tmp)
	for j := range 8 {
		for v := range vectors {
			VADDPS(Mem{Base: tmp, Disp: 64 * v}, sum(j, v), sum(j, v))
		}
		ADDQ(crow, tmp)
	}
	Label("write")
	for j := range 8 {
		for v := range vectors {
			VMOVUPS(sum(j, v), Mem{Base: c, Disp: 64 * v})
		}
		ADDQ(crow, c)
	}
	VZEROUPPER()
	RET()
}
