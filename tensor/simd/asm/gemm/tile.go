package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// tile: all sums of the tile stay in registers while k runs. Each step loads one
// row of the packed panel of B and, row by row, broadcasts one number of A.
func (f flavour) tile(rows, vectors int) {
	TEXT(fmt.Sprintf("%sr%dw%d", f.name, rows, vectors), NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	t := RAX
	Load(Param("t"), t)
	field := func(off int, to GPPhysical) { MOVQ(Mem{Base: t, Disp: off}, to) }
	sum := func(r, v int) VecPhysical { return f.vec[r*vectors+v] }
	b := f.vec[2*f.full : 2*f.full+2]
	broadcast := f.vec[2*f.full+2 : 2*f.full+4]

	// Rows of C are stored at the very end; ask for them now, to own them by then.
	field(fieldC, RBX)
	field(fieldCRow, RCX)
	for r := range rows {
		prefetchToWrite(0)
		if vectors == 2 && f.bytes == 64 {
			prefetchToWrite(64)
		}
		if r < rows-1 {
			ADDQ(RCX, RBX)
		}
	}

	// Three rows of A hang on one register: base, base + row, base + 2 rows.
	bases := []GPPhysical{R8, R9, R10, R11, R12}[:(rows+2)/3]
	row, step, k, ahead, aheadStep, panel := RSI, RDX, RCX, R13, RBX, RDI
	field(fieldA, bases[0])
	field(fieldARow, row)
	for i := 1; i < len(bases); i++ {
		LEAQ(Mem{Base: bases[i-1], Index: row, Scale: 2}, bases[i])
		ADDQ(row, bases[i])
	}
	field(fieldAStep, step)
	field(fieldB, panel)
	field(fieldK, k)
	field(fieldAhead, ahead)
	field(fieldAheadStep, aheadStep)
	at := func(r int) Mem {
		m := Mem{Base: bases[r/3]}
		if r%3 > 0 {
			m.Index, m.Scale = row, uint8(r%3)
		}
		return m
	}

	for r := range rows {
		for v := range vectors {
			if f.bytes == 64 {
				VPXORD(sum(r, v), sum(r, v), sum(r, v))
			} else {
				VXORPS(sum(r, v), sum(r, v), sum(r, v))
			}
		}
	}
	Label("step")
	for v := range vectors {
		VMOVUPS(Mem{Base: panel, Disp: v * f.bytes}, b[v])
	}
	for r := range rows {
		x := broadcast[r%2]
		VBROADCASTSS(at(r), x)
		for v := range vectors {
			VFMADD231PS(b[v], x, sum(r, v))
		}
	}
	PREFETCHT0(Mem{Base: ahead})
	ADDQ(aheadStep, ahead)
	ADDQ(Imm(uint64(2*f.bytes)), panel)
	for _, p := range bases {
		ADDQ(step, p)
	}
	DECQ(k)
	JNZ(LabelRef("step"))

	f.store(rows, vectors, sum)
	VZEROUPPER()
	RET()
}

// store writes the sums, or adds them, within the tile's columns.
func (f flavour) store(rows, vectors int, sum func(r, v int) VecPhysical) {
	t, c, crow := RAX, RDI, RSI
	MOVQ(Mem{Base: t, Disp: fieldC}, c)
	MOVQ(Mem{Base: t, Disp: fieldCRow}, crow)
	MOVQ(Mem{Base: t, Disp: fieldCols}, RCX)
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
			if r < rows-1 {
				ADDQ(crow, c)
			}
		}
	}
	CMPQ(Mem{Base: t, Disp: fieldAdd}, Imm(0))
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
	VZEROUPPER()
	RET()
	Label("write")
	MOVQ(Mem{Base: t, Disp: fieldC}, c)
	each(func(m Mem, s VecPhysical, v int) {
		if f.bytes == 64 {
			VMOVUPS(s, []OpmaskPhysical{K1, K2}[v], m)
		} else {
			VMASKMOVPS(s, free[v], m)
		}
	})
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
