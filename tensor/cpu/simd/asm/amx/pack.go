package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// words loads 16 bfloat16 of two rows as 16 pairs, the first row's number low.
func words(first, second Mem, mask OpmaskPhysical, z, tmp VecPhysical) {
	VPMOVZXWD_Z(first, mask, z)
	VPMOVZXWD_Z(second, mask, tmp)
	VPSLLD(Imm(16), tmp, tmp)
	VPORD(tmp, z, z)
}

// lastMasks puts the lanes of the last n%32 columns into K3 and K4, and all into
// K1; left is set to n%32, n to n/32.
func lastMasks(n, left, tmp GPPhysical) {
	MOVQ(n, left)
	ANDQ(Imm(31), left)
	SHRQ(Imm(5), n)
	MOVQ(I32(-1), tmp)
	KMOVW(tmp.As32(), K1)
	BZHIQ(left, tmp, tmp)
	KMOVW(tmp.As32(), K3)
	SHRQ(Imm(16), tmp)
	KMOVW(tmp.As32(), K4)
}

// packAhead is how many bytes ahead of what is packed memory is asked for: as with all loops that compute much, the
// processor by itself looks too short a way ahead.
const packAhead = 8 << 10

// askPair asks for lines ahead of two rows.
func askPair(first, second Mem) {
	first.Disp += packAhead
	second.Disp += packAhead
	PREFETCHT0(first)
	PREFETCHT0(second)
}

// packPairs: for each pair of rows, all columns: 16 pairs to the first tile of a panel, 16
// to the second. blocks are of 32 rows.
func packPairs() {
	dst, src, blocks, cols, stride, panel := RDI, RSI, RDX, RCX, R8, R9
	frame.Func("packPairs512", "func(dst, src *uint16, blocks, cols, stride, panel int)", dst, src, blocks, cols,
		stride, panel)
	left, s, d, n, pairs := R10, R11, R12, R13, RBX
	lastMasks(cols, left, RAX)
	both := func(m0, m1 OpmaskPhysical) {
		askPair(Mem{Base: s}, Mem{Base: s, Index: stride, Scale: 1})
		words(Mem{Base: s}, Mem{Base: s, Index: stride, Scale: 1}, m0, Z0, Z1)
		words(Mem{Base: s, Disp: 32}, Mem{Base: s, Index: stride, Scale: 1, Disp: 32}, m1, Z2, Z3)
		VMOVUPS(Z0, Mem{Base: d})
		VMOVUPS(Z2, Mem{Base: d, Disp: 1024})
	}
	Label("block")
	MOVQ(U32(16), pairs)
	Label("pair")
	MOVQ(src, s)
	MOVQ(dst, d)
	MOVQ(cols, n)
	frame.Test(n, n, JEQ, "last")
	Label("panel")
	both(K1, K1)
	ADDQ(Imm(64), s)
	ADDQ(panel, d)
	frame.Next(n, "panel")
	Label("last")
	frame.Test(left, left, JEQ, "next")
	both(K3, K4)
	Label("next")
	LEAQ(Mem{Base: src, Index: stride, Scale: 2}, src)
	ADDQ(Imm(64), dst)
	frame.Next(pairs, "pair")
	ADDQ(U32(1024), dst) // a block of a panel is two tiles; one was filled pair by pair
	frame.Next(blocks, "block")
	frame.End()
}

// packTransposed: each 32 rows x 16 columns become 16 rows of 32 numbers, by
// pairing rows and transposing the 16 x 16 pairs. blocks are of 32 rows.
func packTransposed() {
	dst, src, blocks, cols, stride, drow := RDI, RSI, RDX, RCX, R8, R9
	frame.Func("packTransposed512", "func(dst, src *uint16, blocks, cols, stride, drow int)", dst, src, blocks, cols,
		stride, drow)
	// K1: all lanes; K2: those of the last 16 columns.
	left := R10
	MOVQ(cols, left)
	ANDQ(Imm(15), left)
	SHRQ(Imm(4), cols)
	MOVQ(I32(-1), RAX)
	KMOVW(EAX, K1)
	BZHIQ(left, RAX, RAX)
	KMOVW(EAX, K2)
	s, d, n, at := R11, R12, R13, RBX
	Label("block")
	MOVQ(src, s)
	MOVQ(dst, d)
	MOVQ(cols, n)
	KMOVW(K1, K3)
	frame.Test(n, n, JNE, "group")
	MOVQ(U32(1), n)
	KMOVW(K2, K3)
	Label("group")
	MOVQ(s, at)
	for r := range 16 {
		askPair(Mem{Base: at}, Mem{Base: at, Index: stride, Scale: 1})
		words(Mem{Base: at}, Mem{Base: at, Index: stride, Scale: 1}, K3, zmm(r), zmm(16+r%2))
		LEAQ(Mem{Base: at, Index: stride, Scale: 2}, at)
	}
	for _, row := range transpose() {
		VMOVUPS(row, Mem{Base: d})
		ADDQ(drow, d)
	}
	ADDQ(Imm(32), s)
	frame.Next(n, "group")
	// Once more for the columns that are left, unless that was just done.
	frame.Test(left, left, JEQ, "next")
	KMOVW(K3, EAX)
	CMPL(EAX, U32(0xffff))
	JNE(LabelRef("next"))
	MOVQ(U32(1), n)
	KMOVW(K2, K3)
	JMP(LabelRef("group"))
	Label("next")
	MOVQ(stride, at)
	SHLQ(Imm(5), at)
	ADDQ(at, src)
	ADDQ(Imm(64), dst)
	frame.Next(blocks, "block")
	frame.End()
}

var zmms = []VecPhysical{
	Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15,
	Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31}

func zmm(i int) VecPhysical { return zmms[i] }

// transpose turns 16 x 16 double words in Z0-Z15 round and says in which register each row is:
// pairs of rows, then fours, within each quarter of a register; then the quarters.
func transpose() [16]VecPhysical {
	for i := 0; i < 16; i += 2 {
		VPUNPCKLDQ(zmm(i+1), zmm(i), zmm(16+i))
		VPUNPCKHDQ(zmm(i+1), zmm(i), zmm(17+i))
	}
	for j := 0; j < 16; j += 4 {
		t := func(i int) VecPhysical { return zmm(16 + j + i) }
		VPUNPCKLQDQ(t(2), t(0), zmm(j))
		VPUNPCKHQDQ(t(2), t(0), zmm(j+1))
		VPUNPCKLQDQ(t(3), t(1), zmm(j+2))
		VPUNPCKHQDQ(t(3), t(1), zmm(j+3))
	}
	var out [16]VecPhysical
	for c := range 4 {
		r := func(i int) VecPhysical { return zmm(4*i + c) }
		t := func(i int) VecPhysical { return zmm(16 + 4*c + i) }
		VSHUFI32X4(Imm(0x44), r(1), r(0), t(0))
		VSHUFI32X4(Imm(0x44), r(3), r(2), t(1))
		VSHUFI32X4(Imm(0xee), r(1), r(0), t(2))
		VSHUFI32X4(Imm(0xee), r(3), r(2), t(3))
		for q := range 4 {
			VSHUFI32X4(Imm([]uint64{0x88, 0xdd}[q&1]), t(q&2+1), t(q&2), r(q))
			out[4*q+c] = r(q)
		}
	}
	return out
}

// padRows copies rows of cols bfloat16 and writes zeros after each: of its last 32 lanes those that pitch holds.
func padRows() {
	dst, src, rows, cols, stride, pitch := RDI, RSI, RDX, RCX, R8, R9
	frame.Func("padRows512", "func(dst, src *uint16, rows, cols, stride, pitch int)", dst, src, rows, cols, stride,
		pitch)
	s, d, n, last := R11, R12, R13, R10
	// K1: the lanes of a row's last numbers, K2: those with the zeros.
	MOVQ(cols, last)
	DECQ(last)
	ANDQ(I8(-32), last)
	lanes := func(n GPPhysical, mask OpmaskPhysical) {
		MOVQ(n, RAX)
		SUBQ(last, RAX)
		MOVQ(I32(-1), RBX)
		BZHIQ(RAX, RBX, RBX)
		KMOVD(EBX, mask)
	}
	lanes(cols, K1)
	lanes(pitch, K2)
	SHRQ(Imm(5), last)
	SHLQ(Imm(1), stride)
	SHLQ(Imm(1), pitch)
	Label("row")
	MOVQ(src, s)
	MOVQ(dst, d)
	MOVQ(last, n)
	frame.Test(n, n, JEQ, "end")
	Label("whole")
	VMOVUPS(Mem{Base: s}, Z0)
	VMOVUPS(Z0, Mem{Base: d})
	ADDQ(Imm(64), s)
	ADDQ(Imm(64), d)
	frame.Next(n, "whole")
	Label("end")
	VMOVDQU16_Z(Mem{Base: s}, K1, Z0)
	VMOVDQU16(Z0, K2, Mem{Base: d})
	ADDQ(stride, src)
	ADDQ(pitch, dst)
	frame.Next(rows, "row")
	frame.End()
}
