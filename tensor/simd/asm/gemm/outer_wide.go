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
	const tall = 3
	one := func(r, j int) VecPhysical { return avx512.vec[8*r+j] }
	x, sum := avx512.vec[24:27], avx512.vec[27:32]
	a, b, c, arow, brow, rows, left := RSI, [tall]GPPhysical{RDI, R8, R9}, R10, R11, R12, R13, RDX
	n, tmp := R15, RBX
	ahead := lanes.Across{Next: R14, End: frame.Field(fieldOuterWideEnd)}

	frame.Get(fieldOuterWideCols, RCX)
	ANDQ(Imm(15), RCX)
	MOVQ(I32(-1), tmp)
	BZHIQ(RCX, tmp, tmp)
	KMOVW(tmp.As32(), K1) // lanes of a row's last numbers
	frame.Get(fieldOuterWideA, a)
	frame.Get(fieldOuterWideB, b[0])
	frame.Get(fieldOuterWideARow, arow)
	frame.Get(fieldOuterWideBRow, brow)
	frame.Get(fieldOuterWideRows, rows)
	frame.Get(fieldOuterWideLeft, left)
	frame.Get(fieldOuterWideFrom, ahead.Next)

	each := func(name string, do func(j int)) {
		for j := range 8 {
			do(j)
			if j < 7 {
				CMPQ(left, Imm(uint64(j+1)))
				JEQ(LabelRef(name))
			}
		}
		Label(name)
	}
	group := func(height int, after string) {
		name := fmt.Sprintf("rows%d", height)
		Label(name)
		CMPQ(rows, Imm(uint64(height)))
		JLT(LabelRef(after))
		for r := range height {
			PREFETCHT0(Mem{Base: a, Disp: outerAhead})
			each(fmt.Sprintf("%sone%d", name, r), func(j int) { VBROADCASTSS(Mem{Base: a, Disp: 4 * j}, one(r, j)) })
			ADDQ(arow, a)
		}
		for r := 1; r < height; r++ {
			LEAQ(Mem{Base: b[r-1], Index: brow, Scale: 1}, b[r])
		}
		MOVQ(b[0], n)
		ADDQ(frame.Field(fieldOuterWideLead), n)
		ahead.Until(n, tmp)
		step := func(name string, load func(m Mem, to VecPhysical)) {
			for r := range height {
				load(Mem{Base: b[r]}, x[r])
			}
			ahead.Four(func(m Op) { PREFETCHT0(m) }, name+"asked")
			Label(name + "asked")
			each(name, func(j int) {
				s, m := sum[j%len(sum)], Mem{Base: c, Disp: 64 * j}
				VMOVUPS(m, s)
				for r := range height {
					VFMADD231PS(x[r], one(r, j), s)
				}
				VMOVUPS(s, m)
			})
		}
		frame.Get(fieldOuterWideC, c)
		frame.Get(fieldOuterWideCols, n)
		SHRQ(Imm(4), n)
		JEQ(LabelRef(name + "last"))
		Label(name + "vector")
		step(name+"sums", func(m Mem, to VecPhysical) { VMOVUPS(m, to) })
		for r := range height {
			ADDQ(Imm(64), b[r])
		}
		ADDQ(U32(512), c)
		DECQ(n)
		JNZ(LabelRef(name + "vector"))
		Label(name + "last")
		KTESTW(K1, K1)
		JEQ(LabelRef(name + "end"))
		step(name+"lastsums", func(m Mem, to VecPhysical) { VMOVUPS_Z(m, K1, to) })
		Label(name + "end")
		// The next row lies below the last, whose numbers are passed but for some.
		frame.Get(fieldOuterWideCols, n)
		ANDQ(I8(-16), n)
		SHLQ(Imm(2), n)
		SUBQ(n, b[height-1])
		LEAQ(Mem{Base: b[height-1], Index: brow, Scale: 1}, b[0])
		SUBQ(Imm(uint64(height)), rows)
		JMP(LabelRef(name))
		Label(after)
	}
	group(tall, "single")
	group(1, "end")
	VZEROUPPER()
	RET()
}
