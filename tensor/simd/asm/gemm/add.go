package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// addRows512 adds rows to sum, four at a time while there are four: the sums are
// then loaded and stored once for four rows.
func addRows512(b16 bool) {
	name, src, size := "addRows512", "float32", 4
	if b16 {
		name, src, size = name+"b16", "uint16", 2
	}
	sum, row, rows, cols, stride := RDI, RSI, RDX, RCX, R8
	frame.Func(name, "func(sum *float32, src *"+src+", rows, cols, stride int)", sum, row, rows, cols, stride)
	stride3 := R9
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	// K1: the lanes of the last, partial vector.
	tail := R10
	MOVQ(cols, tail)
	ANDQ(Imm(15), tail)
	MOVQ(I32(-1), R11)
	BZHIQ(tail, R11, R11)
	KMOVW(R11.As32(), K1)
	SHRQ(Imm(4), cols)
	at, to, n, ahead := R11, R12, R13, RBX
	place := func(base GPPhysical, r int) Mem {
		switch r {
		case 0:
			return Mem{Base: base}
		case 3:
			return Mem{Base: base, Index: stride3, Scale: 1}
		}
		return Mem{Base: base, Index: stride, Scale: uint8(r)}
	}
	read := func(r int, masked bool, z VecPhysical) {
		m := place(at, r)
		switch {
		case b16 && masked:
			VPMOVZXWD_Z(m, K1, z)
		case b16:
			VPMOVZXWD(m, z)
		case masked:
			VMOVUPS_Z(m, K1, z)
		default:
			VMOVUPS(m, z)
		}
		if b16 {
			VPSLLD(Imm(16), z, z)
		}
	}
	step := func(group int, masked bool) {
		z := []VecPhysical{Z0, Z1, Z2, Z3}
		for r := range group {
			read(r, masked, z[r])
			if group == 4 && !masked {
				PREFETCHT1(place(ahead, r))
			}
		}
		if group == 4 {
			VADDPS(Z1, Z0, Z0)
			VADDPS(Z3, Z2, Z2)
			VADDPS(Z2, Z0, Z0)
		}
		if masked {
			VADDPS(Mem{Base: to}, Z0, K1, Z0)
			VMOVUPS(Z0, K1, Mem{Base: to})
		} else {
			VADDPS(Mem{Base: to}, Z0, Z0)
			VMOVUPS(Z0, Mem{Base: to})
		}
	}
	rowsOf := func(group int, name, after string) {
		Label(name)
		CMPQ(rows, Imm(uint64(group)))
		JLT(LabelRef(after))
		MOVQ(row, at)
		MOVQ(sum, to)
		if group == 4 {
			// Four rows at once is more streams than the processor follows by itself.
			LEAQ(Mem{Base: row, Index: stride, Scale: 8}, ahead)
		}
		MOVQ(cols, n)
		TESTQ(n, n)
		JEQ(LabelRef(name + "tail"))
		Label(name + "vector")
		step(group, false)
		ADDQ(Imm(uint64(16*size)), at)
		if group == 4 {
			ADDQ(Imm(uint64(16*size)), ahead)
		}
		ADDQ(Imm(64), to)
		DECQ(n)
		JNZ(LabelRef(name + "vector"))
		Label(name + "tail")
		TESTQ(tail, tail)
		JEQ(LabelRef(name + "next"))
		step(group, true)
		Label(name + "next")
		if group == 4 {
			LEAQ(Mem{Base: row, Index: stride, Scale: 4}, row)
		} else {
			ADDQ(stride, row)
		}
		SUBQ(Imm(uint64(group)), rows)
		JMP(LabelRef(name))
	}
	rowsOf(4, "four", "one")
	rowsOf(1, "one", "done")
	Label("done")
	VZEROUPPER()
	RET()
}

// addRows2 adds rows to sum, whole vectors of eight columns only.
func addRows2() {
	sum, row, rows, cols, stride := RDI, RSI, RDX, RCX, R8
	frame.Func("addRows256", "func(sum, src *float32, rows, cols, stride int)", sum, row, rows, cols, stride)
	SHLQ(Imm(2), cols)
	at := R9
	Label("row")
	XORQ(at, at)
	Label("vector")
	VMOVUPS(Mem{Base: sum, Index: at, Scale: 1}, Y0)
	VADDPS(Mem{Base: row, Index: at, Scale: 1}, Y0, Y0)
	VMOVUPS(Y0, Mem{Base: sum, Index: at, Scale: 1})
	ADDQ(Imm(32), at)
	CMPQ(at, cols)
	JLT(LabelRef("vector"))
	ADDQ(stride, row)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}
