package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
	"starling/tensor/cpu/simd/asm/lanes"
)

// scores makes the gradients of a batch's scores, sums them over the row and puts them to their places in edge, or adds
// them to their destinations' there. After the last batch the sum goes to dleft.
func scores(heads int) {
	f := backFields
	name := func(s string) string { return fmt.Sprintf("%s%d", s, heads) }
	group := 16 / heads
	parts, coef, left := batchEnd, weight, tmp2
	s, t := Z23, Z24
	Label(name("scores"))
	MOVQ(batchEnd, left)
	SUBQ(f.mem("first"), left)
	LEAQ(inBuf(atParts), parts)
	MOVQ(buf, coef)
	ADDQ(f.mem("slot"), coef)
	f.load("edge", at)
	f.load("perm", part)
	SUBQ(f.mem("index"), part)
	ADDQ(f.mem("first"), part)
	VMOVUPS(inBuf(atTotal), scoreTotal)
	Label(name("group"))
	k := stack{}
	for e := range group {
		q := k.push(bits.Len(uint(heads)) - 1)
		VMOVUPS(Mem{Base: parts, Disp: 64 * e}, q)
		k.fold()
	}
	VMOVUPS(lanes.Table("transposed", 16, func(i int) uint32 { return uint32(i%4*4 + i/4) }), t)
	VPERMPS(k.top(), t, t)
	VMOVUPS(Mem{Base: coef, Disp: atSlope}, s)
	VFMSUB213PS(Mem{Base: coef, Disp: atDelta}, t, s)
	groupLanes(f, heads, left)
	VADDPS(s, scoreTotal, entries, scoreTotal)
	VMOVUPS(s, inBuf(atWords))
	placeScores(f, heads, name)
	ADDQ(U32(64*group), parts)
	ADDQ(U8(64), coef)
	SUBQ(U8(4*group), left)
	JA(LabelRef(name("group")))
	VMOVUPS(scoreTotal, inBuf(atTotal))
	XORQ(U32(atNext), f.mem("slot"))
	frame.Compare(index, end, JB, "batch")
	for d := heads; d < 16; d *= 2 {
		lanes.Swap(d, scoreTotal, t)
		VADDPS(t, scoreTotal, scoreTotal)
	}
	JMP(LabelRef("total"))
}

// groupLanes sets entries to the lanes of a group, where left/4 entries are left.
func groupLanes(f fields, heads int, left GPPhysical) {
	KXNORW(entries, entries, entries)
	if heads == 16 {
		return
	}
	whole := lanes.NewLabel("whole")
	frame.Compare(left, U8(64/heads), JAE, whole)
	MOVQ(left, tmp)
	IMUL3Q(U8(heads), tmp, tmp)
	SHRQ(U8(2), tmp)
	MOVL(U32(0xffff), at.As32())
	BZHIL(tmp.As32(), at.As32(), tmp.As32())
	KMOVW(tmp.As32(), entries)
	f.load("edge", at)
	Label(whole)
}

// placeScores puts the gradients of a group's entries to their places, which are at part, and moves on.
func placeScores(f fields, heads int, name func(string) string) {
	frame.Compare(f.mem("add"), U8(0), JNE, name("add"))
	for _, add := range []bool{false, true} {
		if add {
			Label(name("add"))
		}
		for k := range 16 / heads {
			if k > 0 {
				frame.Compare(tmp2, U8(4*k), JE, name("placed"))
			}
			placeScore(f, heads, k, add)
		}
		if !add {
			JMP(LabelRef(name("placed")))
		}
	}
	Label(name("placed"))
	ADDQ(U8(64/heads), part)
}

// placeScore puts the gradients of entry k to their place, or adds them to it.
func placeScore(f fields, heads, k int, add bool) {
	MOVL(Mem{Base: part, Disp: 4 * k}, tmp.As32())
	IMULQ(f.mem("edgeStride"), tmp)
	from, to := inBuf(atWords+4*heads*k), Mem{Base: at, Index: tmp, Scale: 4}
	switch heads {
	case 1:
		VMOVSS(from, X24)
		if add {
			VADDSS(to, X24, X24)
		}
		VMOVSS(X24, to)
	case 2:
		VMOVSD(from, X24)
		if add {
			VMOVSD(to, X25)
			VADDPS(X25, X24, X24)
		}
		VMOVSD(X24, to)
	default:
		v := map[int]VecPhysical{4: X24, 8: Y24, 16: Z24}[heads]
		VMOVUPS(from, v)
		if add {
			VADDPS(to, v, v)
		}
		VMOVUPS(v, to)
	}
}
