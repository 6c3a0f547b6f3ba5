package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
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
	frame.Begin("fan512")
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
		CMPQ(rows, Imm(uint64(height)))
		JLT(LabelRef(after))
		LEAQ(Mem{Base: a, Index: row, Scale: 4}, low)
		fanSums(name, sums[:height], b, a, low, row, row3, depth)
		// What is not added to is not read: it would wait for the row before, just stored beside it.
		CMPQ(frame.Field(fieldFanAdd), Imm(0))
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

// fanSums: rows from a on, and from low on the fifth, which lie row bytes apart, times as many of B as they have numbers.
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
			CMPQ(depth, Imm(uint64(k+1)))
			JEQ(LabelRef(name + "sums"))
		}
	}
	Label(name + "sums")
}

// Offsets of the fields of simd.FanPast.
const (
	fieldPastA = 8 * iota
	fieldPastB
	fieldPastC
	fieldPastRoom
	fieldPastARow
	fieldPastDepth
	fieldPastUnits
	fieldPastCols
)

// fanPastAhead is how many bytes ahead rows are asked for.
const fanPastAhead = 8 << 10

// fanPast512: sixteen rows at a time, sixteen columns at a time, to a room; meanwhile those before leave it line by line.
// Of sixteen rows there are as many lines as columns.
func fanPast512() {
	frame.Begin("fanPast512")
	a, low, c, row, row3, crow, depth, tmp := RSI, RDI, R8, R9, R10, R11, R13, RBX
	room, from, to, left, b, n := R12, R14, R15, RCX, RDX, tmp
	sums, weights, line := avx512.vec[:8], avx512.vec[16:], avx512.vec[8]
	var units, made, next, panel Mem
	frame.Locals(&units, &made, &next, &panel)
	frame.Get(fieldPastRoom, room)
	frame.Get(fieldPastCols, crow)
	SHLQ(Imm(2), crow)
	MOVQ(crow, tmp)
	SHLQ(Imm(4), tmp)
	ADDQ(room, tmp)
	MOVQ(tmp, made)
	frame.Keep(fieldPastUnits, tmp, units)
	frame.Keep(fieldPastA, tmp, next)
	frame.Get(fieldPastARow, row)
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
	frame.Get(fieldPastDepth, depth)
	XORQ(to, to)

	lines := func(name string) { linesPast(name, from, to, n, line) }

	Label("unit")
	MOVQ(made, from)
	MOVQ(next, a)
	MOVQ(row, n)
	SHLQ(Imm(4), n)
	Label("ask")
	PREFETCHT0(Mem{Base: a, Disp: fanPastAhead})
	ADDQ(Imm(64), a)
	SUBQ(Imm(64), n)
	JG(LabelRef("ask"))
	frame.Get(fieldPastB, b)
	frame.Get(fieldPastCols, left)
	MOVQ(room, panel)
	Label("panel")
	MOVQ(U32(16), n) // at most: BZHI looks at a byte of it, in which 256 columns are none
	CMPQ(left, n)
	CMOVQLT(left, n)
	MOVQ(I32(-1), low)
	BZHIQ(n, low, low)
	KMOVW(low.As32(), K1)
	for k := range 16 {
		VMOVUPS(Mem{Base: b, Disp: 64 * k}, weights[k])
	}
	MOVQ(next, a)
	MOVQ(panel, c)
	for half := range 2 {
		LEAQ(Mem{Base: a, Index: row, Scale: 4}, low)
		fanSums(fmt.Sprintf("half%d", half), sums, weights, a, low, row, row3, depth)
		for _, s := range sums {
			VMOVUPS(s, K1, Mem{Base: c})
			ADDQ(crow, c)
		}
		LEAQ(Mem{Base: low, Index: row, Scale: 4}, a)
	}
	lines("line")
	ADDQ(Imm(64), panel)
	ADDQ(U32(1024), b)
	SUBQ(Imm(16), left)
	JG(LabelRef("panel"))
	MOVQ(a, next)
	TESTQ(to, to)
	JNE(LabelRef("begun"))
	frame.Get(fieldPastC, to)
	Label("begun")
	MOVQ(made, tmp)
	MOVQ(room, made)
	MOVQ(tmp, room)
	SUBQ(Imm(1), units)
	JNZ(LabelRef("unit"))
	MOVQ(made, from)
	frame.Get(fieldPastCols, n)
	lines("last")
	VZEROUPPER()
	RET()
}

// linesPast moves n lines past the caches, unless to is nil.
func linesPast(name string, from, to, n GPPhysical, line VecPhysical) {
	TESTQ(to, to)
	JEQ(LabelRef(name + "none"))
	Label(name)
	VMOVUPS(Mem{Base: from}, line)
	VMOVNTPS(line, Mem{Base: to})
	ADDQ(Imm(64), from)
	ADDQ(Imm(64), to)
	DECQ(n)
	JNZ(LabelRef(name))
	Label(name + "none")
}
