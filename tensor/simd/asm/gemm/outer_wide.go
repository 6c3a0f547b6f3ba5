package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
	"starling/tensor/simd/asm/lanes"
)

// Offsets of the fields of simd.OuterWide.
const (
	fieldOuterWideA = 8 * iota
	fieldOuterWideB
	fieldOuterWideC
	fieldOuterWideARow
	fieldOuterWideBRow
	fieldOuterWideRows
	fieldOuterWideCols
	fieldOuterWideLeft
	fieldOuterWideFrom
	fieldOuterWideLead
	fieldOuterWideEnd
)

// outerWide512: three rows at a time, then one, from their first numbers to the last. The rows' numbers of A stay in
// registers, each repeated; sums come from the nearest cache and go back there.
func outerWide512() {
	frame.Begin("outerWide512")
	w := wideOuter{a: RSI, b: [3]GPPhysical{RDI, R8, R9}, c: R10, arow: R11, brow: R12, rows: R13, left: RDX, n: R15, tmp: RBX,
		ahead: lanes.Across{Next: R14, End: frame.Field(fieldOuterWideEnd)}}
	frame.Get(fieldOuterWideCols, RCX)
	ANDQ(Imm(15), RCX)
	MOVQ(I32(-1), w.tmp)
	BZHIQ(RCX, w.tmp, w.tmp)
	KMOVW(w.tmp.As32(), K1)
	frame.Get(fieldOuterWideA, w.a)
	frame.Get(fieldOuterWideB, w.b[0])
	frame.Get(fieldOuterWideARow, w.arow)
	frame.Get(fieldOuterWideBRow, w.brow)
	frame.Get(fieldOuterWideRows, w.rows)
	frame.Get(fieldOuterWideLeft, w.left)
	frame.Get(fieldOuterWideFrom, w.ahead.Next)
	w.group(3, "single")
	w.group(1, "end")
	VZEROUPPER()
	RET()
}

// wideOuter is where outerWide512 stands. K1 is the lanes of a row's last numbers.
type wideOuter struct {
	a                                 GPPhysical
	b                                 [3]GPPhysical // rows
	c, arow, brow, rows, left, n, tmp GPPhysical
	ahead                             lanes.Across
}

// one is number j of row r of A, repeated.
func (w wideOuter) one(r, j int) VecPhysical { return avx512.vec[8*r+j] }

// each does something for each column of A.
func (w wideOuter) each(name string, do func(j int)) {
	for j := range 8 {
		do(j)
		if j < 7 {
			CMPQ(w.left, Imm(uint64(j+1)))
			JEQ(LabelRef(name))
		}
	}
	Label(name)
}

// group adds so many rows at a time, while there are as many.
func (w wideOuter) group(height int, after string) {
	name := fmt.Sprintf("rows%d", height)
	Label(name)
	CMPQ(w.rows, Imm(uint64(height)))
	JLT(LabelRef(after))
	w.start(name, height)
	frame.Get(fieldOuterWideC, w.c)
	frame.Get(fieldOuterWideCols, w.n)
	SHRQ(Imm(4), w.n)
	JEQ(LabelRef(name + "last"))
	Label(name + "vector")
	w.step(name+"sums", height, func(m Mem, to VecPhysical) { VMOVUPS(m, to) })
	for r := range height {
		ADDQ(Imm(64), w.b[r])
	}
	ADDQ(U32(512), w.c)
	DECQ(w.n)
	JNZ(LabelRef(name + "vector"))
	Label(name + "last")
	KTESTW(K1, K1)
	JEQ(LabelRef(name + "end"))
	w.step(name+"lastsums", height, func(m Mem, to VecPhysical) { VMOVUPS_Z(m, K1, to) })
	Label(name + "end")
	// The next row lies below the last, whose numbers are passed but for some.
	frame.Get(fieldOuterWideCols, w.n)
	ANDQ(I8(-16), w.n)
	SHLQ(Imm(2), w.n)
	SUBQ(w.n, w.b[height-1])
	LEAQ(Mem{Base: w.b[height-1], Index: w.brow, Scale: 1}, w.b[0])
	SUBQ(Imm(uint64(height)), w.rows)
	JMP(LabelRef(name))
	Label(after)
}

// start loads the numbers of A of a group's rows, and finds those of B.
func (w wideOuter) start(name string, height int) {
	for r := range height {
		PREFETCHT0(Mem{Base: w.a, Disp: outerAhead})
		w.each(fmt.Sprintf("%sone%d", name, r), func(j int) { VBROADCASTSS(Mem{Base: w.a, Disp: 4 * j}, w.one(r, j)) })
		ADDQ(w.arow, w.a)
	}
	for r := 1; r < height; r++ {
		LEAQ(Mem{Base: w.b[r-1], Index: w.brow, Scale: 1}, w.b[r])
	}
	MOVQ(w.b[0], w.n)
	ADDQ(frame.Field(fieldOuterWideLead), w.n)
	w.ahead.Until(w.n, w.tmp)
}

// step adds a vector of each row to the sums.
func (w wideOuter) step(name string, height int, load func(m Mem, to VecPhysical)) {
	x, sum := avx512.vec[24:27], avx512.vec[27:32]
	for r := range height {
		load(Mem{Base: w.b[r]}, x[r])
	}
	w.ahead.Four(func(m Op) { PREFETCHT0(m) }, name+"asked")
	Label(name + "asked")
	w.each(name, func(j int) {
		s, m := sum[j%len(sum)], Mem{Base: w.c, Disp: 64 * j}
		VMOVUPS(m, s)
		for r := range height {
			VFMADD231PS(x[r], w.one(r, j), s)
		}
		VMOVUPS(s, m)
	})
}
