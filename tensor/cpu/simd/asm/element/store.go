package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/lanes"
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

// byPlace runs body for a block whose lines go by non-temporal stores, if lines are whole, or for one that stays.
func (k *kernel) byPlace(block string, whole bool, body func(past bool)) {
	if !k.zmm || !whole {
		body(false)
		return
	}
	near, done := label("near"), label("placed")
	CMPB(k.field(block+".NonTemporal"), Imm(0))
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

// writeRounded rounds and stores.
func (k *kernel) writeRounded(block string, p reg.GPVirtual, v []vec, rest bool) {
	switch {
	case !k.zmm:
		for i := range v {
			k.writeTwoWay(v[i], p, i, rest)
		}
	case len(v) == 1 && rest:
		VMOVDQU16(k.roundOne(v[0]), k.tailK, k.cell(p, 2, 0))
	case len(v) == 1:
		VMOVDQU16(k.roundOne(v[0]), k.cell(p, 2, 0))
	default:
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
	}
}

// roundOne rounds a vector to half of one, on AVX-512.
func (k *kernel) roundOne(v vec) vec {
	h := YMM()
	k.byRounding(func() { lanes.RoundOne(v, h) }, func() { VPMOVDW(k.rounded(v), h) })
	return h
}

// roundPairs rounds each two vectors to one, on AVX-512. By adding 0x7fff, or 0x8000 to odd ones, the upper
// half is rounded to nearest even; of a NaN one bit is set that keeps it one.
func (k *kernel) roundPairs(v []vec) (pairs []vec) {
	pairs = k.regs(len(v) / 2)
	k.byRounding(func() {
		for i := range pairs {
			lanes.RoundPair(v[2*i], v[2*i+1], pairs[i])
		}
	}, func() {
		bit, low, high := k.all(bits(0x10000)), k.all(bits(0x7fff)), k.all(bits(0x8000))
		quiet, upper := k.all(bits(0x400000)), k.reg()
		VMOVDQU32(upperHalves, upper)
		for i := range pairs {
			h := []vec{pairs[i], k.reg()}
			for s, x := range v[2*i : 2*i+2] {
				odd := K()
				VPTESTMD(bit, x, odd)
				VPADDD(low, x, h[s])
				VPADDD(high, x, odd, h[s])
				VPORD(quiet, x, k.compare(unordered, x, x).k, h[s])
			}
			VPERMT2W(h[1], upper, h[0])
		}
	})
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

// writeTwoWay rounds a vector and stores it, or what is masked of it, on AVX2.
func (k *kernel) writeTwoWay(v vec, p reg.GPVirtual, i int, rest bool) {
	h, high := k.rounded(v), XMM()
	VEXTRACTI128(Imm(1), h, high)
	VPACKUSDW(high, h.AsX(), high)
	if !rest {
		VMOVDQU(high, k.cell(p, 2, i))
		return
	}
	VMOVDQU(high, k.room)
	k.copyFP16(p, false)
}
