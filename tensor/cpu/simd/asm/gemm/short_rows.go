package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// Offsets of the fields of simd.ShortRows.
const (
	fieldFanA = 8 * iota
	fieldFanB
	fieldFanC
	fieldFanARow
	fieldFanCRow
	fieldFanDepth
	fieldFanRows
	fieldFanCols
	fieldFanAdd
)

// shortRows512: all of B, up to sixteen rows of a vector, stays in registers. Eight rows of A
// at a time, then one: each number
// is multiplied with its row of B.
func shortRows512() {
	frame.Begin("shortRows512")
	a, low, c, row, row3, crow, rows, depth, tmp := RSI, RDI, R8, R9, R10, R11, R12, R13, RBX
	sums, b := avx512.vec[:8], avx512.vec[16:]

	frame.Get(fieldFanCols, RCX)
	MOVQ(I32(-1), tmp)
	BZHIQ(RCX, tmp, tmp)
	KMOVW(tmp.As32(), K1) // columns of C
	frame.Get(fieldFanB, tmp)
	for k := range 16 {
		VMOVUPS(Mem{Base: tmp, Disp: 64 * k}, b[k])
	}
	frame.Get(fieldFanA, a)
	frame.Get(fieldFanC, c)
	frame.Get(fieldFanARow, row)
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
	frame.Get(fieldFanCRow, crow)
	frame.Get(fieldFanRows, rows)
	frame.Get(fieldFanDepth, depth)

	group := func(height int, after string) {
		name := fmt.Sprintf("rows%d", height)
		Label(name)
		frame.Compare(rows, Imm(uint64(height)), JLT, after)
		LEAQ(Mem{Base: a, Index: row, Scale: 4}, low)
		fanSums(name, sums[:height], b, a, low, row, row3, depth)
		// What is not added to is not read: it would wait for the row before, just stored beside it.
		frame.Compare(frame.Field(fieldFanAdd), Imm(0), JEQ, name+"write")
		MOVQ(c, tmp)
		for r := range height {
			VADDPS(Mem{Base: tmp}, sums[r], K1, sums[r])
			ADDQ(crow, tmp)
		}
		Label(name + "write")
		for r := range height {
			VMOVUPS(sums[r], K1, Mem{Base: c})
			ADDQ(crow, c)
		}
		if height == 8 {
			LEAQ(Mem{Base: low, Index: row, Scale: 4}, a)
		} else {
			ADDQ(row, a)
		}
		SUBQ(Imm(uint64(height)), rows)
		JMP(LabelRef(name))
		Label(after)
	}
	group(8, "single")
	group(1, "end")
	frame.End()
}

// fanSums: rows from a on, and from low on the fifth, which lie row bytes apart, times as many
// of B as they have numbers.
func fanSums(name string, sums, b []VecPhysical, a, low, row, row3, depth GPPhysical) {
	for _, s := range sums {
		VPXORD(s, s, s)
	}
	for k := range 16 {
		for r, s := range sums {
			m := Mem{Base: []GPPhysical{a, low}[r/4], Disp: 4 * k}
			switch r % 4 {
			case 1, 2:
				m.Index, m.Scale = row, uint8(r%4)
			case 3:
				m.Index, m.Scale = row3, 1
			}
			VFMADD231PS_BCST(m, b[k], s)
		}
		if k < 15 {
			frame.Compare(depth, Imm(uint64(k+1)), JEQ, name+"sums")
		}
	}
	Label(name + "sums")
}
