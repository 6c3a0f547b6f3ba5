// Amx writes the products of bfloat16 and of half precision tiles and the packing they need:
//
//	go run ./amx -out ../amx_amd64.s -stubs ../amx_stubs_amd64.go -pkg simd
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

func main() {
	ConstraintExpr("amd64")
	tileConfig()
	product("tiles16By2", 2, 2)
	product("tiles16By1", 4, 1)
	product("tiles16By3", 1, 3)
	for tiles := range 3 {
		strips16(tiles+1, false)
		outer16(tiles+1, false)
		outerSquare16(tiles + 1)
	}
	strips16(2, true)
	outer16(1, true)
	outerWide16()
	packPairs()
	packTransposed()
	padRows()
	splitRows()
	splitPairs()
	product32()
	for wide := 1; wide <= 3; wide++ {
		narrow{wide, false}.product("tiles48")
	}
	for wide := 1; wide <= 2; wide++ {
		narrow{wide, true}.product("outerThirds")
	}
	halveRows()
	halvePairs()
	productHalves()
	outerHalves()
	columnScales()
	hasHalves()
	Generate()
}

// Offsets of the fields of simd.tiles16.
const (
	fieldA = 8 * iota
	fieldB
	fieldC
	fieldARow
	fieldCRow
	fieldBlocks
	fieldLast
	fieldRows
	fieldPanels
	fieldAdd
	fieldAhead
	fieldAheadEnd
	fieldThen
	fieldAheadStep
	fieldConfig
)

// tileConfig says that all eight tiles are 16 rows of 64 bytes.
func tileConfig() {
	GLOBL("tileConfig", RODATA|NOPTR)
	DATA(0, U8(1)) // palette
	for i := 1; i < 16; i++ {
		DATA(i, U8(0))
	}
	for i := range 8 {
		DATA(16+2*i, U16(64))
	}
	for i := 32; i < 48; i++ {
		DATA(i, U8(0))
	}
	for i := range 8 {
		DATA(48+i, U8(16))
	}
	for i := 56; i < 64; i++ {
		DATA(i, U8(0))
	}
}

// product goes over panels of so many tiles' columns, in each over blocks of so many strips of 16 rows, in
// each over depth: tiles of A, in turns in 4 and 5, and of B, in the last, make three or four of C, which stay in the first.
// Tiles hold nothing between calls: the state is given back at the end, so that a
// goroutine may move to another thread.
func product(name string, strips, wide int) {
	begin(name, frame.Field(fieldConfig))

	a, arow, astrip, b, line := RSI, RDX, RDI, RBX, RCX
	c, crow, at, n := R8, R9, R10, R14
	k, rows, panels, ahead := R11, R12, R13, R15
	// Where the panel begins, in B and in C, and the block of rows in A. Not kept in the caller's
	// struct, where a pointer past the end would confuse the garbage collector.
	local := AllocLocal(32)
	panelB, panelC, blockA, cstrip := local, local.Offset(8), local.Offset(16), local.Offset(24)
	frame.Get(fieldB, b)
	MOVQ(b, panelB)
	frame.Get(fieldC, c)
	MOVQ(c, panelC)
	frame.Get(fieldARow, arow)
	MOVQ(arow, astrip)
	SHLQ(Imm(4), astrip)
	frame.Get(fieldCRow, crow)
	MOVQ(crow, at)
	SHLQ(Imm(4), at)
	MOVQ(at, cstrip)
	frame.Get(fieldPanels, panels)
	frame.Get(fieldAhead, ahead)
	MOVQ(U32(64), line)
	sums := func(do func(tile int, base, stride GPPhysical, disp int)) {
		MOVQ(c, at)
		for i := range strips {
			for j := range wide {
				do(i*wide+j, at, crow, 64*j)
			}
			ADDQ(cstrip, at)
		}
	}

	loadB := func(tile, j int) {
		if j < 2 {
			loadTileAt(tile, b, line, 1024*j)
			return
		}
		frame.Get(fieldBlocks, n)
		SHLQ(Imm(11), n)
		ADDQ(b, n)
		loadTile(tile, n, line)
	}

	Label("panel")
	frame.Get(fieldRows, rows)
	frame.Get(fieldA, a)
	MOVQ(a, blockA)
	MOVQ(panelC, c)
	Label("rows")
	MOVQ(panelB, b)
	CMPQ(frame.Field(fieldAdd), Imm(0))
	JEQ(LabelRef("zero"))
	sums(loadTileAt)
	JMP(LabelRef("sum"))
	Label("zero")
	for i := range strips * wide {
		zeroTile(i)
	}
	Label("sum")
	frame.Get(fieldBlocks, k)
	Label("depth")
	MOVQ(a, at)
	for i := range strips {
		left := 4 + i&1
		loadTile(left, at, arow)
		nothing(apart)
		for j := range wide {
			right := 8 - wide + j
			if i == 0 {
				loadB(right, j)
				nothing(apart)
			}
			multiply(i*wide+j, left, right)
			nothing(apart)
		}
		ADDQ(astrip, at)
	}
	frame.Get(fieldAheadStep, n)
	TESTQ(n, n)
	JEQ(LabelRef("asked"))
	Label("ask")
	for i := range 4 {
		PREFETCHT1(Mem{Base: ahead, Disp: 64 * i})
	}
	ADDQ(U32(256), ahead)
	CMPQ(ahead, frame.Field(fieldAheadEnd))
	JNE(LabelRef("more"))
	frame.Get(fieldThen, ahead)
	Label("more")
	SUBQ(U32(256), n)
	JNZ(LabelRef("ask"))
	Label("asked")
	ADDQ(Imm(64), a)
	ADDQ(U32(2048), b)
	DECQ(k)
	JEQ(LabelRef("store"))
	CMPQ(k, Imm(1))
	JNE(LabelRef("depth"))
	ADDQ(frame.Field(fieldLast), a)
	JMP(LabelRef("depth"))

	Label("store")
	sums(storeTileAt)
	MOVQ(at, c) // it stands below the block
	MOVQ(blockA, a)
	LEAQ(Mem{Base: a, Index: astrip, Scale: uint8(strips)}, a)
	MOVQ(a, blockA)
	DECQ(rows)
	JNZ(LabelRef("rows"))

	// The next panel: b stands behind this one.
	MOVQ(b, panelB)
	ADDQ(U32(64*uint32(wide)), panelC)
	DECQ(panels)
	JNZ(LabelRef("panel"))
	MOVQ(ahead, frame.Field(fieldAhead))
	releaseTiles()
	RET()
}

// eachC loads or stores the four tiles of C: 0 and 1 side by side, 2 and 3 below.
func eachC(c, crow, tmp GPPhysical, do func(tile int, base, stride GPPhysical)) {
	do(0, c, crow)
	LEAQ(Mem{Base: c, Disp: 64}, tmp)
	do(1, tmp, crow)
	MOVQ(crow, tmp)
	SHLQ(Imm(4), tmp)
	ADDQ(c, tmp)
	do(2, tmp, crow)
	ADDQ(Imm(64), tmp)
	do(3, tmp, crow)
}
