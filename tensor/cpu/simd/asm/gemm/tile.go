package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// unroll is how many steps of k one turn of a tile's loop takes. What a core does
// besides multiplying costs nothing while it is alone; beside a busy sibling thread,
// which takes every other turn of the decoder, each instruction counts.
const unroll = 4

// leftPitch is simd.LeftPitch in bytes.
const leftPitch = 4 * (256 + 16)

// tile: all sums of the tile stay in registers while k runs. Each step loads one
// row of the packed panel of B and, row by row, one number of A: into a register for
// both multiplications, or as an operand of each, which is an instruction less but a
// load more. Two rows of three as operands keep decoder and load ports below their limits.
//
// A packed tile reads a panel of packed columns of A, the others rows of A
// leftPitch apart. Both are fixed steps, so that addresses take one register: an
// operand whose address takes two is decoded as two instructions.
//
// It multiplies all of its rows and stores the first ones, at least so many: a sum waits for the one before it, so that
// eight vectors of sums take no longer than one, and a tile for each number of rows is not worth its code.
func (f flavour) tile(least, rows, vectors int, packed bool) {
	name := fmt.Sprintf("%sr%dw%d", f.name, rows, vectors)
	if packed {
		name += "packed"
	}
	frame.Begin(name)
	f.ownC(rows, vectors)
	t := tile{flavour: f, rows: rows, vectors: vectors, rowStep: leftPitch, kStep: 4,
		a: R8, panel: RDI, k: RCX, ahead: R13, aheadStep: RBX}
	if packed {
		// A packed row is the tile's rows rounded up to whole vectors.
		t.rowStep, t.kStep = 4, (4*f.full+f.bytes-1)/f.bytes*f.bytes
	}
	frame.Get(fieldA, t.a)
	frame.Get(fieldB, t.panel)
	frame.Get(fieldK, t.k)
	frame.Get(fieldAhead, t.ahead)
	frame.Get(fieldAheadStep, t.aheadStep)
	for _, s := range f.vec[:rows*vectors] {
		if f.bytes == 64 {
			VPXORD(s, s, s)
		} else {
			VXORPS(s, s, s)
		}
	}
	t.turn("turn", unroll, "rest")
	t.turn("single", 1, "sums")
	f.store(least, rows, vectors, t.sum)
	frame.End()
}

// ownC asks for rows of C, which are stored at the very end, to own them by then.
func (f flavour) ownC(rows, vectors int) {
	frame.Get(fieldC, RBX)
	frame.Get(fieldCRow, RCX)
	for r := range rows {
		prefetchToWrite(0)
		if vectors == 2 && f.bytes == 64 {
			prefetchToWrite(64)
		}
		if r < rows-1 {
			ADDQ(RCX, RBX)
		}
	}
}

// tile is where a tile stands.
type tile struct {
	flavour
	rows, vectors                 int
	rowStep, kStep                int // bytes of A from one row to the next, and from one step to the next
	a, panel, k, ahead, aheadStep GPPhysical
}

func (t tile) sum(r, v int) VecPhysical { return t.vec[r*t.vectors+v] }

// turn is so many steps at a time, while as many are left.
func (t tile) turn(name string, steps int, after string) {
	frame.Compare(t.k, Imm(uint64(steps)), JLT, after)
	Label(name)
	for i := range steps {
		t.step(i)
		if i%2 == 0 {
			m := Mem{Base: t.ahead}
			if i > 0 {
				m.Index, m.Scale = t.aheadStep, uint8(i)
			}
			PREFETCHT1(m)
		}
	}
	if steps == 1 {
		ADDQ(t.aheadStep, t.ahead)
	} else {
		LEAQ(Mem{Base: t.ahead, Index: t.aheadStep, Scale: uint8(steps)}, t.ahead)
	}
	ADDQ(U32(2*t.bytes*steps), t.panel)
	ADDQ(U32(steps*t.kStep), t.a)
	SUBQ(Imm(uint64(steps)), t.k)
	frame.Compare(t.k, Imm(uint64(steps)), JGE, name)
	Label(after)
}

// step multiplies a number of each row of A, i behind the first, with a row of the panel.
func (t tile) step(i int) {
	b, broadcast := t.vec[2*t.full:2*t.full+2], t.vec[2*t.full+2:2*t.full+4]
	for v := range t.vectors {
		VMOVUPS(Mem{Base: t.panel, Disp: (2*i + v) * t.bytes}, b[v])
	}
	for r := range t.rows {
		m := Mem{Base: t.a, Disp: r*t.rowStep + i*t.kStep}
		if t.bytes == 64 && r%3 > 0 {
			for v := range t.vectors {
				VFMADD231PS_BCST(m, b[v], t.sum(r, v))
			}
			continue
		}
		x := broadcast[r%2]
		VBROADCASTSS(m, x)
		for v := range t.vectors {
			VFMADD231PS(b[v], x, t.sum(r, v))
		}
	}
}

// store writes the sums, or adds them, within the tile's rows and columns.
func (f flavour) store(least, rows, vectors int, sum func(r, v int) VecPhysical) {
	c, crow, wanted := RDI, RSI, R8
	frame.Get(fieldRows, wanted)
	frame.Get(fieldC, c)
	frame.Get(fieldCRow, crow)
	frame.Get(fieldCols, RCX)
	// The sums take most registers; those of B and A are free now.
	free := f.vec[2*f.full : 2*f.full+4]
	if f.bytes == 64 {
		columnMasks(RCX, RDX)
	} else {
		LEAQ(NewDataAddr(Symbol{Name: "gemmMask", Static: true}, 64), RDX)
		SHLQ(Imm(2), RCX)
		SUBQ(RCX, RDX)
		for v := range vectors {
			VMOVUPS(Mem{Base: RDX, Disp: 32 * v}, free[v])
		}
	}
	each := func(body func(m Mem, s VecPhysical, v int)) {
		for r := range rows {
			for v := range vectors {
				body(Mem{Base: c, Disp: v * f.bytes}, sum(r, v), v)
			}
			if r+1 >= least && r+1 < rows {
				frame.Compare(wanted, Imm(uint64(r+1)), JEQ, "stored")
			}
			if r+1 < rows {
				ADDQ(crow, c)
			}
		}
	}
	frame.Compare(frame.Field(fieldAdd), Imm(0), JEQ, "write")
	each(func(m Mem, s VecPhysical, v int) {
		if f.bytes == 64 {
			VADDPS(m, s, []OpmaskPhysical{K1, K2}[v], s)
			VMOVUPS(s, []OpmaskPhysical{K1, K2}[v], m)
		} else {
			VMASKMOVPS(m, free[v], free[2])
			VADDPS(free[2], s, s)
			VMASKMOVPS(s, free[v], m)
		}
	})
	JMP(LabelRef("stored"))
	Label("write")
	each(func(m Mem, s VecPhysical, v int) {
		if f.bytes == 64 {
			VMOVUPS(s, []OpmaskPhysical{K1, K2}[v], m)
		} else {
			VMASKMOVPS(s, free[v], m)
		}
	})
	Label("stored")
}

// prefetchToWrite asks for the line at BX + offset to be owned by this core. The
// assembler has no name for the instruction (0F 0D /1).
func prefetchToWrite(offset uint32) {
	Instruction(&ir.Instruction{Opcode: "LONG", Operands: []Op{U32(0x004b0d0f | offset<<24)}, Inputs: []Op{RBX}})
}

// columnMasks puts the first n of 32 lanes into K1 (16) and K2 (16).
func columnMasks(n, tmp GPPhysical) {
	MOVQ(I32(-1), tmp)
	BZHIQ(n, tmp, tmp)
	KMOVW(tmp.As32(), K1)
	SHRQ(Imm(16), tmp)
	KMOVW(tmp.As32(), K2)
}

// masks are sixteen lanes that are set, then sixteen that are not: reading from
// lane 16-n on gives n.
func masks() {
	GLOBL("gemmMask", RODATA|NOPTR)
	for i := range 32 {
		x := uint32(0)
		if i < 16 {
			x = ^uint32(0)
		}
		DATA(4*i, U32(x))
	}
}
