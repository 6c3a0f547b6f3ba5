package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// What the loops over coefficients do otherwise where a vector has four heads of four entries, the usual shape: an entry's heads
// are loaded and stored at once, where gathering and scattering take them one by one, and what has loops for any number of entries has none.

// fourLanes is validLanes; K2 becomes the entries left, four at most.
func fourLanes() {
	MOVL(U32(4), wTmp2.As32())
	CMPQ(wLeft, wTmp2)
	CMOVQLT(wLeft, wTmp2)
	BZHIL(wTmp2.As32(), wFull.As32(), wTmp.As32())
	KMOVW(wTmp.As32(), K2)
	SHLL(U8(2), wTmp2.As32())
	BZHIL(wTmp2.As32(), wHeads.As32(), wTmp2.As32())
	KMOVW(wTmp2.As32(), K1)
}

// askFour is askAhead for rows of 1<<shift bytes, and for their keys.
func askFour(f fields, base GPPhysical, shift int, last string, keys bool) {
	stop := lanes.NewLabel("asked")
	LEAQ(Mem{Base: wIndex, Disp: 4 * (aheadWords + 3)}, wTmp)
	CMPQ(wTmp, f.mem(last))
	JA(LabelRef(stop))
	for k := range 4 {
		MOVL(Mem{Base: wIndex, Disp: 4 * (aheadWords + k)}, wTmp2.As32())
		if keys {
			PREFETCHT0(Mem{Base: wIDs, Index: wTmp2, Scale: 8})
		}
		SHLQ(U8(shift), wTmp2)
		PREFETCHT0(Mem{Base: base, Index: wTmp2, Scale: 1})
	}
	Label(stop)
}

// fourWords loads the words of four entries to the first lanes of to, and to memory, where all that K2 has not are zero.
func fourWords(words Mem, to VecPhysical) {
	VMOVDQU32_Z(Mem{Base: wIndex}, K2, to)
	VMOVDQU32(to.AsX(), words)
}

// fourRows loads rows of four numbers at base, those of words, to the lanes of their entries.
func fourRows(base GPPhysical, words Mem, to VecPhysical) {
	for k := range 4 {
		MOVL(words.Offset(4*k), wTmp.As32())
		SHLQ(U8(4), wTmp)
		if from := (Mem{Base: base, Index: wTmp, Scale: 1}); k == 0 {
			VMOVUPS(from, to.AsX())
		} else {
			VINSERTF32X4(U8(k), from, to, to)
		}
	}
}

var keyMasks = []OpmaskPhysical{1: K4, 2: K5, 3: K6}

// beginKeys loads the masks that fourKeys takes: eight bytes are a lane here, of which an entry has two.
func beginKeys() {
	for k := 1; k < 4; k++ {
		MOVL(U32(3<<(2*k)), wTmp.As32())
		KMOVW(wTmp.As32(), keyMasks[k])
	}
}

// fourKeys loads the eight-byte keys at base, those of words, and spreads their halves over the lanes of their entries.
func fourKeys(base GPPhysical, words Mem, low, high VecPhysical) {
	for k := range 4 {
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

// fourLines loads packed's rows of a vector's entries where a row is one cache line,
// four heads: whole lines, transposed, are a quarter of the work of gathering.
func fourLines(words Mem, right, top, inv, delta VecPhysical) {
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

// putFour puts the heads of up to four entries to their places: a store each, where scattering is sixteen.
func putFour(put func(k int, to Mem)) {
	for k := range 4 {
		MOVL(Mem{Base: wIndex, Disp: 4 * k}, wTmp.As32())
		SHLQ(U8(4), wTmp)
		put(k, Mem{Base: wBase, Index: wTmp, Scale: 1})
		if k < 3 {
			CMPQ(wLeft, U8(k+1))
			JE(LabelRef("placed"))
		}
	}
}
