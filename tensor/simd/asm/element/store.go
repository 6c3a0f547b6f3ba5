package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// write stores vectors to column j of a row of a block, rounding if it is bfloat16.
func (k *kernel) write(block string, p reg.GPVirtual, v []vec, rest bool) {
	k.either(block, func() {
		k.byPlace(block, !rest, func(past bool) {
			for i := range v {
				k.writeFloats(v[i], k.cell(p, 4, i), rest, past)
			}
		})
	}, func() {
		k.writeRounded(block, p, v, rest)
	})
}

// byPlace runs body for a block whose lines go past the caches, if lines are whole, or for one that stays.
func (k *kernel) byPlace(block string, whole bool, body func(past bool)) {
	if !k.zmm || !whole {
		body(false)
		return
	}
	near, done := label("near"), label("placed")
	CMPB(k.field(block+".Past"), Imm(0))
	JEQ(LabelRef(near))
	body(true)
	JMP(LabelRef(done))
	Label(near)
	body(false)
	Label(done)
}

func (k *kernel) writeFloats(v vec, m Mem, rest, past bool) {
	switch {
	case past:
		VMOVNTPS(v, m)
	case !rest:
		VMOVUPS(v, m)
	case k.zmm:
		VMOVUPS(v, k.tailK, m)
	default:
		VMASKMOVPS(v, k.tailY, m)
	}
}

// writeRounded rounds and stores. Without the processor's own rounding, pairs of vectors
// without a NaN take a shorter way: the upper halves of both go to one vector.
func (k *kernel) writeRounded(block string, p reg.GPVirtual, v []vec, rest bool) {
	each := func() {
		for i := range v {
			k.writeHalves(v[i], p, i, rest)
		}
	}
	if !k.zmm || len(v)%2 != 0 {
		each()
		return
	}
	slow, done := label("nan"), label("stored")
	if !k.native {
		k.anyNaN(v)
		JNE(LabelRef(slow))
	}
	h := k.roundPairs(v)
	k.byPlace(block, true, func(past bool) {
		for i := range h {
			if past {
				VMOVNTDQ(h[i], k.cell(p, 2, 2*i))
			} else {
				VMOVDQU32(h[i], k.cell(p, 2, 2*i))
			}
		}
	})
	if !k.native {
		JMP(LabelRef(done))
		Label(slow)
		each()
		Label(done)
	}
}

// anyNaN clears the zero flag when a lane is a NaN.
func (k *kernel) anyNaN(v []vec) {
	found := K()
	VCMPPS(U8(unordered), v[0], v[1], found)
	for i := 2; i < len(v); i += 2 {
		more := K()
		VCMPPS(U8(unordered), v[i], v[i+1], more)
		KORW(more, found, found)
	}
	KORTESTW(found, found)
}

// roundPairs rounds each two vectors to one: by adding 0x7fff, or 0x8000 to odd ones, the
// upper half is rounded to nearest even.
func (k *kernel) roundPairs(v []vec) (pairs []vec) {
	if k.native {
		pairs = k.regs(len(v) / 2)
		for i := range pairs {
			lanes.RoundPair(v[2*i], v[2*i+1], pairs[i])
		}
		return pairs
	}
	bit, low, high := k.all(bits(0x10000)), k.all(bits(0x7fff)), k.all(bits(0x8000))
	upper := k.reg()
	VMOVDQU32(upperHalves, upper)
	for i := 0; i < len(v); i += 2 {
		h := k.regs(2)
		for s := range h {
			odd := K()
			VPTESTMD(bit, v[i+s], odd)
			VPADDD(low, v[i+s], h[s])
			VPADDD(high, v[i+s], odd, h[s])
		}
		VPERMT2W(h[1], upper, h[0])
		pairs = append(pairs, h[0])
	}
	return pairs
}

// upperHalves chooses the upper words of two vectors.
var upperHalves Mem

// rounded is v as bfloat16 in the low half of each lane: to nearest even, NaN kept.
func (k *kernel) rounded(v vec) vec {
	one, most, quiet := k.all(bits(1)), k.all(bits(0x7fff)), k.all(bits(0x400000))
	h := k.reg()
	VPSRLD(Imm(16), v, h)
	k.and(one, h, h)
	VPADDD(most, h, h)
	VPADDD(v, h, h)
	nan := k.compare(unordered, v, v)
	if k.zmm {
		VPORD(quiet, v, nan.k, h)
	} else {
		t := k.reg()
		VPOR(quiet, v, t)
		k.choose(nan, t, h, h)
	}
	VPSRLD(Imm(16), h, h)
	return h
}

// writeHalves rounds a vector and stores it, or what is masked of it.
func (k *kernel) writeHalves(v vec, p reg.GPVirtual, i int, rest bool) {
	m := k.cell(p, 2, i)
	if k.zmm {
		var some reg.Register
		if rest {
			some = k.tailK
		}
		k.storeRounded(v, m, some)
		return
	}
	h, high := k.rounded(v), XMM()
	VEXTRACTI128(Imm(1), h, high)
	VPACKUSDW(high, h.AsX(), high)
	if !rest {
		VMOVDQU(high, m)
		return
	}
	VMOVDQU(high, k.room)
	k.copyHalves(p, false)
}

// storeRounded rounds and stores a vector, or the lanes of a mask.
func (k *kernel) storeRounded(v vec, m Mem, some reg.Register) {
	store, h := VPMOVDW, Op(nil)
	if k.native {
		y := YMM()
		lanes.RoundOne(v, y)
		store, h = VMOVDQU16, y
	} else {
		h = k.rounded(v)
	}
	if some == nil {
		store(h, m)
	} else {
		store(h, some, m)
	}
}
