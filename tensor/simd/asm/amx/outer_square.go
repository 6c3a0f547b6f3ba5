package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
	"starling/tensor/simd/asm/lanes"
)

// Offsets of the fields of simd.OuterSquare16.
const (
	squareA = 8 * iota
	squareB
	squareC
	squareRoom
	squareUnits
	squareARow
	squareBRow
	squareCRow
	squareStrips
	squareLastA
	squareFromA
	squareLeadA
	squareFromB
	squareLeadB
	squareLast
	squareConfig
)

// The room has units of A and then of B as tiles read them: 48 columns of A, a line each, and tiles of B.
const (
	squareSlice = 2 // units
	squareUnitA = 48 * 64
	squareRoomB = squareSlice * squareUnitA
)

// outerSquare16 goes over slices of two units of 32 rows: A is turned, up to three tiles' columns of B are paired, and then
// each sixteen columns of A take the whole slice in. All the while rows to come are asked for, a few lines at a time: as
// many at once would wait for each other, and all else for them.
func outerSquare16(tiles int) {
	begin(fmt.Sprintf("outerSquare16By%d", tiles), frame.Field(squareConfig))
	a, b, arow, brow, line := RSI, RDI, RDX, R8, RCX
	toA, toB, n, tmp := R11, R12, R13, RBX
	local := AllocLocal(40)
	left, slice, unit := local, local.Offset(8), local.Offset(16)
	aheadA := lanes.Across{Next: R9, End: local.Offset(24)}
	aheadB := lanes.Across{Next: R10, End: local.Offset(32)}
	askFour := func(side lanes.Across, end string) { side.Four(func(m Op) { PREFETCHT1(m) }, end) }
	ask := func() {
		for _, side := range []lanes.Across{aheadA, aheadB} {
			end := lanes.NewLabel("asked")
			askFour(side, end)
			Label(end)
		}
	}

	for lane, mask := range []OpmaskPhysical{K1, K2, K3} { // quarters of a vector
		MOVQ(U32(0xf0<<(4*lane)), tmp)
		KMOVW(tmp.As32(), mask)
	}
	MOVQ(I32(-1), tmp)
	KMOVW(tmp.As32(), K4)
	KMOVW(frame.Field(squareLast), K5)
	frame.Get(squareA, a)
	frame.Get(squareB, b)
	frame.Get(squareARow, arow)
	frame.Get(squareBRow, brow)
	frame.Get(squareFromA, aheadA.Next)
	frame.Get(squareFromB, aheadB.Next)
	frame.Get(squareUnits, tmp)
	MOVQ(tmp, left)
	MOVQ(U32(64), line)

	Label("slice")
	MOVQ(left, n)
	MOVQ(U32(squareSlice), tmp)
	CMPQ(n, tmp)
	CMOVQGT(tmp, n)
	MOVQ(n, slice)
	MOVQ(n, unit)
	SUBQ(n, left)
	frame.Get(squareRoom, toA)
	LEAQ(Mem{Base: toA, Disp: squareRoomB}, toB)
	until := func(side lanes.Across, rows GPPhysical, lead int) {
		MOVQ(rows, n)
		ADDQ(frame.Field(lead), n)
		side.Until(n, tmp)
	}
	until(aheadA, a, squareLeadA)
	until(aheadB, b, squareLeadB)
	Label("unit")
	squareTurn(a, arow, toA, frame.Field(squareLastA), ask)
	MOVQ(U32(4), n)
	Label("pairs")
	ask()
	for range 4 {
		for j := range tiles {
			mask := K4
			if j == tiles-1 {
				mask = K5
			}
			words(Mem{Base: b, Disp: 32 * j}, Mem{Base: b, Index: brow, Scale: 1, Disp: 32 * j}, mask, zmm(2*j), zmm(2*j+1))
			VMOVUPS(zmm(2*j), Mem{Base: toB, Disp: tileBytes * j})
		}
		LEAQ(Mem{Base: b, Index: brow, Scale: 2}, b)
		ADDQ(line, toB)
	}
	DECQ(n)
	JNZ(LabelRef("pairs"))
	ADDQ(U32(squareUnitA), toA)
	if tiles > 1 { // one was filled
		ADDQ(U32(uint32(tileBytes*(tiles-1))), toB)
	}
	MOVQ(arow, n)
	SHLQ(Imm(5), n)
	ADDQ(n, a)
	DECQ(unit)
	JNZ(LabelRef("unit"))

	c, crow, strips, strip, k := RBX, RBP, R14, R15, R13
	frame.Get(squareC, c)
	frame.Get(squareCRow, crow)
	frame.Get(squareStrips, strips)
	frame.Get(squareRoom, strip)
	Label("strip")
	for j := range tiles {
		loadTileAt(j, c, crow, 64*j)
	}
	MOVQ(strip, toA)
	frame.Get(squareRoom, toB)
	MOVQ(slice, k)
	Label("depth")
	loadTile(3, toA, line)
	for j := range tiles {
		loadTileAt(4+j, toB, line, squareRoomB+tileBytes*j)
		multiply(j, 3, 4+j)
	}
	ask()
	ADDQ(U32(squareUnitA), toA)
	ADDQ(U32(uint32(tileBytes*tiles)), toB)
	DECQ(k)
	JNZ(LabelRef("depth"))
	for j := range tiles {
		storeTileAt(j, c, crow, 64*j)
	}
	MOVQ(crow, k)
	SHLQ(Imm(4), k)
	ADDQ(k, c)
	ADDQ(U32(tileBytes), strip)
	DECQ(strips)
	JNZ(LabelRef("strip"))
	// What is left to ask for where one side is much wider than the other.
	for i, side := range []lanes.Across{aheadA, aheadB} {
		more := []string{"moreA", "moreB"}[i]
		Label(more)
		askFour(side, more+"end")
		JMP(LabelRef(more))
		Label(more + "end")
	}
	CMPQ(left, Imm(0))
	JNE(LabelRef("slice"))
	end()
}

// squareTurn turns 32 rows of a round, eight columns at a time: a quarter of a vector has those of a row, so that rows of
// eight vectors are turned in each quarter by itself, and 32 rows of a column follow each other. The last eight columns end
// with a row, and may be some of those before.
func squareTurn(a, arow, to GPPhysical, last Mem, ask func()) {
	column, row, line, arow16, arow24 := R14, R15, RBX, R13, RBP
	MOVQ(arow, arow16)
	SHLQ(Imm(4), arow16)
	LEAQ(Mem{Base: arow16, Index: arow, Scale: 8}, arow24)
	XORQ(column, column)
	Label("columns")
	LEAQ(Mem{Base: a, Index: column, Scale: 1}, row)
	for r := range 8 {
		VMOVDQU(Mem{Base: row}, zmm(r).AsX())
		for lane, m := range []Mem{{Base: row, Index: arow, Scale: 8}, {Base: row, Index: arow16, Scale: 1}, {Base: row, Index: arow24, Scale: 1}} {
			VBROADCASTI32X4(m, []OpmaskPhysical{K1, K2, K3}[lane], zmm(r))
		}
		ADDQ(arow, row)
	}
	ask()
	MOVQ(column, line)
	SHLQ(Imm(5), line)
	ADDQ(to, line)
	for i, v := range turnWords() {
		VMOVUPS(v, Mem{Base: line, Disp: 64 * i})
	}
	CMPQ(column, last)
	JEQ(LabelRef("turned"))
	ADDQ(Imm(16), column)
	CMPQ(column, last)
	JLE(LabelRef("columns"))
	MOVQ(last, column)
	JMP(LabelRef("columns"))
	Label("turned")
}

// turnWords turns the 8 x 8 words in each quarter of Z0-Z7 round and says in which register each row is.
func turnWords() (out [8]VecPhysical) {
	for i := 0; i < 8; i += 2 {
		VPUNPCKLWD(zmm(i+1), zmm(i), zmm(8+i))
		VPUNPCKHWD(zmm(i+1), zmm(i), zmm(9+i))
	}
	for half := range 2 { // four columns each
		for i := range 2 { // four rows each
			low, high := zmm(8+4*i+half), zmm(10+4*i+half)
			VPUNPCKLDQ(high, low, zmm(16+4*half+i))
			VPUNPCKHDQ(high, low, zmm(18+4*half+i))
		}
		for i := range 2 { // two columns each
			low, high := zmm(16+4*half+2*i), zmm(17+4*half+2*i)
			out[4*half+2*i], out[4*half+2*i+1] = zmm(24+4*half+2*i), zmm(25+4*half+2*i)
			VPUNPCKLQDQ(high, low, out[4*half+2*i])
			VPUNPCKHQDQ(high, low, out[4*half+2*i+1])
		}
	}
	return out
}
