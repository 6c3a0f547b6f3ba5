package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of simd.Fan.
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

// fan512: all of B, up to sixteen rows of a vector, stays in registers. Eight rows of A at a time, then one: each number
// is multiplied with its row of B.
func fan512() {
	TEXT("fan512", NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	at := func(off int) Mem { return Mem{Base: t, Disp: off} }
	a, low, c, row, row3, crow, rows, depth, tmp := RSI, RDI, R8, R9, R10, R11, R12, R13, RBX
	sums, b := avx512.vec[:8], avx512.vec[16:]

	MOVQ(at(fieldFanCols), RCX)
	MOVQ(I32(-1), tmp)
	BZHIQ(RCX, tmp, tmp)
	KMOVW(tmp.As32(), K1) // columns of C
	MOVQ(at(fieldFanB), tmp)
	for k := range 16 {
		VMOVUPS(Mem{Base: tmp, Disp: 64 * k}, b[k])
	}
	MOVQ(at(fieldFanA), a)
	MOVQ(at(fieldFanC), c)
	MOVQ(at(fieldFanARow), row)
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
	MOVQ(at(fieldFanCRow), crow)
	MOVQ(at(fieldFanRows), rows)
	MOVQ(at(fieldFanDepth), depth)

	group := func(height int, after string) {
		name := fmt.Sprintf("rows%d", height)
		Label(name)
		CMPQ(rows, Imm(uint64(height)))
		JLT(LabelRef(after))
		LEAQ(Mem{Base: a, Index: row, Scale: 4}, low)
		for r := range height {
			VPXORD(sums[r], sums[r], sums[r])
		}
		for k := range 16 {
			for r := range height {
				m := Mem{Base: []GPPhysical{a, low}[r/4], Disp: 4 * k}
				switch r % 4 {
				case 1, 2:
					m.Index, m.Scale = row, uint8(r%4)
				case 3:
					m.Index, m.Scale = row3, 1
				}
				VFMADD231PS_BCST(m, b[k], sums[r])
			}
			if k < 15 {
				CMPQ(depth, Imm(uint64(k+1)))
				JEQ(LabelRef(name + "sums"))
			}
		}
		Label(name + "sums")
		// What is not added to is not read: it would wait for the row before, just stored beside it.
		CMPQ(at(fieldFanAdd), Imm(0))
		JEQ(LabelRef(name + "write"))
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
	VZEROUPPER()
	RET()
}
