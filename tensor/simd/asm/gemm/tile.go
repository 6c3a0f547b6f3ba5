package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
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
	sum := func(r, v int) VecPhysical { return f.vec[r*vectors+v] }
	b := f.vec[2*f.full : 2*f.full+2]
	broadcast := f.vec[2*f.full+2 : 2*f.full+4]

	// Rows of C are stored at the very end; ask for them now, to own them by then.
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

	panel, k, ahead, aheadStep := RDI, RCX, R13, RBX
	a, rowStep, kStep := R8, leftPitch, 4
	if packed {
		// A packed row is the tile's rows rounded up to whole vectors.
		rowStep, kStep = 4, (4*f.full+f.bytes-1)/f.bytes*f.bytes
	}
	frame.Get(fieldA, a)
	frame.Get(fieldB, panel)
	frame.Get(fieldK, k)
	frame.Get(fieldAhead, ahead)
	frame.Get(fieldAheadStep, aheadStep)
	for r := range rows {
		for v := range vectors {
			if f.bytes == 64 {
				VPXORD(sum(r, v), sum(r, v), sum(r, v))
			} else {
				VXORPS(sum(r, v), sum(r, v), sum(r, v))
			}
		}
	}
	step := func(i int) {
		for v := range vectors {
			VMOVUPS(Mem{Base: panel, Disp: (2*i + v) * f.bytes}, b[v])
		}
		for r := range rows {
			m := Mem{Base: a, Disp: r*rowStep + i*kStep}
			if f.bytes == 64 && r%3 > 0 {
				for v := range vectors {
					VFMADD231PS_BCST(m, b[v], sum(r, v))
				}
				continue
			}
			x := broadcast[r%2]
			VBROADCASTSS(m, x)
			for v := range vectors {
				VFMADD231PS(b[v], x, sum(r, v))
			}
		}
	}
	turn := func(name string, steps int, after string) {
		CMPQ(k, Imm(uint64(steps)))
		JLT(LabelRef(after))
		Label(name)
		for i := range steps {
			step(i)
			if i%2 == 0 {
				m := Mem{Base: ahead}
				if i > 0 {
					m.Index, m.Scale = aheadStep, uint8(i)
				}
				PREFETCHT1(m)
			}
		}
		if steps == 1 {
			ADDQ(aheadStep, ahead)
		} else {
			LEAQ(Mem{Base: ahead, Index: aheadStep, Scale: uint8(steps)}, ahead)
		}
		ADDQ(U32(2*f.bytes*steps), panel)
		ADDQ(U32(steps*kStep), a)
		SUBQ(Imm(uint64(steps)), k)
		CMPQ(k, Imm(uint64(steps)))
		JGE(LabelRef(name))
		Label(after)
	}
	turn("turn", unroll, "rest")
	turn("single", 1, "sums")
	f.store(least, rows, vectors, sum)
	VZEROUPPER()
	RET()
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
				CMPQ(wanted, Imm(uint64(r+1)))
				JEQ(LabelRef("stored"))
			}
			if r+1 < rows {
				ADDQ(crow, c)
			}
		}
	}
	CMPQ(frame.Field(fieldAdd), Imm(0))
	JEQ(LabelRef("write"))
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
