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
	u := unitsOf32{tiles: tiles, few: few, a: RSI, b: RDI, c: R8, room: R9, made: R10, takeA: R11, takeB: R12, crow: R13,
		pitch: R15, line: RCX}
	units, started := R14, RBX
	u.masks()
	frame.First(u.a, u.b, u.c, u.room, units, u.takeA, u.takeB, u.crow)
	LEAQ(Mem{Base: u.room, Disp: outerUnit}, u.made)
	MOVQ(U32(uint32(u.rowB())), u.pitch)
	MOVQ(U32(64), u.line)
	XORQ(started, started)
	u.start()

	Label("unit")
	u.turn()
	if few {
		u.pairFours()
	} else {
		u.pair()
	}
	TESTQ(started, started)
	JEQ(LabelRef("made"))
	u.multiply()
	Label("made")
	MOVQ(u.line, started)
	XCHGQ(u.room, u.made)
	DECQ(units)
	JNZ(LabelRef("unit"))
	u.multiply()
	for j := range tiles {
		storeTileAt(j, u.c, u.crow, 64*j)
	}
	end()
}

// unitsOf32 is where outer16 stands: a unit is made in a room, and another was made before.
type unitsOf32 struct {
	tiles                   int
	few                     bool
	a, b, takeA, takeB      GPPhysical
	c, crow                 GPPhysical
	room, made, pitch, line GPPhysical
}

// rowB is how many bytes a row of pairs of B takes.
func (u unitsOf32) rowB() int {
	if u.few {
		return 32
	}
	return 64 * u.tiles
}

// masks: K1 and K2 are of A, K3 and K4 of B, whose orders are Z31 and Z30.
func (u unitsOf32) masks() {
	KMOVD(frame.Field(outerTakenA), K1)
	KMOVD(frame.Field(outerKeptA), K2)
	VMOVDQU16(frame.Field(outerOrderA), Z31)
	if u.few {
		KMOVD(frame.Field(outerTakenB), K3)
		KMOVD(frame.Field(outerKeptB), K4)
		VMOVDQU16(frame.Field(outerOrderB), Z30)
		return
	}
	MOVQ(I32(-1), RDX)
	KMOVW(EDX, K3)
	KMOVW(frame.Field(outerLast), K4)
}

// start fills the tiles of sums.
func (u unitsOf32) start() {
	CMPQ(frame.Field(outerAdd), Imm(0))
	JEQ(LabelRef("zero"))
	for j := range u.tiles {
		loadTileAt(j, u.c, u.crow, 64*j)
	}
	JMP(LabelRef("unit"))
	Label("zero")
	for j := range u.tiles {
		zeroTile(j)
	}
}

// turn makes a unit of A.
func (u unitsOf32) turn() {
	for q := range 8 {
		takeFour(u.a, K1, K2, Z31, zmm(q), u.takeA)
	}
	for i, row := range transposePairs() {
		VMOVUPS(row, Mem{Base: u.room, Disp: outerUnitB + 64*i})
	}
}

// takeFour takes four rows of few columns, and puts their words in order.
func takeFour(from GPPhysical, taken, kept OpmaskPhysical, order, to VecPhysical, bytes Op) {
	PREFETCHT0(Mem{Base: from, Disp: packAhead})
	VMOVDQU16_Z(Mem{Base: from}, taken, to)
	VPERMW_Z(to, order, kept, to)
	ADDQ(bytes, from)
}

// pair makes a unit of B, and pairFours one of few columns.
func (u unitsOf32) pair() {
	for pair := range 16 {
		for j := range u.tiles {
			mask := K3
			if j == u.tiles-1 {
				mask = K4
			}
			PREFETCHT0(Mem{Base: u.b, Disp: packAhead + 64*j})
			z := zmm(2 * (3*pair + j) % 16)
			words(Mem{Base: u.b, Disp: 32 * j}, Mem{Base: u.b, Index: u.takeB, Scale: 1, Disp: 32 * j}, mask, z, zmm(16+2*(3*pair+j)%14))
			VMOVUPS(z, Mem{Base: u.room, Disp: u.rowB()*pair + 64*j})
		}
		LEAQ(Mem{Base: u.b, Index: u.takeB, Scale: 2}, u.b)
	}
}

func (u unitsOf32) pairFours() {
	for q := range 8 {
		PREFETCHT0(Mem{Base: u.b, Disp: packAhead})
		VMOVDQU16_Z(Mem{Base: u.b}, K3, zmm(q))
		VPERMW_Z(zmm(q), Z30, K4, zmm(q))
		VMOVUPS(zmm(q), Mem{Base: u.room, Disp: 64 * q})
		ADDQ(u.takeB, u.b)
	}
}

// multiply adds the unit that was made before.
func (u unitsOf32) multiply() {
	LEAQ(Mem{Base: u.made, Disp: outerUnitB}, RDX)
	loadTile(4, RDX, u.line)
	for j := range u.tiles {
		loadTileAt(8-u.tiles+j, u.made, u.pitch, 64*j)
		multiply(j, 4, 8-u.tiles+j)
	}
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
