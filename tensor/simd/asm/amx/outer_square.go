package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
	"starling/tensor/simd/asm/lanes"
)

// Offsets of the fields of simd.OuterSquare16, with which those of simd.OuterSquareHalves begin.
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
	s := newSquareSlices(tiles)
	Label("slice")
	s.next()
	Label("unit")
	s.turn()
	s.pair()
	DECQ(s.unit)
	JNZ(LabelRef("unit"))
	s.multiply()
	s.askRest()
	CMPQ(s.left, Imm(0))
	JNE(LabelRef("slice"))
	end()
}

// squareSlices is where outerSquare16 stands. K1 to K3 are quarters of a vector, K4 all lanes, and K5 those of B's last tile.
type squareSlices struct {
	tiles             int
	a, arow, toA      GPPhysical // rows of A, how far they are apart, and where they go
	b, brow, toB      GPPhysical
	line, n, tmp      GPPhysical
	left, slice, unit Mem // units that are left, that the slice has, and that are yet to be made
	aheadA, aheadB    lanes.Across
}

func newSquareSlices(tiles int) squareSlices {
	s := squareSlices{tiles: tiles, a: RSI, arow: RDX, toA: R11, b: RDI, brow: R8, toB: R12, line: RCX, n: R13, tmp: RBX}
	var endA, endB Mem
	frame.Locals(&s.left, &s.slice, &s.unit, &endA, &endB)
	s.aheadA, s.aheadB = lanes.Across{Next: R9, End: endA}, lanes.Across{Next: R10, End: endB}
	for lane, mask := range []OpmaskPhysical{K1, K2, K3} {
		MOVQ(U32(0xf0<<(4*lane)), s.tmp)
		KMOVW(s.tmp.As32(), mask)
	}
	MOVQ(I32(-1), s.tmp)
	KMOVW(s.tmp.As32(), K4)
	KMOVW(frame.Field(squareLast), K5)
	frame.Get(squareA, s.a)
	frame.Get(squareB, s.b)
	frame.Get(squareARow, s.arow)
	frame.Get(squareBRow, s.brow)
	frame.Get(squareFromA, s.aheadA.Next)
	frame.Get(squareFromB, s.aheadB.Next)
	frame.Keep(squareUnits, s.tmp, s.left)
	MOVQ(U32(64), s.line)
	return s
}

// next begins a slice.
func (s squareSlices) next() {
	MOVQ(s.left, s.n)
	MOVQ(U32(squareSlice), s.tmp)
	CMPQ(s.n, s.tmp)
	CMOVQGT(s.tmp, s.n)
	MOVQ(s.n, s.slice)
	MOVQ(s.n, s.unit)
	SUBQ(s.n, s.left)
	frame.Get(squareRoom, s.toA)
	LEAQ(Mem{Base: s.toA, Disp: squareRoomB}, s.toB)
	s.askUntil()
}

// askUntil says how far to ask from the rows that come next.
func (s squareSlices) askUntil() {
	until := func(side lanes.Across, rows GPPhysical, lead int) {
		MOVQ(rows, s.n)
		ADDQ(frame.Field(lead), s.n)
		side.Until(s.n, s.tmp)
	}
	until(s.aheadA, s.a, squareLeadA)
	until(s.aheadB, s.b, squareLeadB)
}

// ask asks for four lines of each side.
func (s squareSlices) ask() {
	for _, side := range []lanes.Across{s.aheadA, s.aheadB} {
		end := lanes.NewLabel("asked")
		askFour(side, end)
		Label(end)
	}
}

func askFour(side lanes.Across, end string) { side.Four(func(m Op) { PREFETCHT1(m) }, end) }

// askRest asks for what is left to ask for where one side is much wider than the other.
func (s squareSlices) askRest() {
	for i, side := range []lanes.Across{s.aheadA, s.aheadB} {
		more := []string{"moreA", "moreB"}[i]
		Label(more)
		askFour(side, more+"end")
		JMP(LabelRef(more))
		Label(more + "end")
	}
}

// turn turns 32 rows of A round, eight columns at a time: a quarter of a vector has those of a row, so that rows of eight
// vectors are turned in each quarter by itself, and 32 rows of a column follow each other. The last eight columns end with
// a row, and may be some of those before.
func (s squareSlices) turn() {
	column, row, line, arow16, arow24 := R14, R15, RBX, R13, RBP
	last := frame.Field(squareLastA)
	MOVQ(s.arow, arow16)
	SHLQ(Imm(4), arow16)
	LEAQ(Mem{Base: arow16, Index: s.arow, Scale: 8}, arow24)
	XORQ(column, column)
	Label("columns")
	LEAQ(Mem{Base: s.a, Index: column, Scale: 1}, row)
	for r := range 8 {
		VMOVDQU(Mem{Base: row}, zmm(r).AsX())
		for lane, m := range []Mem{{Base: row, Index: s.arow, Scale: 8}, {Base: row, Index: arow16, Scale: 1}, {Base: row, Index: arow24, Scale: 1}} {
			VBROADCASTI32X4(m, []OpmaskPhysical{K1, K2, K3}[lane], zmm(r))
		}
		ADDQ(s.arow, row)
	}
	s.ask()
	MOVQ(column, line)
	SHLQ(Imm(5), line)
	ADDQ(s.toA, line)
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

// pair pairs 32 rows of B, and goes on to the next unit of both sides.
func (s squareSlices) pair() {
	MOVQ(U32(4), s.n)
	Label("pairs")
	s.ask()
	for range 4 {
		for j := range s.tiles {
			mask := K4
			if j == s.tiles-1 {
				mask = K5
			}
			words(Mem{Base: s.b, Disp: 32 * j}, Mem{Base: s.b, Index: s.brow, Scale: 1, Disp: 32 * j}, mask, zmm(2*j), zmm(2*j+1))
			VMOVUPS(zmm(2*j), Mem{Base: s.toB, Disp: tileBytes * j})
		}
		LEAQ(Mem{Base: s.b, Index: s.brow, Scale: 2}, s.b)
		ADDQ(s.line, s.toB)
	}
	DECQ(s.n)
	JNZ(LabelRef("pairs"))
	ADDQ(U32(squareUnitA), s.toA)
	if s.tiles > 1 { // one was filled
		ADDQ(U32(uint32(tileBytes*(s.tiles-1))), s.toB)
	}
	MOVQ(s.arow, s.n)
	SHLQ(Imm(5), s.n)
	ADDQ(s.n, s.a)
}

// multiply adds a slice to the sums, sixteen columns of A at a time.
func (s squareSlices) multiply() {
	c, crow, strips, strip, k := RBX, RBP, R14, R15, R13
	frame.Get(squareC, c)
	frame.Get(squareCRow, crow)
	frame.Get(squareStrips, strips)
	frame.Get(squareRoom, strip)
	Label("strip")
	for j := range s.tiles {
		loadTileAt(j, c, crow, 64*j)
	}
	MOVQ(strip, s.toA)
	frame.Get(squareRoom, s.toB)
	MOVQ(s.slice, k)
	Label("depth")
	loadTile(3, s.toA, s.line)
	for j := range s.tiles {
		loadTileAt(4+j, s.toB, s.line, squareRoomB+tileBytes*j)
		multiply(j, 3, 4+j)
	}
	s.ask()
	ADDQ(U32(squareUnitA), s.toA)
	ADDQ(U32(uint32(tileBytes*s.tiles)), s.toB)
	DECQ(k)
	JNZ(LabelRef("depth"))
	for j := range s.tiles {
		storeTileAt(j, c, crow, 64*j)
	}
	MOVQ(crow, k)
	SHLQ(Imm(4), k)
	ADDQ(k, c)
	ADDQ(U32(tileBytes), strip)
	DECQ(strips)
	JNZ(LabelRef("strip"))
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
