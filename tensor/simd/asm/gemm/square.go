package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of simd.Square.
const (
	fieldSquareA = 8 * iota
	fieldSquareB
	fieldSquareC
	fieldSquareRoom
	fieldSquareARow
	fieldSquareDepth
	fieldSquareUnits
	fieldSquareCols
)

// squareAhead is how many bytes ahead rows are asked for.
const squareAhead = 4 << 10

// square512: sixteen rows at a time to a room, eight by eight; meanwhile those before leave it line by line. Sums of a row
// are three vectors. With half, the third has up to eight columns: numbers of A come two at a time, beside two of B's last
// columns in turn, and sums of both are added up at the end.
func square512(half bool) {
	name, wide := "square512by48", 3
	if half {
		name, wide = "square512by40", 2
	}
	TEXT(name, NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	at := func(off int) Mem { return Mem{Base: t, Disp: off} }
	a, low, c, row, row3, crow, depth := RSI, RDI, R8, R9, R10, R11, R13
	room, from, to, b, n, ask := R12, R14, R15, RDX, RCX, RBX
	sum := func(r, v int) VecPhysical { return avx512.vec[3*r+v] }
	x, one, two, line := avx512.vec[24:27], avx512.vec[27:29], avx512.vec[29], avx512.vec[30]
	local := AllocLocal(16)
	next, units := local, local.Offset(8)

	MOVQ(at(fieldSquareCols), n)
	MOVQ(n, crow)
	SHLQ(Imm(2), crow)
	SUBQ(Imm(32), n)
	MOVQ(I32(-1), b)
	BZHIQ(n, b, b)
	KMOVW(b.As32(), K1) // the last columns
	MOVQ(at(fieldSquareRoom), room)
	MOVQ(at(fieldSquareARow), row)
	LEAQ(Mem{Base: row, Index: row, Scale: 2}, row3)
	MOVQ(at(fieldSquareDepth), depth)
	MOVQ(at(fieldSquareA), a)
	MOVQ(a, next)
	MOVQ(at(fieldSquareUnits), n)
	MOVQ(n, units)
	XORQ(to, to)
	if half {
		VMOVUPS(outerOrder("squareRows", func(i int) int { return i%8/2*4 + i%2 + i/8*2 }), Z31)
	}

	lines := func(name string) { linesPast(name, from, to, n, line) }
	number := func(r int) Mem {
		m := Mem{Base: []GPPhysical{a, low}[r/4]}
		switch r % 4 {
		case 1, 2:
			m.Index, m.Scale = row, uint8(r%4)
		case 3:
			m.Index, m.Scale = row3, 1
		}
		return m
	}
	// step is a number of each row, i behind the first.
	step := func(i int) {
		for v := range wide {
			VMOVUPS(Mem{Base: b, Disp: 64 * (wide*i + v)}, x[v])
		}
		for r := range 8 {
			m := number(r)
			m.Disp = 4 * i
			VBROADCASTSS(m, one[r%2])
			for v := range wide {
				VFMADD231PS(x[v], one[r%2], sum(r, v))
			}
		}
	}
	advance := func(numbers, vectors int) {
		ADDQ(Imm(uint64(4*numbers)), a)
		ADDQ(Imm(uint64(4*numbers)), low)
		ADDQ(U32(uint32(64*vectors)), b)
		PREFETCHT0(Mem{Base: ask})
		ADDQ(Imm(uint64(32*numbers)), ask)
	}
	group := func(name string) {
		MOVQ(next, a)
		LEAQ(Mem{Base: a, Index: row, Scale: 4}, low)
		LEAQ(Mem{Base: low, Index: row, Scale: 4}, n)
		MOVQ(n, next)
		LEAQ(Mem{Base: a, Disp: squareAhead}, ask)
		MOVQ(at(fieldSquareB), b)
		for r := range 8 {
			for v := range 3 {
				VPXORD(sum(r, v), sum(r, v), sum(r, v))
			}
		}
		MOVQ(depth, n)
		Label(name)
		step(0)
		if half {
			step(1)
			VMOVUPS(Mem{Base: b, Disp: 256}, x[2])
			for r := range 8 {
				VBROADCASTF32X2(number(r), two)
				VFMADD231PS(x[2], two, sum(r, 2))
			}
			advance(2, 5)
			SUBQ(Imm(2), n)
		} else {
			advance(1, 3)
			DECQ(n)
		}
		JNZ(LabelRef(name))
		for r := range 8 {
			VMOVUPS(sum(r, 0), Mem{Base: c})
			VMOVUPS(sum(r, 1), Mem{Base: c, Disp: 64})
			switch {
			case !half:
				VMOVUPS(sum(r, 2), K1, Mem{Base: c, Disp: 128})
			case r%2 == 0:
				VSHUFPS(Imm(0x88), sum(r+1, 2), sum(r, 2), x[0])
				VSHUFPS(Imm(0xdd), sum(r+1, 2), sum(r, 2), x[1])
				VADDPS(x[1], x[0], x[0])
				VPERMPS(x[0], Z31, x[0])
				VMOVUPS(x[0].AsY(), K1, Mem{Base: c, Disp: 128})
			default:
				VEXTRACTF32X8(Imm(1), x[0], x[0].AsY())
				VMOVUPS(x[0].AsY(), K1, Mem{Base: c, Disp: 128})
			}
			ADDQ(crow, c)
		}
		MOVQ(at(fieldSquareCols), n)
	}

	Label("unit")
	MOVQ(room, c)
	group("upper")
	SHRQ(Imm(1), n)
	lines("upperLines")
	group("lower")
	MOVQ(n, b)
	SHRQ(Imm(1), b)
	SUBQ(b, n)
	lines("lowerLines")
	TESTQ(to, to)
	JNE(LabelRef("begun"))
	MOVQ(at(fieldSquareC), to)
	Label("begun")
	MOVQ(room, from)
	// The other half of the room.
	MOVQ(crow, b)
	SHLQ(Imm(4), b)
	MOVQ(at(fieldSquareRoom), n)
	ADDQ(n, b)
	CMPQ(room, n)
	MOVQ(n, room)
	CMOVQEQ(b, room)
	SUBQ(Imm(1), units)
	JNZ(LabelRef("unit"))
	MOVQ(at(fieldSquareCols), n)
	lines("last")
	VZEROUPPER()
	RET()
}
