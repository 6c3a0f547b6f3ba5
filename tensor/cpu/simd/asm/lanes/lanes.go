// Package lanes is what the generators of graph kernels share: constants,
// bfloat16 and sums over the lanes of a vector, all for AVX-512.
package lanes

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

var made = map[string]Mem{}

// Bits is a constant in memory, to be broadcast.
func Bits(v uint32) Mem {
	name := fmt.Sprintf("bits%08x", v)
	if _, ok := made[name]; !ok {
		made[name] = ConstData(name, U32(v))
	}
	return made[name]
}

// Num is Bits of a float32.
func Num(x float64) Mem { return Bits(math.Float32bits(float32(x))) }

// Table is a list of words in memory.
func Table(name string, n int, word func(i int) uint32) Mem {
	if _, ok := made[name]; !ok {
		m := GLOBL(name, RODATA|NOPTR)
		for i := range n {
			DATA(4*i, U32(word(i)))
		}
		made[name] = m
	}
	return made[name]
}

// Label names of one function must not repeat, so helpers number theirs.
var labels int

// Label is a new label.
func NewLabel(what string) string {
	labels++
	return fmt.Sprintf("%s_%d", what, labels)
}

// ToBF16 rounds v to bfloat16 in the lower half of each lane of to, ties to
// even; NaN stays NaN. It uses K3.
func ToBF16(v, to VecPhysical) {
	VPSRLD(U8(16), v, to)
	VPANDD_BCST(Bits(1), to, to)
	VPADDD_BCST(Bits(0x7fff), to, to)
	VPADDD(v, to, to)
	VPSRLD(U8(16), to, to)
	VCMPPS(U8(3), v, v, K3)
	VPSRLD(U8(16), v, K3, to)
	VPORD_BCST(Bits(0x40), to, K3, to)
}

// JoinBF16 rounds the even and odd columns of a block of 32 and leaves the block in even.
func JoinBF16(even, odd, x, y VecPhysical) {
	ToBF16(even, x)
	ToBF16(odd, y)
	VPSLLD(U8(16), y, y)
	VPORD(x, y, even)
}

// JoinNative is JoinBF16 by the processor's own rounding (see RoundPair); x is a buffer for how
// a block is put together.
func JoinNative(even, odd, x VecPhysical) {
	// Lane i has columns 2i, of the first half of what is rounded, and 2i+1, of the second.
	VMOVUPS(Table("joined", 16, func(i int) uint32 { return uint32(i | (i+16)<<16) }), x)
	RoundPair(even, odd, even)
	VPERMW(even, x, even)
}

// SplitBF16 widens the even and odd columns of the block at from; a tail is masked by k.
func SplitBF16(from Mem, even, odd VecPhysical, tail bool, k OpmaskPhysical) {
	if tail {
		VMOVDQU16_Z(from, k, odd)
		VPSLLD(U8(16), odd, even)
		VPANDD_BCST(Bits(0xffff0000), odd, odd)
		return
	}
	VPSLLD(U8(16), from, even)
	VMOVUPS(from, odd)
	VPANDD_BCST(Bits(0xffff0000), odd, odd)
}

// LoadUpper loads the mask of odd columns that SplitBF16By takes.
func LoadUpper(upper VecPhysical) { VPBROADCASTD(Bits(0xffff0000), upper) }

// SplitBF16By is SplitBF16 with the mask of odd columns in a register, an instruction less.
func SplitBF16By(upper VecPhysical, from Mem, even, odd VecPhysical, tail bool, k OpmaskPhysical) {
	if tail {
		VMOVDQU16_Z(from, k, odd)
		VPSLLD(U8(16), odd, even)
		VPANDD(odd, upper, odd)
		return
	}
	VPSLLD(U8(16), from, even)
	VPANDD(from, upper, odd)
}

// Interleave turns even and odd columns into the first and second sixteen columns.
func Interleave(even, odd, x, y VecPhysical) {
	t := Table("interleaved", 32, func(i int) uint32 { return uint32(i/2 + i%2*16) })
	VMOVUPS(t, x)
	VMOVUPS(t.Offset(64), y)
	VPERMI2PS(odd, even, x)
	VPERMI2PS(odd, even, y)
	VMOVAPS(x, even)
	VMOVAPS(y, odd)
}

// Swap puts lanes l^d of v into to, d = 1, 2, 4, 8.
func Swap(d int, v, to VecPhysical) {
	switch d {
	case 1:
		VPERMILPS(U8(0xb1), v, to)
	case 2:
		VPERMILPS(U8(0x4e), v, to)
	case 4:
		VSHUFF32X4(U8(0xb1), v, v, to)
	case 8:
		VSHUFF32X4(U8(0x4e), v, v, to)
	}
}

// Exp replaces x, not above 88, by e to the x (see simd.Exp).
func Exp(x, n, p VecPhysical) {
	VBROADCASTSS(Num(-104), p)
	VMAXPS(x, p, x) // in this order a NaN stays
	VMULPS_BCST(Num(math.Log2E), x, n)
	VRNDSCALEPS(U8(0), n, n)
	VFNMADD231PS_BCST(Num(0.693145751953125), n, x)
	VFNMADD231PS_BCST(Num(1.428606765330187e-06), n, x)
	VBROADCASTSS(Num(1./5040), p)
	for _, c := range []float64{1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1} {
		VFMADD213PS_BCST(Num(c), x, p)
	}
	VSCALEFPS(n, p, x)
}
