package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
	"starling/tensor/simd/asm/lanes"
)

// Offsets of the fields of simd.Dots.
const (
	fieldDotsA = 8 * iota
	fieldDotsB
	fieldDotsC
	fieldDotsARow
	fieldDotsCRow
	fieldDotsDepth
	fieldDotsRows
	fieldDotsCols
	fieldDotsAdd
	fieldDotsFrom
	fieldDotsLead
)

// rowDots512: three rows of A by eight columns of B, each of the 24 sums a vector along the depth, until the end. So
// numbers of A are loaded once, as they lie, and nothing else is far.
func rowDots512() {
	frame.Begin("rowDots512")
	sum := func(r, j int) VecPhysical { return avx512.vec[8*r+j] }
	x := avx512.vec[24:27]
	a, rows, c := [3]GPPhysical{RSI, RDI, R8}, R9, R10
	b, k, whole, row, tmp := R11, R12, R13, RBX, RCX
	ahead := lanes.Across{Next: RDX, End: R15}

	frame.Get(fieldDotsDepth, whole)
	MOVQ(whole, tmp)
	ANDQ(Imm(15), tmp)
	MOVQ(I32(-1), k)
	BZHIQ(tmp, k, k)
	KMOVW(k.As32(), K1) // lanes of the last numbers of a row
	SHRQ(Imm(4), whole)
	frame.Get(fieldDotsCols, tmp)
	MOVQ(I32(-1), k)
	BZHIQ(tmp, k, k)
	KMOVW(k.As32(), K2) // columns of C
	frame.Get(fieldDotsA, a[0])
	frame.Get(fieldDotsC, c)
	frame.Get(fieldDotsRows, rows)
	frame.Get(fieldDotsARow, row)
	frame.Get(fieldDotsFrom, ahead.Next)

	Label("rows")
	// Of fewer than three rows the last is read again.
	for r := 1; r < 3; r++ {
		LEAQ(Mem{Base: a[r-1], Index: row, Scale: 1}, a[r])
		CMPQ(rows, Imm(uint64(r)))
		CMOVQLE(a[r-1], a[r])
	}
	for r := range 3 {
		for j := range 8 {
			VPXORD(sum(r, j), sum(r, j), sum(r, j))
		}
	}
	frame.Get(fieldDotsB, b)
	MOVQ(a[0], k)
	ADDQ(frame.Field(fieldDotsLead), k)
	ahead.Until(k, tmp)
	step := func(load func(m Mem, to VecPhysical)) {
		for r := range 3 {
			load(Mem{Base: a[r]}, x[r])
		}
		asked := lanes.NewLabel("asked")
		ahead.Four(func(m Op) { PREFETCHT0(m) }, asked)
		Label(asked)
		for j := range 8 {
			VMOVUPS(Mem{Base: b, Disp: 64 * j}, avx512.vec[27+j%2])
			for r := range 3 {
				VFMADD231PS(avx512.vec[27+j%2], x[r], sum(r, j))
			}
		}
	}
	MOVQ(whole, k)
	TESTQ(k, k)
	JEQ(LabelRef("last"))
	Label("depth")
	step(func(m Mem, to VecPhysical) { VMOVUPS(m, to) })
	for r := range 3 {
		ADDQ(Imm(64), a[r])
	}
	ADDQ(U32(512), b)
	DECQ(k)
	JNZ(LabelRef("depth"))
	Label("last")
	KTESTW(K1, K1)
	JEQ(LabelRef("sums"))
	step(func(m Mem, to VecPhysical) { VMOVUPS_Z(m, K1, to) })
	Label("sums")
	for r := range 3 {
		addUp(sum(r, 0), sum(r, 1), sum(r, 2), sum(r, 3), sum(r, 4), sum(r, 5), sum(r, 6), sum(r, 7), x[0], x[1])
		// What is not added to is not read: it would wait for the row before, just stored beside it.
		CMPQ(frame.Field(fieldDotsAdd), Imm(0))
		JEQ(LabelRef(fmt.Sprintf("write%d", r)))
		VADDPS(Mem{Base: c}, sum(r, 0).AsY(), K2, sum(r, 0).AsY())
		Label(fmt.Sprintf("write%d", r))
		VMOVUPS(sum(r, 0).AsY(), K2, Mem{Base: c})
		DECQ(rows)
		JEQ(LabelRef("end"))
		ADDQ(frame.Field(fieldDotsCRow), c)
	}
	// The next row lies below the third, whose numbers are passed but for the last.
	MOVQ(whole, k)
	SHLQ(Imm(6), k)
	SUBQ(k, a[2])
	LEAQ(Mem{Base: a[2], Index: row, Scale: 1}, a[0])
	JMP(LabelRef("rows"))
	Label("end")
	VZEROUPPER()
	RET()
}

// addUp adds up the lanes of eight vectors; the sums become the lower lanes of the first. Two vectors at a time become
// one whose lanes are of both in turn.
func addUp(v0, v1, v2, v3, v4, v5, v6, v7, s, t VecPhysical) {
	fold := func(x, y VecPhysical, lower, upper func(y, x, to VecPhysical)) {
		lower(y, x, s)
		upper(y, x, t)
		VADDPS(s, t, x)
	}
	quarters := func(how uint64) func(y, x, to VecPhysical) {
		return func(y, x, to VecPhysical) { VSHUFF32X4(Imm(how), y, x, to) }
	}
	for _, p := range [][2]VecPhysical{{v0, v1}, {v2, v3}, {v4, v5}, {v6, v7}} {
		fold(p[0], p[1], func(y, x, to VecPhysical) { VUNPCKLPS(y, x, to) }, func(y, x, to VecPhysical) { VUNPCKHPS(y, x, to) })
	}
	for _, p := range [][2]VecPhysical{{v0, v2}, {v4, v6}} {
		fold(p[0], p[1], func(y, x, to VecPhysical) { VUNPCKLPD(y, x, to) }, func(y, x, to VecPhysical) { VUNPCKHPD(y, x, to) })
	}
	fold(v0, v4, quarters(0x44), quarters(0xee))
	fold(v0, v0, quarters(0x08), quarters(0x0d))
}
