package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
	"starling/tensor/simd/asm/lanes"
)

// Offsets of the fields of simd.Strips16.
const (
	stripsA = 8 * iota
	stripsB
	stripsC
	stripsRoom
	stripsUnit
	stripsNext
	stripsUnits
	stripsPanels
	stripsBlocks
	stripsLast
	stripsRow
	stripsSumRow
	stripsLines
	stripsJump
	stripsPast
	stripsFrom
	stripsLead
	stripsAsk
	stripsSteps
	stripsTake
	stripsPut
	stripsTaken
	stripsKept
	stripsOrder
	stripsConfig = stripsOrder + 64
)

// The room has padded rows and sums, each twice: while those of a unit are made, the others are read. Loads right behind
// what was stored in parts would wait for it.
const (
	roomPadded = 2 << 10
	roomSums   = 17 << 10
)

// strips is a product of units of 32 rows, of up to three tiles' columns. With wide it is of panels of two tiles' columns.
type strips struct {
	tiles int
	wide  bool

	next, rows, row, a GPPhysical // rows to come, of the unit at hand, how far these are apart, and what is multiplied
	b, line            GPPhysical
	sums, made, c      GPPhysical // sums of this step and of the one before, and where in them
	strip, done        GPPhysical // where in C both belong; there is none before the first
	n, step            GPPhysical

	units, panels, panelB, padded, pads Mem // padded rows of this unit, and of the next
	left, half, nowSums, nowMade        Mem // of a wide product: panels of a row, strips, and both sums' starts
	ahead                               lanes.Across
}

// strips16 goes over units of 32 rows. Of up to three tiles' columns a step is a unit: products of its two strips of 16
// rows, then, while these are under way, lines of the unit before are rounded. Of more columns a step is a strip, whose
// panels of two tiles' columns are made one by one, and with each some rows of the strip before leave: whole ones, since
// lines that lie apart go past the caches at two thirds of the speed.
func strips16(tiles int, wide bool) {
	name := fmt.Sprintf("strips16By%d", tiles)
	if wide {
		name = "strips16Wide"
	}
	begin(name, frame.Field(stripsConfig))
	s := newStrips(tiles, wide)
	CMPQ(frame.Field(stripsSteps), Imm(0))
	JEQ(LabelRef("unit"))
	s.pad(s.padded, "first")
	Label("unit")
	s.nextUnit()
	if wide {
		s.wideUnit()
	} else {
		s.unit()
	}
	DECQ(s.units)
	JNZ(LabelRef("unit"))
	if wide {
		s.copy(frame.Field(stripsPanels), s.left)
	}
	s.round("end", frame.Field(stripsLines))
	end()
}

func newStrips(tiles int, wide bool) strips {
	s := strips{tiles: tiles, wide: wide, next: R14, rows: R11, row: RDX, a: RSI, b: RBX, line: RCX, sums: R9, made: R10, c: R8,
		strip: R15, done: RDI, n: R12, step: R13}
	var end Mem
	frame.Locals(&s.units, &s.panels, &s.panelB, &s.padded, &s.pads, &end, &s.left, &s.half, &s.nowSums, &s.nowMade)
	s.ahead = lanes.Across{Next: RBP, End: end}
	VMOVDQU16(frame.Field(stripsOrder), Z31)
	KMOVD(frame.Field(stripsTaken), K1)
	KMOVD(frame.Field(stripsKept), K2)
	s.copy(frame.Field(stripsUnits), s.units)
	frame.Get(stripsC, s.strip)
	frame.Get(stripsA, s.next)
	frame.Get(stripsFrom, s.ahead.Next)
	frame.Get(stripsRow, s.row)
	MOVQ(U32(64), s.line)
	XORQ(s.done, s.done)
	frame.Keep(stripsRoom, s.n, s.padded)
	ADDQ(U32(roomPadded), s.n)
	MOVQ(s.n, s.pads)
	LEAQ(Mem{Base: s.n, Disp: roomPadded}, s.sums)
	LEAQ(Mem{Base: s.sums, Disp: roomSums}, s.made)
	return s
}

func (s strips) copy(from, to Op) {
	MOVQ(from, s.n)
	MOVQ(s.n, to)
}

// pad copies a unit's rows, with zeros where they end before a pair does.
func (s strips) pad(to Mem, name string) {
	MOVQ(to, s.a)
	frame.Get(stripsSteps, s.n)
	Label(name)
	VMOVDQU16_Z(Mem{Base: s.next}, K1, Z0)
	VPERMW_Z(Z0, Z31, K2, Z0)
	VMOVDQU16(Z0, Mem{Base: s.a})
	ADDQ(frame.Field(stripsTake), s.next)
	ADDQ(frame.Field(stripsPut), s.a)
	DECQ(s.n)
	JNZ(LabelRef(name))
}

// nextUnit has rows begin with those of a unit, as they lie, or padded before: then those of the next are padded.
func (s strips) nextUnit() {
	MOVQ(s.next, s.n)
	ADDQ(frame.Field(stripsLead), s.n)
	s.ahead.Until(s.n, s.step)
	MOVQ(s.next, s.rows)
	CMPQ(frame.Field(stripsSteps), Imm(0))
	JNE(LabelRef("copied"))
	ADDQ(frame.Field(stripsUnit), s.next)
	JMP(LabelRef("ready"))
	Label("copied")
	MOVQ(s.padded, s.rows)
	CMPQ(s.units, Imm(1))
	JEQ(LabelRef("ready"))
	s.pad(s.pads, "more")
	s.copy(s.pads, s.padded)
	MOVQ(s.rows, s.pads)
	Label("ready")
}

// unit multiplies both strips of a unit.
func (s strips) unit() {
	s.copy(frame.Field(stripsB), s.panelB)
	s.multiply()
	s.round("before", frame.Field(stripsLines))
	XCHGQ(s.sums, s.made)
	s.nextStrip()
}

// wideUnit multiplies the panels of a unit's strips.
func (s strips) wideUnit() {
	MOVQ(U32(2), s.n)
	MOVQ(s.n, s.half)
	Label("strip")
	MOVQ(s.sums, s.nowSums)
	MOVQ(s.made, s.nowMade)
	s.copy(frame.Field(stripsPanels), s.left)
	MOVQ(s.n, s.panels)
	s.copy(frame.Field(stripsB), s.panelB)
	Label("panel")
	s.multiply()
	s.round("before", U32(16))
	ADDQ(U32(128), s.sums)
	MOVQ(s.b, s.panelB)
	DECQ(s.panels)
	JNZ(LabelRef("panel"))
	MOVQ(s.nowSums, s.made)
	MOVQ(s.nowMade, s.sums)
	MOVQ(s.row, s.step)
	SHLQ(Imm(4), s.step)
	ADDQ(s.step, s.rows)
	s.nextStrip()
	DECQ(s.half)
	JNZ(LabelRef("strip"))
}

func (s strips) nextStrip() {
	MOVQ(s.strip, s.done)
	ADDQ(frame.Field(stripsNext), s.strip)
}

// round rounds so many lines of the step before, if there was one.
func (s strips) round(name string, lines Op) {
	TESTQ(s.done, s.done)
	JEQ(LabelRef(name + "none"))
	MOVQ(s.made, s.c)
	MOVQ(lines, s.n)
	if s.wide {
		MOVQ(s.left, s.step)
	}
	CMPQ(frame.Field(stripsPast), Imm(0))
	JEQ(LabelRef(name + "near"))
	s.lines(name+"past", func(v, m Op) { VMOVNTDQ(v, m) })
	JMP(LabelRef(name + "rounded"))
	Label(name + "near")
	s.lines(name, func(v, m Op) { VMOVDQU64(v, m) })
	Label(name + "rounded")
	if s.wide {
		MOVQ(s.step, s.left)
		MOVQ(s.c, s.made)
	}
	Label(name + "none")
}

// lines rounds n lines: those of a row follow each other, in sums and in C.
func (s strips) lines(name string, store func(Op, Op)) {
	Label(name)
	VMOVUPS(Mem{Base: s.c}, Z0)
	VMOVUPS(Mem{Base: s.c, Disp: 64}, Z1)
	lanes.RoundPair(Z0, Z1, Z2)
	store(Z2, Mem{Base: s.done})
	ADDQ(I32(128), s.c)
	ADDQ(s.line, s.done)
	if s.wide {
		DECQ(s.step)
		JNZ(LabelRef(name + "row"))
		ADDQ(s.line, s.c)
		ADDQ(frame.Field(stripsJump), s.done)
		frame.Get(stripsPanels, s.step)
		Label(name + "row")
	}
	DECQ(s.n)
	JNZ(LabelRef(name))
}

// multiply multiplies a panel of two strips, or of one: rows, which lie row bytes apart, to sums; meanwhile it asks for
// rows to come. It leaves b behind the panel. With up to two tiles' columns there is room for sums of both strips at once.
func (s strips) multiply() {
	all, together := 2, 2
	if s.wide {
		all, together = 1, 1
	}
	if s.tiles == 3 {
		together = 1
	}
	MOVQ(s.rows, s.a)
	MOVQ(s.sums, s.c)
	for first := 0; first < all; first += together {
		if first > 0 {
			s.below(s.rows, s.row, s.a)
			s.below(s.sums, frame.Field(stripsSumRow), s.c)
		}
		MOVQ(s.panelB, s.b)
		s.depth(fmt.Sprintf("depth%d", first), together)
		for i := range together {
			if i > 0 {
				s.below(s.c, frame.Field(stripsSumRow), s.c)
			}
			frame.Get(stripsSumRow, s.step)
			for j := range s.tiles {
				storeTileAt(i*s.tiles+j, s.c, s.step, 64*j)
			}
		}
	}
}

// below is sixteen rows below base.
func (s strips) below(base GPPhysical, stride Op, to GPPhysical) {
	MOVQ(stride, s.step)
	SHLQ(Imm(4), s.step)
	ADDQ(base, s.step)
	MOVQ(s.step, to)
}

// depth multiplies all blocks of so many strips. The first tiles have their sums, and the last a block of B.
func (s strips) depth(name string, strips int) {
	left, right, k := 4, 8-s.tiles, s.n
	if s.tiles == 3 {
		left = 3
	}
	frame.Get(stripsBlocks, k)
	for i := range strips * s.tiles {
		zeroTile(i)
	}
	Label(name)
	for i := range strips {
		if i == 0 {
			loadTile(left, s.a, s.row)
			for j := range s.tiles {
				s.loadB(right+j, j)
			}
		} else {
			s.below(s.a, s.row, s.step)
			loadTileAt(left+i, s.step, s.row, 0)
		}
		for j := range s.tiles {
			multiply(i*s.tiles+j, left+i, right+j)
		}
		frame.Get(stripsAsk, s.step)
		s.ahead.Fours(func(m Op) { PREFETCHT1(m) }, s.step, fmt.Sprintf("%sask%d", name, i))
	}
	ADDQ(s.line, s.a)
	ADDQ(I32(2048), s.b)
	DECQ(k)
	JEQ(LabelRef(name + "end"))
	CMPQ(k, Imm(1))
	JNE(LabelRef(name))
	ADDQ(frame.Field(stripsLast), s.a)
	JMP(LabelRef(name))
	Label(name + "end")
}

// loadB loads tile j of a block of B: the third is in the next panel.
func (s strips) loadB(tile, j int) {
	if j < 2 {
		loadTileAt(tile, s.b, s.line, 1024*j)
		return
	}
	frame.Get(stripsBlocks, s.step)
	SHLQ(Imm(11), s.step)
	ADDQ(s.b, s.step)
	loadTileAt(tile, s.step, s.line, 0)
}
