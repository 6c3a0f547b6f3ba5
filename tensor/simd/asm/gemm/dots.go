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
	d := rowDots{a: [3]GPPhysical{RSI, RDI, R8}, rows: R9, c: R10, b: R11, k: R12, whole: R13, row: RBX, tmp: RCX,
		ahead: lanes.Across{Next: RDX, End: R15}}
	d.begin()
	Label("rows")
	d.nextRows()
	MOVQ(d.whole, d.k)
	TESTQ(d.k, d.k)
	JEQ(LabelRef("last"))
	Label("depth")
	d.step(func(m Mem, to VecPhysical) { VMOVUPS(m, to) })
	for r := range 3 {
		ADDQ(Imm(64), d.a[r])
	}
	ADDQ(U32(512), d.b)
	DECQ(d.k)
	JNZ(LabelRef("depth"))
	Label("last")
	KTESTW(K1, K1)
	JEQ(LabelRef("sums"))
	d.step(func(m Mem, to VecPhysical) { VMOVUPS_Z(m, K1, to) })
	Label("sums")
	d.store()
	// The next row lies below the third, whose numbers are passed but for the last.
	MOVQ(d.whole, d.k)
	SHLQ(Imm(6), d.k)
	SUBQ(d.k, d.a[2])
	LEAQ(Mem{Base: d.a[2], Index: d.row, Scale: 1}, d.a[0])
	JMP(LabelRef("rows"))
	Label("end")
	VZEROUPPER()
	RET()
}

// rowDots is where rowDots512 stands. K1 is the lanes of the last numbers of a row, K2 columns of C.
type rowDots struct {
	a                              [3]GPPhysical
	rows, c, b, k, whole, row, tmp GPPhysical
	ahead                          lanes.Across
}

func (d rowDots) sum(r, j int) VecPhysical { return avx512.vec[8*r+j] }

func (d rowDots) begin() {
	frame.Get(fieldDotsDepth, d.whole)
	MOVQ(d.whole, d.tmp)
	ANDQ(Imm(15), d.tmp)
	MOVQ(I32(-1), d.k)
	BZHIQ(d.tmp, d.k, d.k)
	KMOVW(d.k.As32(), K1)
	SHRQ(Imm(4), d.whole)
	frame.Get(fieldDotsCols, d.tmp)
	MOVQ(I32(-1), d.k)
	BZHIQ(d.tmp, d.k, d.k)
	KMOVW(d.k.As32(), K2)
	frame.Get(fieldDotsA, d.a[0])
	frame.Get(fieldDotsC, d.c)
	frame.Get(fieldDotsRows, d.rows)
	frame.Get(fieldDotsARow, d.row)
	frame.Get(fieldDotsFrom, d.ahead.Next)
}

// nextRows begins three rows. Of fewer the last is read again.
func (d rowDots) nextRows() {
	for r := 1; r < 3; r++ {
		LEAQ(Mem{Base: d.a[r-1], Index: d.row, Scale: 1}, d.a[r])
		CMPQ(d.rows, Imm(uint64(r)))
		CMOVQLE(d.a[r-1], d.a[r])
	}
	for _, s := range avx512.vec[:24] {
		VPXORD(s, s, s)
	}
	frame.Get(fieldDotsB, d.b)
	MOVQ(d.a[0], d.k)
	ADDQ(frame.Field(fieldDotsLead), d.k)
	d.ahead.Until(d.k, d.tmp)
}

// step multiplies a vector of each row with eight of B.
func (d rowDots) step(load func(m Mem, to VecPhysical)) {
	x := avx512.vec[24:27]
	for r := range 3 {
		load(Mem{Base: d.a[r]}, x[r])
	}
	asked := lanes.NewLabel("asked")
	d.ahead.Four(func(m Op) { PREFETCHT0(m) }, asked)
	Label(asked)
	for j := range 8 {
		VMOVUPS(Mem{Base: d.b, Disp: 64 * j}, avx512.vec[27+j%2])
		for r := range 3 {
			VFMADD231PS(avx512.vec[27+j%2], x[r], d.sum(r, j))
		}
	}
}

// store adds up the sums of each row, and ends after the last row.
func (d rowDots) store() {
	for r := range 3 {
		s := d.sum(r, 0).AsY()
		addUp(d.sum(r, 0), d.sum(r, 1), d.sum(r, 2), d.sum(r, 3), d.sum(r, 4), d.sum(r, 5), d.sum(r, 6), d.sum(r, 7), Z24, Z25)
		// What is not added to is not read: it would wait for the row before, just stored beside it.
		CMPQ(frame.Field(fieldDotsAdd), Imm(0))
		JEQ(LabelRef(fmt.Sprintf("write%d", r)))
		VADDPS(Mem{Base: d.c}, s, K2, s)
		Label(fmt.Sprintf("write%d", r))
		VMOVUPS(s, K2, Mem{Base: d.c})
		DECQ(d.rows)
		JEQ(LabelRef("end"))
		ADDQ(frame.Field(fieldDotsCRow), d.c)
	}
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
