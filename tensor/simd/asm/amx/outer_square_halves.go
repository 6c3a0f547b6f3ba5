package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// Offsets of the fields of simd.OuterSquareHalves that are not simd.OuterSquare16's.
const (
	halvedScaleA = squareConfig + 64 + 8*iota
	halvedBackA
	halvedScaleB
	halvedBackB
	halvedLeft
	halvedSpoilt
	halvedStrip = squareStrips // columns of A
)

// The room has a unit of A, a line each column, of upper halves and then of lower ones, two units of B, tiles of either,
// and 48 rows of sums.
const (
	halvedLower  = 3 * tileBytes
	halvedUnit   = 2 * halvedLower
	halvedSums   = 3 * halvedUnit
	halvedSumRow = 3 * 64
)

// outerSquareHalves goes over units of 32 rows: B is halved in pairs of rows, and A, turned round, in strips of columns.
// Tile instructions are spread over that: a strip is multiplied while the next one is halved, the last one while B is. All
// at once they would wait for each other, and the rest for them. All the while rows to come are asked for.
func outerSquareHalves() {
	begin("outerSquareHalves", frame.Field(squareConfig))
	h := newHalvedUnits()
	Label("unit")
	h.askUntil()
	h.pair()
	h.turn()
	h.askRest()
	DECQ(h.left)
	JNZ(LabelRef("unit"))
	h.toMultiply()
	for round := range 3 {
		h.multiply(round)
	}
	h.store()
	releaseTiles()
	h.check()
	JNE(LabelRef("end"))
	h.add()
	Label("end")
	VZEROUPPER()
	RET()
}

// halvedUnits is where outerSquareHalves stands.
type halvedUnits struct {
	squareSlices
	sumRow        GPPhysical // bytes
	c             GPPhysical // sums of the strip that is multiplied
	stripA, unitB GPPhysical // its halves, and those of B
	scaleB        []VecPhysical
	strip, right  Mem // what stripA and unitB are
	round         Mem // of the strip's products, or 3 after the last
	sums          Mem // where the sums in tiles belong
	end           Mem // of the strip that is turned
}

func newHalvedUnits() halvedUnits {
	h := halvedUnits{squareSlices: newSquareSlices(3), sumRow: R15, c: RBP, stripA: R12, unitB: RBX, scaleB: []VecPhysical{Z28, Z29, Z30}}
	frame.Locals(&h.strip, &h.right, &h.round, &h.sums, &h.end)
	VMOVUPS(NewDataAddr(Symbol{Name: "sideBySide", Static: true}, 0), sideBySide)
	frame.Get(halvedScaleB, h.tmp)
	for j, s := range h.scaleB {
		VMOVUPS(Mem{Base: h.tmp, Disp: 64 * j}, s)
	}
	VPXORD(Z0, Z0, Z0)
	h.eachRow("zero", U32(48), func(sum func(j int) Mem) {
		for j := range 3 {
			VMOVUPS(Z0, sum(j))
		}
	})
	MOVQ(U32(halvedSumRow), h.sumRow)
	// At first there is nothing to multiply, and tiles are zeros, as any sums are.
	MOVQ(U32(3), h.round)
	MOVQ(U32(0), h.right)
	frame.Get(squareRoom, h.tmp)
	ADDQ(U32(halvedSums), h.tmp)
	MOVQ(h.tmp, h.sums)
	return h
}

// eachRow does something with each of so many rows of sums.
func (h halvedUnits) eachRow(name string, rows Op, do func(sum func(j int) Mem)) {
	frame.Get(squareRoom, h.tmp)
	MOVQ(rows, h.n)
	Label(name)
	do(func(j int) Mem { return Mem{Base: h.tmp, Disp: halvedSums + 64*j} })
	ADDQ(U32(halvedSumRow), h.tmp)
	DECQ(h.n)
	JNZ(LabelRef(name))
}

// pair halves 32 rows of B, in pairs, where the unit before is not, which may be multiplied yet.
func (h halvedUnits) pair() {
	to, pairs := h.toA, R14
	frame.Get(squareRoom, h.tmp)
	LEAQ(Mem{Base: h.tmp, Disp: halvedUnit}, to)
	ADDQ(U32(2*halvedUnit), h.tmp)
	CMPQ(to, h.right)
	CMOVQEQ(h.tmp, to)
	MOVQ(U32(8), pairs)
	Label("pairs")
	h.ask()
	for r := range 2 {
		for j, scale := range h.scaleB {
			mask := []OpmaskPhysical{K4, K4, K5}[j]
			at := tileBytes*j + 64*r
			inOrder(halvePair(Mem{Base: h.b, Disp: 64 * j}, Mem{Base: h.b, Index: h.brow, Scale: 1, Disp: 64 * j}, mask, mask, scale,
				Mem{Base: to, Disp: at}, Mem{Base: to, Disp: halvedLower + at}, zmms[(3*r+j)%4*6:]))
		}
		LEAQ(Mem{Base: h.b, Index: h.brow, Scale: 2}, h.b)
	}
	h.multiplySome("pairs")
	ADDQ(U32(128), to)
	DECQ(pairs)
	JNZ(LabelRef("pairs"))
	SUBQ(U32(tileBytes), to)
	MOVQ(to, h.right)
}

// turn turns 32 rows of A round and halves them, four columns at a time, strip after strip, and goes on to the next unit.
// The last four columns end with a row, and may be some of those before.
func (h halvedUnits) turn() {
	column := h.toA
	XORQ(column, column)
	frame.Get(squareRoom, h.tmp)
	MOVQ(h.tmp, h.strip)
	LEAQ(Mem{Base: h.tmp, Disp: halvedSums}, h.c)
	frame.Keep(halvedStrip, h.tmp, h.end)
	MOVQ(U32(3), h.round)
	Label("columns")
	h.turnFour(column)
	h.multiplySome("columns")
	ADDQ(Imm(4), column)
	CMPQ(column, h.end)
	JLT(LabelRef("columns"))
	frame.Get(halvedStrip, h.tmp)
	ADDQ(h.tmp, h.end)
	MOVQ(U32(0), h.round)
	CMPQ(column, frame.Field(halvedLeft))
	JLT(LabelRef("columns"))
	MOVQ(h.arow, h.n)
	SHLQ(Imm(5), h.n)
	ADDQ(h.n, h.a)
}

// turnFour: a quarter of a vector has four columns of a row, so that rows of four vectors are turned in each quarter by
// itself.
func (h halvedUnits) turnFour(column GPPhysical) {
	row, line, scale, arow12 := R14, h.tmp, R12, h.n
	LEAQ(Mem{Base: h.arow, Index: h.arow, Scale: 2}, arow12)
	SHLQ(Imm(2), arow12)
	MOVQ(column, row)
	CMPQ(row, frame.Field(squareLastA))
	CMOVQGT(frame.Field(squareLastA), row)
	frame.Get(halvedScaleA, scale)
	LEAQ(Mem{Base: scale, Index: row, Scale: 4}, scale)
	MOVQ(row, line)
	SHLQ(Imm(6), line)
	ADDQ(frame.Field(squareRoom), line)
	LEAQ(Mem{Base: h.a, Index: row, Scale: 4}, row)
	h.ask()
	for half := range 2 {
		z := zmms[12*half:]
		for r := range 4 {
			VMOVUPS(Mem{Base: row}, z[r].AsX())
			for lane, m := range []Mem{{Base: row, Index: h.arow, Scale: 4}, {Base: row, Index: h.arow, Scale: 8}, {Base: row, Index: arow12, Scale: 1}} {
				VBROADCASTF32X4(m, []OpmaskPhysical{K1, K2, K3}[lane], z[r])
			}
			ADDQ(h.arow, row)
		}
		ADDQ(arow12, row)
		turnQuarters(z)
		for c := range 4 {
			VMULPS_BCST(Mem{Base: scale, Disp: 4 * c}, z[c], z[c])
			halve(z[c], z[4+c], z[8+c])
			VMOVUPS(z[4+c].AsY(), Mem{Base: line, Disp: 64*c + 32*half})
			VCVTPS2PH(Imm(0), z[c], Mem{Base: line, Disp: halvedLower + 64*c + 32*half})
		}
	}
}

// turnQuarters turns the 4 x 4 numbers in each quarter of four vectors round, and needs four more.
func turnQuarters(z []VecPhysical) {
	for i := range 2 { // rows each
		VUNPCKLPS(z[2*i+1], z[2*i], z[4+i])
		VUNPCKHPS(z[2*i+1], z[2*i], z[6+i])
	}
	for i := range 2 { // columns each
		VUNPCKLPD(z[5+2*i], z[4+2*i], z[2*i])
		VUNPCKHPD(z[5+2*i], z[4+2*i], z[2*i+1])
	}
}

// multiplySome does the next round of a strip's products, if there is any.
func (h halvedUnits) multiplySome(name string) {
	done := name + "Multiplied"
	MOVQ(h.round, h.n)
	CMPQ(h.n, Imm(3))
	JGE(LabelRef(done))
	INCQ(h.round)
	h.toMultiply()
	for round := range 2 {
		next := fmt.Sprintf("%sRound%d", name, round+1)
		CMPQ(h.n, Imm(uint64(round)))
		JNE(LabelRef(next))
		h.multiply(round)
		JMP(LabelRef(done))
		Label(next)
	}
	h.multiply(2)
	Label(done)
}

func (h halvedUnits) toMultiply() {
	MOVQ(h.strip, h.stripA)
	MOVQ(h.right, h.unitB)
}

// multiply is a round of a strip's products: upper halves of A by lower ones of B, by upper ones, and lower halves of A
// by those. After the last it goes on to the next strip. Sums stay in tiles until those of the next strip are loaded:
// right behind their products, stores would wait.
func (h halvedUnits) multiply(round int) {
	left, right := 3, func(j int) int { return 5 + j }
	switch round {
	case 0:
		h.store()
		MOVQ(h.c, h.sums)
		for j := range 3 {
			loadTileAt(j, h.c, h.sumRow, 64*j)
		}
		loadTileAt(left, h.stripA, h.line, 0)
	case 2:
		left = 4
		loadTileAt(left, h.stripA, h.line, halvedLower)
	}
	for j := range 3 {
		if round < 2 {
			loadTileAt(right(j), h.unitB, h.line, (1-round)*halvedLower+tileBytes*j)
		}
		multiplyHalves(j, left, right(j))
	}
	if round == 2 {
		frame.Get(halvedStrip, h.tmp)
		IMUL3Q(Imm(64), h.tmp, h.n)
		ADDQ(h.n, h.strip)
		IMUL3Q(U32(halvedSumRow), h.tmp, h.n)
		ADDQ(h.n, h.c)
	}
}

// store brings the sums in tiles where they belong.
func (h halvedUnits) store() {
	MOVQ(h.sums, h.n)
	for j := range 3 {
		storeTileAt(j, h.n, h.sumRow, 64*j)
	}
}

// check says whether there was a number too large for its column's scale: then there are sums that are infinite or NaN.
func (h halvedUnits) check() {
	VPXORD(Z3, Z3, Z3)
	h.eachRow("check", frame.Field(halvedLeft), func(sum func(j int) Mem) {
		for j := range 3 {
			VMOVUPS(sum(j), zmm(j))
			VSUBPS(zmm(j), zmm(j), zmm(j)) // NaN of both
			VPORD(zmm(j), Z3, Z3)
		}
	})
	VPTESTMD(Z3, Z3, K1)
	KMOVW(K1, h.tmp.As32())
	MOVQ(h.tmp, frame.Field(halvedSpoilt))
	TESTQ(h.tmp, h.tmp)
}

// add takes scales back and adds the sums to C.
func (h halvedUnits) add() {
	back, c, crow := h.a, h.b, h.arow
	frame.Get(halvedBackB, back)
	for j := range 3 {
		VMOVUPS(Mem{Base: back, Disp: 64 * j}, zmm(4+j))
	}
	frame.Get(halvedBackA, back)
	frame.Get(squareC, c)
	frame.Get(squareCRow, crow)
	h.eachRow("add", frame.Field(halvedLeft), func(sum func(j int) Mem) {
		for j := range 3 {
			mask, to := []OpmaskPhysical{K4, K4, K5}[j], Mem{Base: c, Disp: 64 * j}
			VMULPS_BCST(Mem{Base: back}, zmm(4+j), zmm(j))
			VMULPS(sum(j), zmm(j), zmm(j))
			VADDPS_Z(to, zmm(j), mask, zmm(j))
			VMOVUPS(zmm(j), mask, to)
		}
		ADDQ(Imm(4), back)
		ADDQ(crow, c)
	})
}
