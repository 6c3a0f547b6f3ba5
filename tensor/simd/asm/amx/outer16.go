package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// Offsets of the fields of simd.Outer16.
const (
	outerA = 8 * iota
	outerB
	outerC
	outerRoom
	outerUnits
	outerTakeA
	outerTakeB
	outerCRow
	outerAdd
	outerTakenA
	outerKeptA
	outerTakenB
	outerKeptB
	outerLast
	outerOrderA
	outerOrderB = outerOrderA + 64
	outerConfig = outerOrderB + 64
)

// A unit of B as tiles read it, and of A behind it. There is room for two: while one is made the other is read.
const (
	outerUnitB = 16 * 3 * 64
	outerUnit  = outerUnitB + 8*64
)

// outer16 goes over units of 32 rows: eight columns of A are turned, up to three tiles' columns of B paired. Sums stay in
// tiles to the end. With few, up to eight columns of B, rows of both come four at a time.
func outer16(tiles int, few bool) {
	name := fmt.Sprintf("outer16By%d", tiles)
	if few {
		name = "outer16Few"
	}
	begin(name, frame.Field(outerConfig))
	a, b, c, room, made := RSI, RDI, R8, R9, R10
	takeA, takeB, crow, units, pitch, line, started := R11, R12, R13, R14, R15, RCX, RBX

	KMOVD(frame.Field(outerTakenA), K1)
	KMOVD(frame.Field(outerKeptA), K2)
	VMOVDQU16(frame.Field(outerOrderA), Z31)
	rowB := 64 * tiles
	if few {
		rowB = 32
		KMOVD(frame.Field(outerTakenB), K3)
		KMOVD(frame.Field(outerKeptB), K4)
		VMOVDQU16(frame.Field(outerOrderB), Z30)
	} else {
		MOVQ(I32(-1), RDX)
		KMOVW(EDX, K3)
		KMOVW(frame.Field(outerLast), K4)
	}
	frame.First(a, b, c, room, units, takeA, takeB, crow)
	LEAQ(Mem{Base: room, Disp: outerUnit}, made)
	MOVQ(U32(uint32(rowB)), pitch)
	MOVQ(U32(64), line)
	XORQ(started, started)
	CMPQ(frame.Field(outerAdd), Imm(0))
	JEQ(LabelRef("zero"))
	for j := range tiles {
		loadTileAt(j, c, crow, 64*j)
	}
	JMP(LabelRef("unit"))
	Label("zero")
	for j := range tiles {
		zeroTile(j)
	}
	multiplyAll := func() {
		LEAQ(Mem{Base: made, Disp: outerUnitB}, RDX)
		loadTile(4, RDX, line)
		for j := range tiles {
			loadTileAt(8-tiles+j, made, pitch, 64*j)
			multiply(j, 4, 8-tiles+j)
		}
	}

	Label("unit")
	for q := range 8 {
		PREFETCHT0(Mem{Base: a, Disp: packAhead})
		VMOVDQU16_Z(Mem{Base: a}, K1, zmm(q))
		VPERMW_Z(zmm(q), Z31, K2, zmm(q))
		ADDQ(takeA, a)
	}
	for i, row := range transposePairs() {
		VMOVUPS(row, Mem{Base: room, Disp: outerUnitB + 64*i})
	}
	if few {
		for q := range 8 {
			PREFETCHT0(Mem{Base: b, Disp: packAhead})
			VMOVDQU16_Z(Mem{Base: b}, K3, zmm(q))
			VPERMW_Z(zmm(q), Z30, K4, zmm(q))
			VMOVUPS(zmm(q), Mem{Base: room, Disp: 64 * q})
			ADDQ(takeB, b)
		}
	} else {
		for pair := range 16 {
			for j := range tiles {
				mask := K3
				if j == tiles-1 {
					mask = K4
				}
				PREFETCHT0(Mem{Base: b, Disp: packAhead + 64*j})
				z := zmm(2 * (3*pair + j) % 16)
				words(Mem{Base: b, Disp: 32 * j}, Mem{Base: b, Index: takeB, Scale: 1, Disp: 32 * j}, mask, z, zmm(16+2*(3*pair+j)%14))
				VMOVUPS(z, Mem{Base: room, Disp: rowB*pair + 64*j})
			}
			LEAQ(Mem{Base: b, Index: takeB, Scale: 2}, b)
		}
	}
	TESTQ(started, started)
	JEQ(LabelRef("made"))
	multiplyAll()
	Label("made")
	MOVQ(line, started)
	XCHGQ(room, made)
	DECQ(units)
	JNZ(LabelRef("unit"))
	multiplyAll()
	for j := range tiles {
		storeTileAt(j, c, crow, 64*j)
	}
	end()
}

// transposePairs turns the 8 x 8 pairs of double words in Z0-Z7 round and says in which register each row is.
func transposePairs() (out [8]VecPhysical) {
	for i := 0; i < 8; i += 2 {
		VPUNPCKLQDQ(zmm(i+1), zmm(i), zmm(8+i))
		VPUNPCKHQDQ(zmm(i+1), zmm(i), zmm(9+i))
	}
	for odd := range 2 {
		r := func(i int) VecPhysical { return zmm(8 + 2*i + odd) }
		u := func(i int) VecPhysical { return zmm(16 + 4*odd + i) }
		for i, lanes := range []uint64{0x44, 0xee} {
			VSHUFI32X4(Imm(lanes), r(1), r(0), u(2*i))
			VSHUFI32X4(Imm(lanes), r(3), r(2), u(2*i+1))
		}
		for l := range 4 {
			to := zmm(2*l + odd)
			VSHUFI32X4(Imm([]uint64{0x88, 0xdd}[l&1]), u(l&2+1), u(l&2), to)
			out[2*l+odd] = to
		}
	}
	return out
}
