package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// together is what the loops over coefficients do otherwise where so many heads, four or eight, the usual numbers, fill a
// vector's lanes: an entry's heads are loaded and stored at once, where gathering and scattering take them one by
// one, and what has loops for any number of entries has none. It is 0 in loops for any number of heads.
type together int

// name is a function's for so many heads.
func (p together) name(fn string) string {
	return fn + map[together]string{0: "", 4: "Four", 8: "Eight"}[p] + "512"
}

func (p together) entries() int { return 16 / int(p) }

// shift is how far the number of an entry is to be shifted to where n numbers a head are.
func (p together) shift(n int) int { return bits.Len(uint(4*n*int(p))) - 1 }

// lanes is validLanes; K2 becomes the entries left, those of a vector at most.
func (p together) lanes() {
	MOVL(U32(p.entries()), wTmp2.As32())
	CMPQ(wLeft, wTmp2)
	CMOVQLT(wLeft, wTmp2)
	BZHIL(wTmp2.As32(), wFull.As32(), wTmp.As32())
	KMOVW(wTmp.As32(), K2)
	SHLL(U8(bits.Len(uint(p))-1), wTmp2.As32())
	BZHIL(wTmp2.As32(), wHeads.As32(), wTmp2.As32())
	KMOVW(wTmp2.As32(), K1)
}

// ask is askAhead for rows of n numbers a head, and for their keys.
func (p together) ask(f fields, base GPPhysical, n int, last string, keys bool) {
	stop := lanes.NewLabel("asked")
	LEAQ(Mem{Base: wIndex, Disp: 4 * (aheadWords + p.entries() - 1)}, wTmp)
	CMPQ(wTmp, f.mem(last))
	JA(LabelRef(stop))
	for k := range p.entries() {
		MOVL(Mem{Base: wIndex, Disp: 4 * (aheadWords + k)}, wTmp2.As32())
		if keys {
			PREFETCHT0(Mem{Base: wIDs, Index: wTmp2, Scale: 8})
		}
		SHLQ(U8(p.shift(n)), wTmp2)
		for at := 0; at < 4*n*int(p); at += 64 {
			PREFETCHT0(Mem{Base: base, Index: wTmp2, Scale: 1, Disp: at})
		}
	}
	Label(stop)
}

// words loads the words of a vector's entries to the first lanes of to, and to memory, where all that K2 has not are zero.
func (p together) words(words Mem, to VecPhysical) {
	VMOVDQU32_Z(Mem{Base: wIndex}, K2, to)
	VMOVDQU32(to.AsX(), words)
}

// rows loads the rows of words, n numbers a head apart at base, to the lanes of their entries.
func (p together) rows(base GPPhysical, words Mem, n int, to ...VecPhysical) {
	for k := range p.entries() {
		MOVL(words.Offset(4*k), wTmp.As32())
		SHLQ(U8(p.shift(n)), wTmp)
		for i, v := range to {
			from := Mem{Base: base, Index: wTmp, Scale: 1, Disp: 4 * i * int(p)}
			switch {
			case k > 0 && p == 4:
				VINSERTF32X4(U8(k), from, v, v)
			case k > 0:
				VINSERTF64X4(U8(k), from, v, v)
			case p == 4:
				VMOVUPS(from, v.AsX())
			default:
				VMOVUPS(from, v.AsY())
			}
		}
	}
}

var keyMasks = []OpmaskPhysical{1: K4, 2: K5, 3: K6}

// beginKeys loads the masks that keys takes: eight bytes are a lane here.
func (p together) beginKeys() {
	each := int(p) / 2 // such lanes of an entry
	for k := 1; k < p.entries(); k++ {
		MOVL(U32((1<<each-1)<<(each*k)), wTmp.As32())
		KMOVW(wTmp.As32(), keyMasks[k])
	}
}

// keys loads the eight-byte keys at base, those of words, and spreads their halves over the lanes of their entries.
func (p together) keys(base GPPhysical, words Mem, low, high VecPhysical) {
	for k := range p.entries() {
		MOVL(words.Offset(4*k), wTmp.As32())
		if from := (Mem{Base: base, Index: wTmp, Scale: 8}); k == 0 {
			VPBROADCASTQ(from, low)
		} else {
			VPBROADCASTQ(from, keyMasks[k], low)
		}
	}
	VPSHUFD(U8(0xf5), low, high)
	VPSHUFD(U8(0xa0), low, low)
}

// packed loads packed's rows of a vector's entries. A row of four heads is one cache line: whole ones, transposed, are
// less work than parts.
func (p together) packed(words Mem, right, top, inv, delta VecPhysical) {
	if p == 8 {
		p.rows(wBase, words, 4, right, top, inv, delta)
		return
	}
	r := []VecPhysical{Z10, Z11, Z12, Z13}
	for k := range 4 {
		MOVL(words.Offset(4*k), wTmp.As32())
		SHLQ(U8(6), wTmp)
		VMOVUPS(Mem{Base: wBase, Index: wTmp, Scale: 1}, r[k])
	}
	VSHUFF32X4(U8(0x44), r[1], r[0], right)
	VSHUFF32X4(U8(0x44), r[3], r[2], top)
	VSHUFF32X4(U8(0xee), r[1], r[0], inv)
	VSHUFF32X4(U8(0xee), r[3], r[2], delta)
	VSHUFF32X4(U8(0xdd), top, right, Z10)
	VSHUFF32X4(U8(0x88), top, right, right)
	VMOVAPS(Z10, top)
	VSHUFF32X4(U8(0xdd), delta, inv, Z10)
	VSHUFF32X4(U8(0x88), delta, inv, inv)
	VMOVAPS(Z10, delta)
}

// put puts the heads of s of up to a vector's entries to their places, or adds them there: an entry's at once.
func (p together) put(s VecPhysical, add bool) {
	for k := range p.entries() {
		MOVL(Mem{Base: wIndex, Disp: 4 * k}, wTmp.As32())
		SHLQ(U8(p.shift(1)), wTmp)
		to := Mem{Base: wBase, Index: wTmp, Scale: 1}
		if p == 4 {
			VEXTRACTF32X4(U8(k), s, X1)
			addTo(X1, to, add)
		} else {
			VEXTRACTF64X4(U8(k), s, Y1)
			addTo(Y1, to, add)
		}
		if k < p.entries()-1 {
			CMPQ(wLeft, U8(k+1))
			JE(LabelRef("placed"))
		}
	}
}

func addTo(v VecPhysical, to Mem, add bool) {
	if add {
		VADDPS(to, v, v)
	}
	VMOVUPS(v, to)
}
