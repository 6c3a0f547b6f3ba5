package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// addRows512 adds rows to sum, four at a time while there are four: the sums are
// then loaded and stored once for four rows.
func addRows512(b16 bool) {
	name, src, size := "addRows512", "float32", 4
	if b16 {
		name, src, size = name+"b16", "uint16", 2
	}
	a := rowAdder{b16: b16, size: size, sum: RDI, row: RSI, rows: RDX, cols: RCX, stride: R8, stride3: R9, tail: R10,
		at: R11, to: R12, n: R13, ahead: RBX}
	frame.Func(name, "func(sum *float32, src *"+src+", rows, cols, stride int)", a.sum, a.row, a.rows, a.cols, a.stride)
	LEAQ(Mem{Base: a.stride, Index: a.stride, Scale: 2}, a.stride3)
	MOVQ(a.cols, a.tail)
	ANDQ(Imm(15), a.tail)
	MOVQ(I32(-1), R11)
	BZHIQ(a.tail, R11, R11)
	KMOVW(R11.As32(), K1)
	SHRQ(Imm(4), a.cols)
	a.rowsOf(4, "four", "one")
	a.rowsOf(1, "one", "done")
	Label("done")
	frame.End()
}

// rowAdder is where addRows512 stands. K1 is the lanes of a row's last, partial vector.
type rowAdder struct {
	b16                             bool
	size                            int        // bytes of a number
	sum, row, rows, cols, stride    GPPhysical // parameters; cols becomes vectors
	stride3, tail, at, to, n, ahead GPPhysical
}

// rowsOf adds so many rows at a time, while there are as many.
func (a rowAdder) rowsOf(group int, name, after string) {
	Label(name)
	frame.Compare(a.rows, Imm(uint64(group)), JLT, after)
	MOVQ(a.row, a.at)
	MOVQ(a.sum, a.to)
	if group == 4 {
		// Four rows at once is more streams than the processor follows by itself.
		LEAQ(Mem{Base: a.row, Index: a.stride, Scale: 8}, a.ahead)
	}
	MOVQ(a.cols, a.n)
	frame.Test(a.n, a.n, JEQ, name+"tail")
	Label(name + "vector")
	a.step(group, false)
	ADDQ(Imm(uint64(16*a.size)), a.at)
	if group == 4 {
		ADDQ(Imm(uint64(16*a.size)), a.ahead)
	}
	ADDQ(Imm(64), a.to)
	frame.Next(a.n, name+"vector")
	Label(name + "tail")
	frame.Test(a.tail, a.tail, JEQ, name+"next")
	a.step(group, true)
	Label(name + "next")
	if group == 4 {
		LEAQ(Mem{Base: a.row, Index: a.stride, Scale: 4}, a.row)
	} else {
		ADDQ(a.stride, a.row)
	}
	SUBQ(Imm(uint64(group)), a.rows)
	JMP(LabelRef(name))
}

// step adds a vector of one row or four.
func (a rowAdder) step(group int, masked bool) {
	z := []VecPhysical{Z0, Z1, Z2, Z3}
	for r := range group {
		a.read(r, masked, z[r])
		if group == 4 && !masked {
			PREFETCHT1(a.place(a.ahead, r))
		}
	}
	if group == 4 {
		VADDPS(Z1, Z0, Z0)
		VADDPS(Z3, Z2, Z2)
		VADDPS(Z2, Z0, Z0)
	}
	if masked {
		VADDPS(Mem{Base: a.to}, Z0, K1, Z0)
		VMOVUPS(Z0, K1, Mem{Base: a.to})
	} else {
		VADDPS(Mem{Base: a.to}, Z0, Z0)
		VMOVUPS(Z0, Mem{Base: a.to})
	}
}

func (a rowAdder) read(r int, masked bool, z VecPhysical) {
	m := a.place(a.at, r)
	switch {
	case a.b16 && masked:
		VPMOVZXWD_Z(m, K1, z)
	case a.b16:
		VPMOVZXWD(m, z)
	case masked:
		VMOVUPS_Z(m, K1, z)
	default:
		VMOVUPS(m, z)
	}
	if a.b16 {
		VPSLLD(Imm(16), z, z)
	}
}

// place is r rows below base.
func (a rowAdder) place(base GPPhysical, r int) Mem {
	switch r {
	case 0:
		return Mem{Base: base}
	case 3:
		return Mem{Base: base, Index: a.stride3, Scale: 1}
	}
	return Mem{Base: base, Index: a.stride, Scale: uint8(r)}
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
	frame.Compare(at, cols, JLT, "vector")
	ADDQ(stride, row)
	frame.Next(rows, "row")
	frame.End()
}
