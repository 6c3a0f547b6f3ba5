package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// Sizes of simd.TwoWaySplit' layout, in bytes: the upper halves of a block, two tiles, are followed by the lower
// ones, and these by a line.
const (
	halfBytes      = 2 * tileBytes
	halfBlockBytes = 2*halfBytes + 64
)

// Offsets of the fields of simd.TwoWaySplit.
const (
	fieldHalfA = 8 * iota
	fieldHalfB
	fieldHalfC
	fieldHalfBackA
	fieldHalfBackB
	fieldHalfWorkspace
	fieldHalfAPanel
	fieldHalfBPanel
	fieldHalfCRow
	fieldHalfDepth
	fieldHalfRows
	fieldHalfPanels
	fieldHalfAdd
	fieldHalfOwn
	fieldHalfNonTemporal
	fieldHalfAhead
	fieldHalfAheadStep
	fieldHalfAheadApart
)

// productTwoWay goes over panels of 32 columns, in each over strips of 32 rows, in each over depth: three of the
// four products of halves. Sums are scaled on their way from a room of four tiles to C, and those of one strip after
// the products of the next: right behind the tiles' stores their loads would wait. Blocks are not asked for ahead,
// nor are tile instructions set apart, as in product32: here both only take time.
func productTwoWay() {
	begin("tilesTwoWay", wholeTiles())
	p := newPanelsOfFP16()
	Label("panel")
	frame.Get(fieldHalfRows, p.rows)
	frame.Get(fieldHalfA, p.stripA)
	frame.Keep(fieldHalfBackA, p.tmp, p.backA)
	MOVQ(p.panelC, p.c)
	Label("rows")
	p.start()
	frame.Get(fieldHalfDepth, p.k)
	Label("depth")
	p.multiply()
	frame.Next(p.k, "depth")

	Label("finish")
	MOVQ(p.lateC, p.a)
	frame.Test(p.a, p.a, JEQ, "store")
	scaleSums(p.room, p.a, p.crow, p.tmp, p.k, p.lateA, p.lateB, frame.Field(fieldHalfNonTemporal))
	Label("store")
	frame.Test(p.panels, p.panels, JEQ, "end")
	p.storeSums()
	MOVQ(p.crow, p.tmp)
	SHLQ(Imm(5), p.tmp)
	ADDQ(p.tmp, p.c)
	ADDQ(frame.Field(fieldHalfAPanel), p.stripA)
	frame.Next(p.rows, "rows")

	MOVQ(p.panelB, p.b)
	ADDQ(frame.Field(fieldHalfBPanel), p.b)
	MOVQ(p.b, p.panelB)
	ADDQ(U32(128), p.backB)
	ADDQ(U32(128), p.panelC)
	frame.Next(p.panels, "panel")
	JMP(LabelRef("finish"))
	Label("end")
	releaseTiles()
	SFENCE() // for rows that went by non-temporal stores
	frame.End()
}

// panelsOfFP16 is where productTwoWay stands. K1 is the lanes of C that are added to, all or none.
type panelsOfFP16 struct {
	a, b, c, crow, line          GPPhysical
	stripA, rows, panels, k      GPPhysical
	ahead, apart, room, tmp      GPPhysical
	panelB, panelC, backA, backB Mem
	lateC, lateA, lateB          Mem // of the strip whose sums are in the room
}

func newPanelsOfFP16() panelsOfFP16 {
	p := panelsOfFP16{a: RSI, b: RDI, c: R8, crow: R9, line: RCX, stripA: RDX, rows: R12, panels: R10, k: R11,
		ahead: R15, apart: R14, room: R13, tmp: RBX}
	frame.Locals(&p.panelB, &p.panelC, &p.backA, &p.backB, &p.lateC, &p.lateA, &p.lateB)
	frame.Keep(fieldHalfB, p.tmp, p.panelB)
	frame.Keep(fieldHalfC, p.tmp, p.panelC)
	frame.Keep(fieldHalfBackB, p.tmp, p.backB)
	MOVQ(U32(0), p.lateC)
	frame.Get(fieldHalfCRow, p.crow)
	frame.Get(fieldHalfPanels, p.panels)
	frame.Get(fieldHalfAhead, p.ahead)
	frame.Get(fieldHalfAheadApart, p.apart)
	frame.Get(fieldHalfWorkspace, p.room)
	MOVQ(U32(64), p.line)
	KXORW(K1, K1, K1)
	frame.Compare(frame.Field(fieldHalfAdd), Imm(0), JEQ, "panel")
	KXNORW(K1, K1, K1)
	return p
}

// start begins a strip.
func (p panelsOfFP16) start() {
	MOVQ(p.panelB, p.b)
	MOVQ(p.stripA, p.a)
	frame.Compare(frame.Field(fieldHalfOwn), Imm(0), JEQ, "owned")
	ownC(p.c, p.crow, 32)
	Label("owned")
	for i := range 4 {
		zeroTile(i)
	}
}

// multiply multiplies a block of A with one of B, and goes on to the next of both.
func (p panelsOfFP16) multiply() {
	half := func(tile int, base GPPhysical, n int) {
		for i := range 2 {
			loadTileAt(tile+i, base, p.line, n*halfBytes+i*tileBytes)
		}
	}
	asked := 0
	four := func(lines int) {
		for i := range 4 {
			multiplyTwoWay(i, 4+i/2, 6+i%2)
		}
		for range lines {
			askLine(p.tmp, p.apart, &asked)
		}
	}
	MOVQ(p.ahead, p.tmp)
	half(4, p.a, 0)
	half(6, p.b, 1)
	four(6)
	half(6, p.b, 0)
	four(5)
	half(4, p.a, 1)
	four(5)
	ADDQ(frame.Field(fieldHalfAheadStep), p.ahead)
	ADDQ(U32(halfBlockBytes), p.a)
	ADDQ(U32(halfBlockBytes), p.b)
}

// storeSums leaves the sums of a strip in the room, and goes on to the next strip's scales.
func (p panelsOfFP16) storeSums() {
	for i := range 4 {
		storeTileAt(i, p.room, p.line, i*tileBytes)
	}
	MOVQ(p.c, p.lateC)
	MOVQ(p.backB, p.tmp)
	MOVQ(p.tmp, p.lateB)
	MOVQ(p.backA, p.tmp)
	MOVQ(p.tmp, p.lateA)
	ADDQ(U32(128), p.tmp)
	MOVQ(p.tmp, p.backA)
}

// scaleSums takes the scales of A's rows and B's columns back, from a room to 32 rows of C,
// four at a time. What goes past
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
		frame.Next(n, name)
	}
	// Two tiles of upper rows, then two of lower.
	each := func(name string, store func(z VecPhysical, to Mem)) {
		for _, part := range []string{"Upper", "Lower"} {
			MOVQ(U32(4), n)
			rows(name+part, store)
			ADDQ(U32(tileBytes), room)
		}
	}
	frame.Compare(past, Imm(0), JEQ, "near")
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

// hasFP16 asks the processor whether it multiplies tiles of half precision (leaf 7, part 1, bit 21 of EAX).
func hasFP16() {
	TEXT("hasFP16", NOSPLIT, "func() bool")
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
