package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
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
)

// outerAhead is how many bytes ahead rows are prefetched.
const outerAhead = 8 << 10

// outer512: up to eight columns of A by up to sixteen of B, whose sums stay in registers for all rows. Rows of both are
// read in place.
func outer512() {
	frame.Begin("outer512")
	sums, x, one := avx512.vec[:8], avx512.vec[24], avx512.vec[27:29]
	a, b, c, arow, brow, crow, rows, left, tmp := RSI, RDI, R8, R14, R9, R10, R11, RDX, RBX

	frame.Get(fieldOuterCols, RCX)
	MOVQ(I32(-1), tmp)
	BZHIQ(RCX, tmp, tmp)
	KMOVW(tmp.As32(), K1)
	frame.Get(fieldOuterA, a)
	frame.Get(fieldOuterB, b)
	frame.Get(fieldOuterARow, arow)
	frame.Get(fieldOuterBRow, brow)
	frame.Get(fieldOuterCRow, crow)
	frame.Get(fieldOuterRows, rows)
	frame.Get(fieldOuterLeft, left)
	for _, s := range sums {
		VPXORD(s, s, s)
	}
	Label("row")
	VMOVUPS_Z(Mem{Base: b}, K1, x)
	PREFETCHT0(Mem{Base: b, Disp: outerAhead})
	PREFETCHT0(Mem{Base: a, Disp: outerAhead})
	for j, s := range sums {
		VBROADCASTSS(Mem{Base: a, Disp: 4 * j}, one[j%2])
		VFMADD231PS(x, one[j%2], s)
		if j < 7 {
			frame.Compare(left, Imm(uint64(j+1)), JEQ, "next")
		}
	}
	Label("next")
	ADDQ(arow, a)
	ADDQ(brow, b)
	frame.Next(rows, "row")

	frame.Get(fieldOuterC, c)
	frame.Compare(frame.Field(fieldOuterAdd), Imm(0), JEQ, "write")
	MOVQ(c, tmp)
	for _, s := range sums {
		VADDPS(Mem{Base: tmp}, s, s)
		ADDQ(crow, tmp)
	}
	Label("write")
	for _, s := range sums {
		VMOVUPS(s, Mem{Base: c})
		ADDQ(crow, c)
	}
	frame.End()
}
