package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// together is what the loops over coefficients do otherwise where so many heads, four or eight, the usual numbers, or sixteen, fill
// a vector's lanes: an entry's heads are loaded at once, where gathering takes them one by one, and what has loops
// for any number of entries has none. It is 0 in loops for any number of heads.
type together int

// name is a function's for so many heads.
func (p together) name(fn string) string {
	return fn + map[together]string{0: "", 4: "Four", 8: "Eight", 16: "Sixteen"}[p] + "512"
}

func (p together) entries() int { return 16 / int(p) }

// shift is how far the number of an entry is to be shifted to where its row of scores is.
func (p together) shift() int { return bits.Len(uint(4*p)) - 1 }

// allLanes sets K1 to all lanes and K2 to a vector's entries.
func (p together) allLanes() {
	KXNORW(K1, K1, K1)
	p.allEntries()
}

func (p together) allEntries() {
	MOVL(U32(1<<p.entries()-1), wTmp.As32())
	KMOVW(wTmp.As32(), K2)
}

// lanes is validLanes, where all were set before: K1 and K2 become those of the entries left, if these are no whole vector.
func (p together) lanes() {
	all := lanes.NewLabel("all")
	CMPQ(wLeft, U8(p.entries()))
	JAE(LabelRef(all))
	BZHIL(wLeft.As32(), wFull.As32(), wTmp.As32())
	KMOVW(wTmp.As32(), K2)
	MOVL(wLeft.As32(), wTmp2.As32())
	SHLL(U8(bits.Len(uint(p))-1), wTmp2.As32())
	BZHIL(wTmp2.As32(), wHeads.As32(), wTmp2.As32())
	KMOVW(wTmp2.As32(), K1)
	Label(all)
}

// ask is askAhead for rows of scores.
func (p together) ask(f fields, base GPPhysical, last string) {
	stop := lanes.NewLabel("asked")
	LEAQ(Mem{Base: wIndex, Disp: 4 * (aheadWords + p.entries() - 1)}, wTmp)
	CMPQ(wTmp, f.mem(last))
	JA(LabelRef(stop))
	for k := range p.entries() {
		MOVL(Mem{Base: wIndex, Disp: 4 * (aheadWords + k)}, wTmp2.As32())
		SHLQ(U8(p.shift()), wTmp2)
		PREFETCHT0(Mem{Base: base, Index: wTmp2, Scale: 1})
	}
	Label(stop)
}

// words loads the words of a vector's entries to the first lanes of to, and to memory, where all that K2 has not are zero.
func (p together) words(words Mem, to VecPhysical) {
	VMOVDQU32_Z(Mem{Base: wIndex}, K2, to)
	VMOVDQU32(to.AsX(), words)
}

// rows loads the rows of words, scores at base, to the lanes of their entries.
func (p together) rows(base GPPhysical, words Mem, to VecPhysical) {
	for k := range p.entries() {
		MOVL(words.Offset(4*k), wTmp.As32())
		SHLQ(U8(p.shift()), wTmp)
		switch from := (Mem{Base: base, Index: wTmp, Scale: 1}); {
		case k > 0 && p == 4:
			VINSERTF32X4(U8(k), from, to, to)
		case k > 0:
			VINSERTF64X4(U8(k), from, to, to)
		case p == 4:
			VMOVUPS(from, to.AsX())
		default:
			VMOVUPS(from, to.AsY())
		}
	}
}

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
	if p == 4 {
		VINSERTF64X2(U8(1), high.AsX(), low.AsY(), low.AsY())
	}
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
func (p together) packed(f fields, base, tmp GPPhysical, words Mem, right, top, inv, delta VecPhysical, r []VecPhysical) {
	for k := range p.entries() {
		MOVL(words.Offset(4*k), tmp.As32())
		IMULQ(f.mem("packStride"), tmp)
		for line := range int(p) / 4 {
			VMOVUPS(Mem{Base: base, Index: tmp, Scale: 4, Disp: 64 * line}, r[k*int(p)/4+line])
		}
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
