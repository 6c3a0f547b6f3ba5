package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// Sizes of simd.Halves' layout, in bytes: the upper halves of a block, two tiles, are followed by the lower
// ones, and these by a line.
const (
	halfBytes      = 2 * tileBytes
	halfBlockBytes = 2*halfBytes + 64
)

// Constants of halving (see simd.scaling): what clears a sign, the least exponent, and what scales are made of.
var absolute, leastExponent, scaleTop, scaleDown = Z28, Z29, Z30, Z31

func loadHalfConstants(tmp Register, headroom uint32) {
	for _, c := range []struct {
		bits uint32
		to   VecPhysical
	}{{0x7fffffff, absolute}, {41, leastExponent}, {268 - headroom, scaleTop}, {14 - headroom, scaleDown}} {
		MOVL(U32(c.bits), tmp)
		VPBROADCASTD(tmp, c.to)
	}
}

// scales turns the largest absolute numbers, as bits, into what their columns are multiplied with, and makes of it
// what takes that back.
func scales(largest, back VecPhysical) {
	VPSRLD(Imm(23), largest, largest)
	VPMAXUD(leastExponent, largest, largest)
	VPSUBD(scaleDown, largest, back)
	VPSLLD(Imm(23), back, back)
	VPSUBD(largest, scaleTop, largest)
	VPSLLD(Imm(23), largest, largest)
}

// halve makes the upper half of x, as y, and leaves in x what is lower.
func halve(x, y, wide VecPhysical) {
	VCVTPS2PH(Imm(0), x, y.AsY())
	VCVTPH2PS(y.AsY(), wide)
	VSUBPS(wide, x, x)
}

// sideBySide is the order that puts numbers of two rows side by side.
var sideBySide = Z27

// halvePair is the instructions that halve 16 columns of two rows, side by side: the upper halves into one line, the
// lower into another. It takes six registers.
func halvePair(x0, x1 Mem, m0, m1 OpmaskPhysical, scale VecPhysical, upper, lower Mem, z []VecPhysical) []func() {
	join := func() { VINSERTI64X4(Imm(1), z[3].AsY(), z[2], z[2]) }
	order := func() { VPERMW(z[2], sideBySide, z[2]) }
	return []func(){
		func() { VMULPS_Z(x0, scale, m0, z[0]) },
		func() { VMULPS_Z(x1, scale, m1, z[1]) },
		func() { VCVTPS2PH(Imm(0), z[0], z[2].AsY()) },
		func() { VCVTPS2PH(Imm(0), z[1], z[3].AsY()) },
		func() { VCVTPH2PS(z[2].AsY(), z[4]) },
		func() { VCVTPH2PS(z[3].AsY(), z[5]) },
		func() { VSUBPS(z[4], z[0], z[0]) },
		func() { VSUBPS(z[5], z[1], z[1]) },
		join, order,
		func() { VMOVUPS(z[2], upper) },
		func() { VCVTPS2PH(Imm(0), z[0], z[2].AsY()) },
		func() { VCVTPS2PH(Imm(0), z[1], z[3].AsY()) },
		join, order,
		func() { VMOVUPS(z[2], lower) },
	}
}

// halveRows: 32 numbers of a row make a line of two tiles. A row is read for its largest number, and once
// more from the nearest cache.
func halveRows() {
	dst, back, src, rows, cols, stride := RDI, R9, RSI, RDX, RCX, R8
	frame.Func("halveRows512", "func(dst, back, src *byte, rows, cols, stride int)", dst, back, src, rows, cols, stride)
	left, s, d, n := R10, R11, R12, R13
	loadHalfConstants(EAX, 0)
	lastMasks(cols, left, RAX)
	scale := Z4
	pair := func(m0, m1 OpmaskPhysical) {
		VMULPS_Z(Mem{Base: s}, scale, m0, Z0)
		VMULPS_Z(Mem{Base: s, Disp: 64}, scale, m1, Z1)
		halve(Z0, Z2, Z6)
		halve(Z1, Z3, Z7)
		VMOVUPS(Y2, Mem{Base: d})
		VMOVUPS(Y3, Mem{Base: d, Disp: 32})
		VCVTPS2PH(Imm(0), Z0, Mem{Base: d, Disp: halfBytes})
		VCVTPS2PH(Imm(0), Z1, Mem{Base: d, Disp: halfBytes + 32})
	}
	largest := func(m0, m1 OpmaskPhysical) {
		VPANDD_Z(Mem{Base: s}, absolute, m0, Z0)
		VPANDD_Z(Mem{Base: s, Disp: 64}, absolute, m1, Z1)
		VPMAXUD(Z0, Z4, Z4)
		VPMAXUD(Z1, Z5, Z5)
	}
	// each goes over the blocks of a row.
	each := func(name string, do func(m0, m1 OpmaskPhysical), step func()) {
		MOVQ(src, s)
		MOVQ(cols, n)
		TESTQ(n, n)
		JEQ(LabelRef(name + "Last"))
		Label(name)
		do(K1, K1)
		ADDQ(U32(128), s)
		step()
		DECQ(n)
		JNZ(LabelRef(name))
		Label(name + "Last")
		TESTQ(left, left)
		JEQ(LabelRef(name + "Done"))
		do(K3, K4)
		Label(name + "Done")
	}
	Label("row")
	VPXORD(Z4, Z4, Z4)
	VPXORD(Z5, Z5, Z5)
	each("largest", largest, func() {})
	VPMAXUD(Z5, Z4, Z4)
	VSHUFI32X4(Imm(0x4e), Z4, Z4, Z5)
	VPMAXUD(Z5, Z4, Z4)
	VSHUFI32X4(Imm(0xb1), Z4, Z4, Z5)
	VPMAXUD(Z5, Z4, Z4)
	VPSHUFD(Imm(0x4e), Z4, Z5)
	VPMAXUD(Z5, Z4, Z4)
	VPSHUFD(Imm(0xb1), Z4, Z5)
	VPMAXUD(Z5, Z4, Z4)
	scales(scale, Z5)
	VMOVSS(X5, Mem{Base: back})
	MOVQ(dst, d)
	each("halve", pair, func() { ADDQ(U32(halfBlockBytes), d) })
	ADDQ(stride, src)
	ADDQ(Imm(64), dst)
	ADDQ(Imm(4), back)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// halvePairs: rows 2r and 2r+1 of a block of 32 go side by side into line r of tiles of 16 columns. A panel's 32
// columns are read for their largest numbers, and once more. Rows past the last are zeros.
func halvePairs() {
	order := GLOBL("sideBySide", RODATA|NOPTR)
	for i := range 32 {
		DATA(2*i, U16(i/2+i%2*16))
	}
	dst, back, src, rows, cols, stride, panel, ahead := RDI, R9, RSI, RDX, RCX, R8, R10, RBX
	frame.Func("halvePairs512", "func(dst, back, src *byte, rows, cols, stride, panel int, ahead uintptr)", dst, back, src, rows, cols, stride, panel, ahead)
	s, d, n, line := R11, R12, R13, R15
	loadHalfConstants(EAX, 0)
	VMOVUPS(order, sideBySide)
	KXORW(K5, K5, K5)
	// column is 16 columns of two rows.
	column := func(disp, out int, scale VecPhysical, m0, m1 OpmaskPhysical) {
		z := []VecPhysical{Z0, Z1, Z2, Z3, Z6, Z7}
		inOrder(halvePair(Mem{Base: s, Disp: disp}, Mem{Base: s, Index: stride, Scale: 1, Disp: disp}, m0, m1, scale,
			Mem{Base: d, Disp: out}, Mem{Base: d, Disp: out + halfBytes}, z))
	}
	next := func(label string) { // line
		ADDQ(Imm(64), d)
		INCQ(line)
		TESTQ(U32(15), line)
		JNZ(LabelRef(label))
		ADDQ(U32(halfBlockBytes-tileBytes), d)
		Label(label)
	}

	Label("panel")
	MOVQ(I32(-1), RAX)
	CMPQ(cols, Imm(32))
	JGE(LabelRef("whole"))
	BZHIQ(cols, RAX, RAX)
	Label("whole")
	KMOVW(EAX, K1)
	SHRQ(Imm(16), RAX)
	KMOVW(EAX, K2)

	VPXORD(Z4, Z4, Z4)
	VPXORD(Z5, Z5, Z5)
	MOVQ(src, s)
	MOVQ(rows, n)
	Label("largest")
	VPANDD_Z(Mem{Base: s}, absolute, K1, Z0)
	VPANDD_Z(Mem{Base: s, Disp: 64}, absolute, K2, Z1)
	VPMAXUD(Z0, Z4, Z4)
	VPMAXUD(Z1, Z5, Z5)
	PREFETCHT1(Mem{Base: ahead})
	ADDQ(Imm(64), ahead)
	ADDQ(stride, s)
	DECQ(n)
	JNZ(LabelRef("largest"))
	scales(Z4, Z0)
	scales(Z5, Z1)
	VMOVUPS(Z0, Mem{Base: back})
	VMOVUPS(Z1, Mem{Base: back, Disp: 64})

	MOVQ(src, s)
	MOVQ(dst, d)
	XORQ(line, line)
	MOVQ(rows, n)
	SHRQ(Imm(1), n)
	JEQ(LabelRef("odd"))
	Label("pair")
	PREFETCHT1(Mem{Base: ahead})
	ADDQ(Imm(64), ahead)
	column(0, 0, Z4, K1, K1)
	KTESTW(K2, K2)
	JEQ(LabelRef("none"))
	column(64, tileBytes, Z5, K2, K2)
	Label("some")
	LEAQ(Mem{Base: s, Index: stride, Scale: 2}, s)
	next("paired")
	DECQ(n)
	JNZ(LabelRef("pair"))
	Label("odd")
	TESTQ(U32(1), rows)
	JEQ(LabelRef("rest"))
	column(0, 0, Z4, K1, K5)
	column(64, tileBytes, Z5, K2, K5)
	next("single")
	Label("rest")
	VPXORD(Z0, Z0, Z0)
	Label("zeros")
	TESTQ(U32(15), line)
	JEQ(LabelRef("done"))
	for tile := range 4 {
		VMOVUPS(Z0, Mem{Base: d, Disp: tile * tileBytes})
	}
	ADDQ(Imm(64), d)
	INCQ(line)
	JMP(LabelRef("zeros"))
	Label("done")
	ADDQ(U32(128), src)
	ADDQ(U32(128), back)
	ADDQ(panel, dst)
	SUBQ(Imm(32), cols)
	JG(LabelRef("panel"))
	VZEROUPPER()
	RET()
	Label("none") // of the panel's last 16 columns are there
	VPXORD(Z0, Z0, Z0)
	VMOVUPS(Z0, Mem{Base: d, Disp: tileBytes})
	VMOVUPS(Z0, Mem{Base: d, Disp: halfBytes + tileBytes})
	JMP(LabelRef("some"))
}

// Offsets of the fields of simd.Halves.
const (
	fieldHalfA = 8 * iota
	fieldHalfB
	fieldHalfC
	fieldHalfBackA
	fieldHalfBackB
	fieldHalfRoom
	fieldHalfAPanel
	fieldHalfBPanel
	fieldHalfCRow
	fieldHalfDepth
	fieldHalfRows
	fieldHalfPanels
	fieldHalfAdd
	fieldHalfOwn
	fieldHalfPast
	fieldHalfAhead
	fieldHalfAheadStep
	fieldHalfAheadApart
)

// productHalves goes over panels of 32 columns, in each over strips of 32 rows, in each over depth: three of the
// four products of halves. Sums are scaled on their way from a room of four tiles to C, and those of one strip after
// the products of the next: right behind the tiles' stores their loads would wait. Blocks are not asked for ahead,
// nor are tile instructions set apart, as in product32: here both only take time.
func productHalves() {
	begin("tilesHalves", wholeTiles())

	c, crow, line := R8, R9, RCX
	a, b, tmp, stripA := RSI, RDI, RBX, RDX
	k, rows, panels, ahead, room := R11, R12, R10, R15, R13
	ask, apart := tmp, R14
	local := AllocLocal(56)
	panelB, panelC, backA, backB := local, local.Offset(8), local.Offset(16), local.Offset(24)
	// Of the strip whose sums are in the room.
	lateC, lateA, lateB := local.Offset(32), local.Offset(40), local.Offset(48)
	frame.Keep(fieldHalfB, tmp, panelB)
	frame.Keep(fieldHalfC, tmp, panelC)
	frame.Keep(fieldHalfBackB, tmp, backB)
	MOVQ(U32(0), lateC)
	frame.Get(fieldHalfCRow, crow)
	frame.Get(fieldHalfPanels, panels)
	frame.Get(fieldHalfAhead, ahead)
	frame.Get(fieldHalfAheadApart, apart)
	frame.Get(fieldHalfRoom, room)
	MOVQ(U32(64), line)
	// K1: the lanes of C that are added to, all or none.
	KXORW(K1, K1, K1)
	CMPQ(frame.Field(fieldHalfAdd), Imm(0))
	JEQ(LabelRef("panel"))
	KXNORW(K1, K1, K1)

	Label("panel")
	frame.Get(fieldHalfRows, rows)
	frame.Get(fieldHalfA, stripA)
	frame.Get(fieldHalfBackA, tmp)
	MOVQ(tmp, backA)
	MOVQ(panelC, c)
	Label("rows")
	MOVQ(panelB, b)
	MOVQ(stripA, a)
	CMPQ(frame.Field(fieldHalfOwn), Imm(0))
	JEQ(LabelRef("owned"))
	ownC(c, crow, 32)
	Label("owned")
	for i := range 4 {
		zeroTile(i)
	}
	frame.Get(fieldHalfDepth, k)
	Label("depth")
	half := func(tile int, base GPPhysical, n int) {
		for i := range 2 {
			loadTileAt(tile+i, base, line, n*halfBytes+i*tileBytes)
		}
	}
	asked := 0
	four := func(lines int) {
		for i := range 4 {
			multiplyHalves(i, 4+i/2, 6+i%2)
		}
		for range lines {
			askLine(ask, apart, &asked)
		}
	}
	MOVQ(ahead, ask)
	half(4, a, 0)
	half(6, b, 1)
	four(6)
	half(6, b, 0)
	four(5)
	half(4, a, 1)
	four(5)
	ADDQ(frame.Field(fieldHalfAheadStep), ahead)
	ADDQ(U32(halfBlockBytes), a)
	ADDQ(U32(halfBlockBytes), b)
	DECQ(k)
	JNZ(LabelRef("depth"))

	Label("finish")
	MOVQ(lateC, a)
	TESTQ(a, a)
	JEQ(LabelRef("store"))
	scaleSums(room, a, crow, tmp, k, lateA, lateB, frame.Field(fieldHalfPast))
	Label("store")
	TESTQ(panels, panels)
	JEQ(LabelRef("end"))
	for i := range 4 {
		storeTileAt(i, room, line, i*tileBytes)
	}
	MOVQ(c, lateC)
	MOVQ(backB, tmp)
	MOVQ(tmp, lateB)
	MOVQ(backA, tmp)
	MOVQ(tmp, lateA)
	ADDQ(U32(128), tmp)
	MOVQ(tmp, backA)
	MOVQ(crow, tmp)
	SHLQ(Imm(5), tmp)
	ADDQ(tmp, c)
	ADDQ(frame.Field(fieldHalfAPanel), stripA)
	DECQ(rows)
	JNZ(LabelRef("rows"))

	MOVQ(panelB, b)
	ADDQ(frame.Field(fieldHalfBPanel), b)
	MOVQ(b, panelB)
	ADDQ(U32(128), backB)
	ADDQ(U32(128), panelC)
	DECQ(panels)
	JNZ(LabelRef("panel"))
	JMP(LabelRef("finish"))
	Label("end")
	releaseTiles()
	SFENCE() // for rows that went past the caches
	VZEROUPPER()
	RET()
}

// scaleSums takes the scales of A's rows and B's columns back, from a room to 32 rows of C, four at a time. What goes past
// the caches is not added to.
func scaleSums(room, c, crow, tmp, n GPPhysical, backA, backB, past Mem) {
	MOVQ(backB, tmp)
	VMOVUPS(Mem{Base: tmp}, Z0)
	VMOVUPS(Mem{Base: tmp, Disp: 64}, Z1)
	MOVQ(backA, tmp)
	rows := func(name string, store func(z VecPhysical, to Mem)) {
		Label(name)
		for r := range 4 {
			VBROADCASTSS(Mem{Base: tmp, Disp: 4 * r}, Z2)
			for i, v := range []VecPhysical{Z0, Z1} {
				z := zmm(4 + 2*r + i)
				VMULPS(Mem{Base: room, Disp: i*tileBytes + 64*r}, Z2, z)
				VMULPS(v, z, z)
				store(z, Mem{Base: c, Disp: 64 * i})
			}
			ADDQ(crow, c)
		}
		ADDQ(Imm(16), tmp)
		ADDQ(U32(256), room)
		DECQ(n)
		JNZ(LabelRef(name))
	}
	// Two tiles of upper rows, then two of lower.
	each := func(name string, store func(z VecPhysical, to Mem)) {
		for _, part := range []string{"Upper", "Lower"} {
			MOVQ(U32(4), n)
			rows(name+part, store)
			ADDQ(U32(tileBytes), room)
		}
	}
	CMPQ(past, Imm(0))
	JEQ(LabelRef("near"))
	each("past", func(z VecPhysical, to Mem) { VMOVNTPS(z, to) })
	JMP(LabelRef("scaled"))
	Label("near")
	each("add", func(z VecPhysical, to Mem) {
		VADDPS(to, z, K1, z)
		VMOVUPS(z, to)
	})
	Label("scaled")
	SUBQ(U32(4*tileBytes), room)
}

// hasHalves asks the processor whether it multiplies tiles of half precision (leaf 7, part 1, bit 21 of EAX).
func hasHalves() {
	TEXT("hasHalves", NOSPLIT, "func() bool")
	MOVL(U32(7), EAX)
	XORL(ECX, ECX)
	CPUID()
	XORL(ECX, ECX)
	TESTL(EAX, EAX) // the last part
	JEQ(LabelRef("end"))
	MOVL(U32(7), EAX)
	MOVL(U32(1), ECX)
	CPUID()
	MOVL(EAX, ECX)
	SHRL(Imm(21), ECX)
	ANDL(Imm(1), ECX)
	Label("end")
	Store(ECX.As8(), ReturnIndex(0))
	RET()
}
