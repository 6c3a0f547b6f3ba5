package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/lanes"
)

// together is what the backward pass's loops over coefficients do otherwise where usualHeads, which fill a quarter of a
// vector's lanes, are loaded at once: gathering takes them one by one. It is 0 in loops for other numbers of heads.
type together int

// name is a label for so many heads.
func (p together) name(label string) string {
	if p == 0 {
		return label + "One"
	}
	return label + "Four"
}

func (p together) entries() int { return 16 / int(p) }

// keys loads the eight-byte keys at base, those of words, and spreads their halves over the lanes of their entries.
func (p together) keys(base, tmp GPPhysical, words Mem, low, high VecPhysical) {
	for k := range p.entries() {
		MOVL(words.Offset(4*k), tmp.As32())
		from, to := Mem{Base: base, Index: tmp, Scale: 8}, []VecPhysical{low, high}[k/2].AsX()
		if k%2 == 0 {
			VMOVSD(from, to)
		} else {
			VMOVHPD(from, to, to)
		}
	}
	VINSERTF64X2(U8(1), high.AsX(), low.AsY(), low.AsY())
	half := func(k int) Mem {
		return lanes.Table(fmt.Sprintf("keys%d_%d", p, k), 16, func(i int) uint32 { return uint32(i/int(p)*2 + k) })
	}
	VMOVDQU32(half(1), high)
	VPERMPS(low, high, high)
	VMOVDQU32(half(0), Z31)
	VPERMPS(low, Z31, low)
}

// packed loads packed's rows of a vector's entries. Four heads of an entry are one cache line: whole ones, transposed,
// are less work than parts.
func (p together) packed(f fields, base, tmp GPPhysical, words Mem, right, top, inv, delta VecPhysical,
	r []VecPhysical) {
	for k := range p.entries() {
		MOVL(words.Offset(4*k), tmp.As32())
		IMULQ(f.mem("packStride"), tmp)
		VMOVUPS(Mem{Base: base, Index: tmp, Scale: 4}, r[k])
	}
	VSHUFF32X4(U8(0x44), r[1], r[0], right)
	VSHUFF32X4(U8(0x44), r[3], r[2], top)
	VSHUFF32X4(U8(0xee), r[1], r[0], inv)
	VSHUFF32X4(U8(0xee), r[3], r[2], delta)
	VSHUFF32X4(U8(0xdd), top, right, r[0])
	VSHUFF32X4(U8(0x88), top, right, right)
	VMOVAPS(r[0], top)
	VSHUFF32X4(U8(0xdd), delta, inv, r[0])
	VSHUFF32X4(U8(0x88), delta, inv, inv)
	VMOVAPS(r[0], delta)
}
