package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// packArgs are the arguments of packing, in registers: row goes over rows of src,
// out over rows of the first panel.
type packArgs struct {
	out, row, rows, cols, stride, width, panel GPPhysical
}

// Registers of packing: whole panels of a row, columns that are left, rows that are, and where
// a panel is read and written.
var packWhole, packLeft, packRows, packFrom, packTo = RAX, RDX, RBX, R13, R15

// loadPack loads them. cols and width are numbers; stride of src's rows and panel,
// from one panel to the next, are bytes.
func loadPack(name, src string) packArgs {
	p := packArgs{RDI, RSI, RDX, RCX, R8, R9, R10}
	frame.Func(name, fmt.Sprintf("func(dst *float32, src *%s, rows, cols, stride, width, panel int)", src), p.out,
		p.row, p.rows, p.cols, p.stride, p.width, p.panel)
	// By division, which takes RDX.
	MOVQ(p.cols, packWhole)
	MOVQ(p.rows, packRows)
	XORL(EDX, EDX)
	DIVQ(p.width)
	return p
}

// packRows512 copies each row into panels whose rows are one vector or two. Reads
// keep to the row (K1 and K2 are the lanes of a whole panel, K3 and K4 those of the
// last); writes are whole vectors, since partial ones that straddle lines were found to
// cost ten times as much.
func packRows512(vectors int, b16 bool) {
	name, src, size := fmt.Sprintf("packRows512w%d", vectors), "float32", 4
	if b16 {
		name, src, size = name+"b16", "uint16", 2
	}
	p := loadPack(name, src)
	columnMasks(p.width, R12)
	last := R12
	MOVQ(I32(-1), last)
	BZHIQ(packLeft, last, last)
	KMOVW(last.As32(), K3)
	SHRQ(Imm(16), last)
	KMOVW(last.As32(), K4)
	// From here on a panel's width in src.
	SHLQ(Imm(uint64(size/2)), p.width)
	copyPanel := func(masks ...OpmaskPhysical) {
		for v := range vectors {
			z := []VecPhysical{Z0, Z1}[v]
			if b16 {
				VPMOVZXWD_Z(Mem{Base: packFrom, Disp: 16 * size * v}, masks[v], z)
				VPSLLD(Imm(16), z, z)
			} else {
				VMOVUPS_Z(Mem{Base: packFrom, Disp: 16 * size * v}, masks[v], z)
			}
			VMOVUPS(z, Mem{Base: packTo, Disp: 64 * v})
		}
	}
	p.eachPanel(64*vectors, func() {
		copyPanel(K1, K2)
		ADDQ(p.width, packFrom)
	}, func() { copyPanel(K3, K4) })
}

// eachPanel goes over rows, in each over whole panels and the last, whose rows take so many bytes.
func (p packArgs) eachPanel(bytes int, whole, last func()) {
	n := RCX
	Label("row")
	MOVQ(p.row, packFrom)
	MOVQ(p.out, packTo)
	MOVQ(packWhole, n)
	frame.Test(n, n, JEQ, "last")
	Label("panel")
	whole()
	ADDQ(p.panel, packTo)
	frame.Next(n, "panel")
	Label("last")
	frame.Test(packLeft, packLeft, JEQ, "next")
	last()
	Label("next")
	ADDQ(p.stride, p.row)
	ADDQ(Imm(uint64(bytes)), p.out)
	frame.Next(packRows, "row")
	frame.End()
}

// packRows2 is the same with AVX2, for panels whose rows are 8 or 16 numbers.
func packRows2(vectors int) {
	p := loadPack(fmt.Sprintf("packRows256w%d", vectors), "float32")
	setMask := func(n GPPhysical, to []VecPhysical) {
		LEAQ(NewDataAddr(Symbol{Name: "gemmMask", Static: true}, 64), R12)
		MOVQ(n, R13)
		SHLQ(Imm(2), R13)
		SUBQ(R13, R12)
		for v := range vectors {
			VMOVUPS(Mem{Base: R12, Disp: 32 * v}, to[v])
		}
	}
	all, some := []VecPhysical{Y2, Y3}, []VecPhysical{Y4, Y5}
	setMask(p.width, all)
	setMask(packLeft, some)
	copyPanel := func(mask []VecPhysical) {
		for v := range vectors {
			VMASKMOVPS(Mem{Base: packFrom, Disp: 32 * v}, mask[v], Y0)
			VMOVUPS(Y0, Mem{Base: packTo, Disp: 32 * v})
		}
	}
	p.eachPanel(32*vectors, func() {
		copyPanel(all)
		LEAQ(Mem{Base: packFrom, Index: p.width, Scale: 4}, packFrom)
	}, func() { copyPanel(some) })
}

// copyRows512 copies rows to rows leftPitch apart.
func copyRows512() {
	out, row, rows, cols, stride := RDI, RSI, RDX, RCX, R8
	frame.Func("copyRows512", "func(dst, src *float32, rows, cols, stride int)", out, row, rows, cols, stride)
	// K1: the lanes of the last, partial vector. Writing whole vectors is quicker and
	// stays within the pitch.
	MOVQ(cols, R9)
	ANDQ(Imm(15), R9)
	MOVQ(I32(-1), R10)
	BZHIQ(R9, R10, R10)
	KMOVW(R10.As32(), K1)
	SHRQ(Imm(4), cols)
	at, to, n := R10, R11, R12
	Label("row")
	MOVQ(row, at)
	MOVQ(out, to)
	MOVQ(cols, n)
	SUBQ(Imm(4), n)
	JLT(LabelRef("few"))
	Label("four")
	for v := range 4 {
		VMOVUPS(Mem{Base: at, Disp: 64 * v}, []VecPhysical{Z0, Z1, Z2, Z3}[v])
	}
	for v := range 4 {
		VMOVUPS([]VecPhysical{Z0, Z1, Z2, Z3}[v], Mem{Base: to, Disp: 64 * v})
	}
	ADDQ(U32(256), at)
	ADDQ(U32(256), to)
	SUBQ(Imm(4), n)
	JGE(LabelRef("four"))
	Label("few")
	ADDQ(Imm(4), n)
	JEQ(LabelRef("last"))
	Label("one")
	VMOVUPS(Mem{Base: at}, Z0)
	VMOVUPS(Z0, Mem{Base: to})
	ADDQ(Imm(64), at)
	ADDQ(Imm(64), to)
	frame.Next(n, "one")
	Label("last")
	VMOVUPS_Z(Mem{Base: at}, K1, Z0)
	VMOVUPS(Z0, Mem{Base: to})
	ADDQ(stride, row)
	ADDQ(U32(leftPitch), out)
	frame.Next(rows, "row")
	frame.End()
}
