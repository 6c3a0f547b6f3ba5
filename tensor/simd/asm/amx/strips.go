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

// strips goes over units of 32 rows. Of up to three tiles' columns a step is a unit: products of its two strips of 16 rows,
// then, while these are under way, lines of the unit before are rounded. Of more columns a step is a strip, whose panels of
// two tiles' columns are made one by one, and with each some rows of the strip before leave: whole ones, since lines that
// lie apart go past the caches at two thirds of the speed.
func strips(tiles int, wide bool) {
	name := fmt.Sprintf("strips16By%d", tiles)
	if wide {
		name = "strips16Wide"
	}
	TEXT(name, NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	LEAQ(Mem{Base: t, Disp: stripsConfig}, RBX)
	loadConfig()
	at := func(off int) Mem { return Mem{Base: t, Disp: off} }
	b, line, row, a, c := RBX, RCX, RDX, RSI, R8
	sums, made, rows, n, step, strip, done, next := R9, R10, R11, R12, R13, R15, RDI, R14
	local := AllocLocal(80)
	units, panels, panelB, padded, pads := local, local.Offset(8), local.Offset(16), local.Offset(24), local.Offset(32)
	ahead := lanes.Across{Next: RBP, End: local.Offset(40)}
	left, half, nowSums, nowMade := local.Offset(48), local.Offset(56), local.Offset(64), local.Offset(72)
	copyTo := func(from, to Op) { MOVQ(from, n); MOVQ(n, to) }

	VMOVDQU16(at(stripsOrder), Z31)
	KMOVD(at(stripsTaken), K1)
	KMOVD(at(stripsKept), K2)
	copyTo(at(stripsUnits), units)
	MOVQ(at(stripsC), strip)
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
	// lines rounds n lines: those of a row follow each other, in sums and in C.
	lines := func(name string, store func(Op, Op)) {
		Label(name)
		VMOVUPS(Mem{Base: c}, Z0)
		VMOVUPS(Mem{Base: c, Disp: 64}, Z1)
		lanes.RoundPair(Z0, Z1, Z2)
		store(Z2, Mem{Base: done})
		ADDQ(I32(128), c)
		ADDQ(line, done)
		if wide {
			DECQ(step)
			JNZ(LabelRef(name + "row"))
			ADDQ(line, c)
			ADDQ(at(stripsJump), done)
			MOVQ(at(stripsPanels), step)
			Label(name + "row")
		}
		DECQ(n)
		JNZ(LabelRef(name))
	}
	round := func(name string, lineCount Op) {
		TESTQ(done, done)
		JEQ(LabelRef(name + "none"))
		MOVQ(made, c)
		MOVQ(lineCount, n)
		if wide {
			MOVQ(left, step)
		}
		CMPQ(at(stripsPast), Imm(0))
		JEQ(LabelRef(name + "near"))
		lines(name+"past", func(v, m Op) { VMOVNTDQ(v, m) })
		JMP(LabelRef(name + "rounded"))
		Label(name + "near")
		lines(name, func(v, m Op) { VMOVDQU64(v, m) })
		Label(name + "rounded")
		if wide {
			MOVQ(step, left)
			MOVQ(c, made)
		}
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
	if wide {
		MOVQ(U32(2), n)
		MOVQ(n, half)
		Label("strip")
		MOVQ(sums, nowSums)
		MOVQ(made, nowMade)
		copyTo(at(stripsPanels), left)
		MOVQ(n, panels)
	}
	copyTo(at(stripsB), panelB)
	Label("panel")
	stripsTiles(tiles, wide, at, panelB, ahead)
	if wide {
		round("before", U32(16))
		ADDQ(U32(128), sums)
		MOVQ(b, panelB)
		DECQ(panels)
		JNZ(LabelRef("panel"))
		MOVQ(nowSums, made)
		MOVQ(nowMade, sums)
		MOVQ(row, step)
		SHLQ(Imm(4), step)
		ADDQ(step, rows)
	} else {
		round("before", at(stripsLines))
		XCHGQ(sums, made)
	}
	MOVQ(strip, done)
	ADDQ(at(stripsNext), strip)
	if wide {
		DECQ(half)
		JNZ(LabelRef("strip"))
	}
	DECQ(units)
	JNZ(LabelRef("unit"))
	if wide {
		copyTo(at(stripsPanels), left)
	}
	round("end", at(stripsLines))
	releaseTiles()
	VZEROUPPER()
	RET()
}

// stripsTiles multiplies a panel of two strips, or of one: rows, which lie row bytes apart, to sums; meanwhile it asks for
// rows to come. It leaves b behind the panel. With up to two tiles' columns there is room for sums of both strips at once.
func stripsTiles(tiles int, single bool, at func(off int) Mem, panelB Mem, ahead lanes.Across) {
	b, line, row, a, c := RBX, RCX, RDX, RSI, R8
	sums, rows, k, step := R9, R11, R12, R13
	all, strips, left, right := 2, 2, 4, 8-tiles
	if single {
		all, strips = 1, 1
	}
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
	for first := 0; first < all; first += strips {
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
			MOVQ(at(stripsAsk), step)
			ahead.Fours(func(m Op) { PREFETCHT1(m) }, step, fmt.Sprintf("%sask%d", depth, i))
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
