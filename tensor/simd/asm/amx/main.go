// Amx writes the products of bfloat16 and of half precision tiles and the packing they need:
//
//	go run ./amx -out ../amx_amd64.s -stubs ../amx_stubs_amd64.go -pkg simd
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	tileConfig()
	product()
	packPairs()
	packTransposed()
	splitRows()
	splitPairs()
	product32()
	product48()
	halveRows()
	halvePairs()
	productHalves()
	hasHalves()
	Generate()
}

// Offsets of the fields of simd.Tiles16.
const (
	fieldA = 8 * iota
	fieldB
	fieldC
	fieldARow
	fieldCRow
	fieldDepth
	fieldRows
	fieldPanels
	fieldAdd
	fieldAhead
	fieldAheadStep
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

// product goes over panels of 32 columns, in each over blocks of 32 rows, in each
// over depth: two tiles of A and two of B make four of C, which stay in tiles 0-3.
// Tiles hold nothing between calls: the state is given back at the end, so that a
// goroutine may move to another thread.
func product() {
	TEXT("tiles16", NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	LEAQ(NewDataAddr(Symbol{Name: "tileConfig", Static: true}, 0), RBX)
	loadConfig()
	field := func(off int, to GPPhysical) { MOVQ(Mem{Base: t, Disp: off}, to) }

	c, crow, arow, line := R8, R9, RDX, RCX
	a0, a1, b0, b1 := RSI, RDI, RBX, R10
	k, rows, panels, ahead := R11, R12, R13, R15
	// Where the panel begins, in B and in C. Not kept in the caller's struct, where a
	// pointer past the end would confuse the garbage collector.
	local := AllocLocal(16)
	panelB, panelC := local, local.Offset(8)
	field(fieldB, b0)
	MOVQ(b0, panelB)
	field(fieldC, c)
	MOVQ(c, panelC)
	field(fieldARow, arow)
	field(fieldCRow, crow)
	field(fieldPanels, panels)
	field(fieldAhead, ahead)
	MOVQ(U32(64), line)

	Label("panel")
	field(fieldRows, rows)
	field(fieldA, a0)
	MOVQ(panelC, c)
	Label("rows")
	MOVQ(panelB, b0)
	// a1 is 16 rows below a0.
	MOVQ(arow, a1)
	SHLQ(Imm(4), a1)
	ADDQ(a0, a1)
	lower := R10 // b1 is not in use yet
	CMPQ(Mem{Base: t, Disp: fieldAdd}, Imm(0))
	JEQ(LabelRef("zero"))
	eachC(c, crow, lower, loadTile)
	JMP(LabelRef("sum"))
	Label("zero")
	for i := range 4 {
		zeroTile(i)
	}
	Label("sum")
	LEAQ(Mem{Base: b0, Disp: 1024}, b1)
	field(fieldDepth, k)
	Label("depth")
	load := func(tile int, base, stride GPPhysical) {
		loadTile(tile, base, stride)
		nothing(apart)
	}
	times := func(c, a, b int) {
		multiply(c, a, b)
		nothing(apart)
	}
	load(4, a0, arow)
	load(6, b0, line)
	load(7, b1, line)
	times(0, 4, 6)
	times(1, 4, 7)
	load(5, a1, arow)
	times(2, 5, 6)
	times(3, 5, 7)
	for i := range 8 {
		PREFETCHT1(Mem{Base: ahead, Disp: 64 * i})
	}
	ADDQ(Mem{Base: t, Disp: fieldAheadStep}, ahead)
	ADDQ(Imm(64), a0)
	ADDQ(Imm(64), a1)
	ADDQ(U32(2048), b0)
	ADDQ(U32(2048), b1)
	DECQ(k)
	JNZ(LabelRef("depth"))
	eachC(c, crow, lower, storeTile)

	// The next 32 rows: a1 stands at the end of its first row, 16 rows above.
	field(fieldDepth, k)
	SHLQ(Imm(6), k)
	SUBQ(k, a1)
	MOVQ(arow, a0)
	SHLQ(Imm(4), a0)
	ADDQ(a1, a0)
	MOVQ(crow, k)
	SHLQ(Imm(5), k)
	ADDQ(k, c)
	DECQ(rows)
	JNZ(LabelRef("rows"))

	// The next panel: b0 stands behind this one.
	MOVQ(b0, panelB)
	ADDQ(U32(128), panelC)
	DECQ(panels)
	JNZ(LabelRef("panel"))
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
