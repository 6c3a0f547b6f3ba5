package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// Ranges of rows and columns (see simd.Ranges) are found where numbers are read to be split. A range is two maxima of
// bits: of sizes, and of their negatives, since the negative of the smallest is the largest and that of zero is zero.

// rangesHigh is how many bytes the largest sizes of 32 rows or columns come after the smallest.
const rangesHigh = 128

// zeroBits is zero, and absolute what clears a sign.
var zeroBits, absolute = Z26, Z28

func loadRangeConstants(tmp Register) {
	VPXORD(zeroBits, zeroBits, zeroBits)
	MOVL(U32(0x7fffffff), tmp)
	VPBROADCASTD(tmp, absolute)
}

// widenRange takes 16 numbers into a range. It leaves their sizes in x, and uses y.
func widenRange(from Mem, lanes OpmaskPhysical, x, y, high, low VecPhysical) {
	VPANDD_Z(from, absolute, lanes, x)
	widenRangeBy(x, y, high, low)
}

// widenRangeBy takes 16 sizes.
func widenRangeBy(x, y, high, low VecPhysical) {
	VPMAXUD(x, high, high)
	VPSUBD(x, zeroBits, y)
	VPMAXUD(y, low, low)
}

// clearRanges starts the ranges in Z4 and Z6, Z5 and Z7.
func clearRanges() {
	for _, z := range []VecPhysical{Z4, Z5, Z6, Z7} {
		VPXORD(z, z, z)
	}
}

// joinRow joins a row's range, in twice 16 lanes, with what ranges has. All lanes of high0 are then the row's largest.
func joinRow(ranges GPPhysical, high0, high1, low0, low1 VecPhysical) {
	VPMAXUD(high1, high0, high0)
	VPMAXUD(low1, low0, low0)
	// The upper half of both is for low.
	VSHUFI32X4(Imm(0x44), low0, high0, high1)
	VSHUFI32X4(Imm(0xee), low0, high0, low1)
	VPMAXUD(low1, high1, high0)
	VSHUFI32X4(Imm(0xb1), high0, high0, high1)
	VPMAXUD(high1, high0, high0)
	VPSHUFD(Imm(0x4e), high0, high1)
	VPMAXUD(high1, high0, high0)
	VPSHUFD(Imm(0xb1), high0, high1)
	VPMAXUD(high1, high0, high0)
	VEXTRACTI64X4(Imm(1), high0, low0.AsY())
	VMOVD(Mem{Base: ranges}, low1.AsX())
	VPMAXUD(low1.AsX(), low0.AsX(), low0.AsX())
	VMOVD(low0.AsX(), Mem{Base: ranges})
	VMOVD(Mem{Base: ranges, Disp: rangesHigh}, low1.AsX())
	VPMAXUD(low1.AsX(), high0.AsX(), low1.AsX())
	VMOVD(low1.AsX(), Mem{Base: ranges, Disp: rangesHigh})
	VPBROADCASTD(high0.AsX(), high0)
}

// joinColumns joins ranges of 16 columns with what ranges has at disp. It uses tmp.
func joinColumns(ranges GPPhysical, disp int, low, high, tmp VecPhysical) {
	VPMAXUD(Mem{Base: ranges, Disp: disp}, low, tmp)
	VMOVDQU32(tmp, Mem{Base: ranges, Disp: disp})
	VPMAXUD(Mem{Base: ranges, Disp: disp + rangesHigh}, high, tmp)
	VMOVDQU32(tmp, Mem{Base: ranges, Disp: disp + rangesHigh})
}

// joinColumnPair joins the numbers of 16 columns in Z0 and Z1.
func joinColumnPair(ranges GPPhysical, disp int) {
	for i, x := range []VecPhysical{Z0, Z1} {
		VPANDD(absolute, x, zmm(4+i))
		VPSUBD(zmm(4+i), zeroBits, zmm(6+i))
	}
	VPMAXUD(Z5, Z4, Z4)
	VPMAXUD(Z7, Z6, Z6)
	joinColumns(ranges, disp, Z6, Z4, Z8)
}

// anyWide reports whether one of n ranges, a multiple of 32, is wide (see simd.RangeBounds).
func anyWide() {
	ranges, n, least, most, span, top, found := RSI, RDX, RCX, R8, R9, R10, RDI
	frame.Func("anyWide512", "func(ranges *byte, n, least, most, span, top int, found *byte)",
		ranges, n, least, most, span, top, found)
	for i, r := range []GPPhysical{least, most, span, top} {
		VPBROADCASTD(r.As32(), zmm(4+i))
	}
	VPXORD(Z3, Z3, Z3)
	KXORW(K2, K2, K2)
	Label("panel")
	for disp := 0; disp < rangesHigh; disp += 64 {
		VPSUBD(Mem{Base: ranges, Disp: disp}, Z3, Z0)
		VMOVDQU32(Mem{Base: ranges, Disp: disp + rangesHigh}, Z1)
		VPTESTMD(Z0, Z0, K1)
		VPMAXUD(Z4, Z1, Z2)
		VPMINUD(Z5, Z2, Z2)
		VPSUBD(Z6, Z2, Z2)
		VPCMPUD(U8(1), Z2, Z0, K1, K1) // below
		KORW(K1, K2, K2)
		VPCMPUD(U8(5), Z7, Z1, K1) // not below
		KORW(K1, K2, K2)
	}
	ADDQ(U32(2*rangesHigh), ranges)
	SUBQ(Imm(32), n)
	JG(LabelRef("panel"))
	KMOVW(K2, EAX)
	TESTL(EAX, EAX)
	SETNE(Mem{Base: found})
	frame.End()
}

// anyBelow reports whether a size is below its limit times factor, or either is not a number.
func anyBelow() {
	TEXT("anyBelow512", NOSPLIT, "func(x, limit *float32, n int, factor float32) bool")
	Pragma("noescape")
	x, limit, n, found := RDI, RSI, RDX, RCX
	Load(Param("x"), x)
	Load(Param("limit"), limit)
	Load(Param("n"), n)
	VBROADCASTSS(NewParamAddr("factor", 24), Z2)
	MOVL(U32(0x7fffffff), EAX)
	VPBROADCASTD(EAX, absolute)
	KXORW(K2, K2, K2)
	step := func() {
		VMOVUPS_Z(Mem{Base: limit}, K1, Z1)
		VPANDD_Z(Mem{Base: x}, absolute, K1, Z0)
		VMULPS(Z2, Z1, Z1)
		VCMPPS(U8(9), Z1, Z0, K1, K3) // not greater or equal
		KORW(K3, K2, K2)
	}
	KXNORW(K1, K1, K1)
	Label("sixteen")
	frame.Compare(n, Imm(16), JLT, "rest")
	step()
	ADDQ(Imm(64), x)
	ADDQ(Imm(64), limit)
	SUBQ(Imm(16), n)
	JMP(LabelRef("sixteen"))
	Label("rest")
	MOVQ(I32(-1), RAX)
	BZHIQ(n, RAX, RAX)
	KMOVW(EAX, K1)
	step()
	KMOVW(K2, found.As32())
	TESTL(found.As32(), found.As32())
	SETNE(found.As8())
	VZEROUPPER()
	Store(found.As8(), ReturnIndex(0))
	RET()
}
