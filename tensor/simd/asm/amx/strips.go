package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// Offsets of the fields of simd.Strips16.
const (
	stripsA = 8 * iota
	stripsB
	stripsC
	stripsRoom
	stripsUnit
	stripsUnitC
	stripsUnits
	stripsPanels
	stripsBlocks
	stripsLast
	stripsRow
	stripsSumRow
	stripsLines
	stripsLine
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
	roomSums   = 6 << 10
)

// strips goes over units of 32 rows, in each over panels of so many tiles' columns: products of two strips of 16 rows,
// then, while these are under way, lines of the panel before are rounded.
func strips(tiles int) {
	TEXT(fmt.Sprintf("strips16By%d", tiles), NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	LEAQ(Mem{Base: t, Disp: stripsConfig}, RBX)
	loadConfig()
	at := func(off int) Mem { return Mem{Base: t, Disp: off} }
	b, line, row, a, c := RBX, RCX, RDX, RSI, R8
	sums, made, rows, n, step, strip, done, next := R9, R10, R11, R12, R13, R15, RDI, R14
	local := AllocLocal(56)
	units, panels, panelB, unitC, padded, pads := local, local.Offset(8), local.Offset(16), local.Offset(24), local.Offset(32), local.Offset(40)
	ahead := lanes.Across{Next: RBP, End: local.Offset(48)}
	copyTo := func(from, to Op) { MOVQ(from, n); MOVQ(n, to) }

	VMOVDQU16(at(stripsOrder), Z31)
	KMOVD(at(stripsTaken), K1)
	KMOVD(at(stripsKept), K2)
	copyTo(at(stripsUnits), units)
	copyTo(at(stripsC), unitC)
	MOVQ(at(stripsA), next)
	MOVQ(at(stripsFrom), ahead.Next)
	MOVQ(at(stripsRow), row)
	MOVQ(U32(64), line)
	XORQ(done, done)
	MOVQ(at(stripsRoom), n)
	MOVQ(n, padded)
	ADDQ(U32(roomPadded), n)
	MOVQ(n, pads)
	LEAQ(Mem{Base: n, Disp: roomPadded}, sums)
	LEAQ(Mem{Base: sums, Disp: roomSums}, made)

	pad := func(to Mem, name string) {
		MOVQ(to, a)
		MOVQ(at(stripsSteps), n)
		Label(name)
		VMOVDQU16_Z(Mem{Base: next}, K1, Z0)
		VPERMW_Z(Z0, Z31, K2, Z0)
		VMOVDQU16(Z0, Mem{Base: a})
		ADDQ(at(stripsTake), next)
		ADDQ(at(stripsPut), a)
		DECQ(n)
		JNZ(LabelRef(name))
	}
	lines := func(name string, store func(Op, Op)) {
		Label(name)
		VMOVUPS(Mem{Base: c}, Z0)
		VMOVUPS(Mem{Base: c, Disp: 64}, Z1)
		lanes.RoundPair(Z0, Z1, Z2)
		store(Z2, Mem{Base: done})
		ADDQ(I32(128), c)
		ADDQ(step, done)
		DECQ(n)
		JNZ(LabelRef(name))
	}
	round := func(name string) {
		TESTQ(done, done)
		JEQ(LabelRef(name + "none"))
		MOVQ(made, c)
		MOVQ(at(stripsLines), n)
		MOVQ(at(stripsLine), step)
		CMPQ(at(stripsPast), Imm(0))
		JEQ(LabelRef(name + "near"))
		lines(name+"past", func(v, m Op) { VMOVNTDQ(v, m) })
		JMP(LabelRef(name + "none"))
		Label(name + "near")
		lines(name, func(v, m Op) { VMOVDQU64(v, m) })
		Label(name + "none")
	}

	CMPQ(at(stripsSteps), Imm(0))
	JEQ(LabelRef("unit"))
	pad(padded, "first")
	Label("unit")
	MOVQ(next, n)
	ADDQ(at(stripsLead), n)
	ahead.Until(n, step)
	MOVQ(next, rows)
	CMPQ(at(stripsSteps), Imm(0))
	JNE(LabelRef("copied"))
	ADDQ(at(stripsUnit), next)
	JMP(LabelRef("ready"))
	Label("copied")
	MOVQ(padded, rows)
	CMPQ(units, Imm(1))
	JEQ(LabelRef("ready"))
	pad(pads, "more")
	copyTo(pads, padded)
	MOVQ(rows, pads)
	Label("ready")
	copyTo(at(stripsB), panelB)
	copyTo(at(stripsPanels), panels)
	MOVQ(unitC, strip)
	Label("panel")
	stripsTiles(tiles, at, panelB, ahead)
	round("before")
	MOVQ(strip, done)
	ADDQ(line, strip)
	XCHGQ(sums, made)
	MOVQ(b, panelB)
	SUBQ(Imm(1), panels)
	JNZ(LabelRef("panel"))
	MOVQ(at(stripsUnitC), n)
	ADDQ(n, unitC)
	SUBQ(Imm(1), units)
	JNZ(LabelRef("unit"))
	round("end")
	releaseTiles()
	VZEROUPPER()
	RET()
}

// stripsTiles multiplies a panel of two strips: rows, which lie row bytes apart, to sums; meanwhile it asks for rows to come.
// It leaves b behind the panel. With up to two tiles' columns there is room for sums of both strips at once.
func stripsTiles(tiles int, at func(off int) Mem, panelB Mem, ahead lanes.Across) {
	b, line, row, a, c := RBX, RCX, RDX, RSI, R8
	sums, rows, k, step := R9, R11, R12, R13
	strips, left, right := 2, 4, 8-tiles
	if tiles == 3 {
		strips, left = 1, 3
	}
	below := func(base GPPhysical, stride Op, to GPPhysical) { // sixteen rows
		MOVQ(stride, step)
		SHLQ(Imm(4), step)
		ADDQ(base, step)
		MOVQ(step, to)
	}
	MOVQ(rows, a)
	MOVQ(sums, c)
	for first := 0; first < 2; first += strips {
		depth := fmt.Sprintf("depth%d", first)
		if first > 0 {
			below(rows, row, a)
			below(sums, at(stripsSumRow), c)
		}
		MOVQ(panelB, b)
		MOVQ(at(stripsBlocks), k)
		for i := range strips * tiles {
			zeroTile(i)
		}
		Label(depth)
		for i := range strips {
			if i == 0 {
				loadTile(left, a, row)
				for j := range tiles {
					stripsRight(right+j, j, at)
				}
			} else {
				below(a, row, step)
				loadTileAt(left+i, step, row, 0)
			}
			for j := range tiles {
				multiply(i*tiles+j, left+i, right+j)
			}
			asked := fmt.Sprintf("%sask%d", depth, i)
			MOVQ(at(stripsAsk), step)
			Label(asked)
			ahead.Four(func(m Op) { PREFETCHT1(m) }, asked+"end")
			DECQ(step)
			JNZ(LabelRef(asked))
			Label(asked + "end")
		}
		ADDQ(line, a)
		ADDQ(I32(2048), b)
		DECQ(k)
		JEQ(LabelRef(depth + "end"))
		CMPQ(k, Imm(1))
		JNE(LabelRef(depth))
		ADDQ(at(stripsLast), a)
		JMP(LabelRef(depth))
		Label(depth + "end")
		for i := range strips {
			if i > 0 {
				below(c, at(stripsSumRow), c)
			}
			MOVQ(at(stripsSumRow), step)
			for j := range tiles {
				storeTileAt(i*tiles+j, c, step, 64*j)
			}
		}
	}
}

// stripsRight loads tile j of a block of B: the third is in the next panel.
func stripsRight(tile, j int, at func(off int) Mem) {
	b, line, step := RBX, RCX, R13
	if j < 2 {
		loadTileAt(tile, b, line, 1024*j)
		return
	}
	MOVQ(at(stripsBlocks), step)
	SHLQ(Imm(11), step)
	ADDQ(b, step)
	loadTileAt(tile, step, line, 0)
}
