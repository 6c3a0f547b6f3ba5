package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// kept draws for narrow rows, eight at a time: their keys are the lanes of a vector. Of a half these are the draws; else a
// vector of hashes is 32 draws, of four rows of up to 8 columns, of two of up to 16, or of one. AVX-512 only.
type kept struct {
	*kernel
	ids, left, out reg.GPVirtual
	base, step     vec   // what is added to ids' multiples; without a list, what the next eight keys are made of, and eight ids
	mix            []vec // the factors of a key's hash
	keys           vec
	c1, c2, least  vec
}

func keptKernel() {
	k := &kept{kernel: begin(avx512, "kept", "Kept")}
	k.prepare()
	done := label("kept")
	upTo := func(cols int, body func()) {
		wider := label("wider")
		CMPQ(k.cols, Imm(uint64(cols)))
		JGT(LabelRef(wider))
		body()
		JMP(LabelRef(done))
		Label(wider)
	}
	k.ofHalf(func() {
		upTo(8, func() { k.few(func(bytes Mem) { VPMOVQB(k.keys, bytes) }) })
		k.more(func() vec { return k.keys })
	}, func() {
		upTo(8, func() {
			pairs := k.pairs(4)
			k.few(func(bytes Mem) { k.drawTo(bytes, 4, pairs) })
		})
		for _, per := range []int{2, 1} {
			upTo(32/per, func() {
				pairs, room := k.pairs(per), AllocLocal(32)
				k.more(func() vec { return k.drawn(per, pairs, room) })
			})
		}
		for _, per := range []int{4, 2, 1} {
			upTo(32+32/per, func() { k.rowsAndTails(per) })
		}
	})
	Label(done)
	k.end()
}

func (k *kept) prepare() {
	k.cols, k.ids, k.left, k.out = k.load("Cols"), k.load("Drop.IDs"), k.load("Rows"), k.load("Bits")
	for i := range 3 {
		k.mix = append(k.mix, k.wide(mixFactors.Offset(8*i)))
	}
	k.base, k.step = k.wide(k.field("Drop.Key")), ZMM()
	VPADDQ(k.mix[0], k.base, k.base)
	VPSLLQ(Imm(3), k.mix[0], k.step)
	list := label("list")
	TESTQ(k.ids, k.ids)
	JNZ(LabelRef(list))
	first, z := YMM(), ZMM()
	VPBROADCASTD(k.field("Drop.First"), first)
	VPADDD(toEight, first, first)
	VPMOVZXDQ(first, z)
	VPMULLQ(k.mix[0], z, z)
	VPADDQ(z, k.base, k.base)
	Label(list)
	k.least = ZMM()
	VPBROADCASTW(k.field("Drop.Threshold"), k.least)
	k.c1, k.c2 = k.all(bits(0x7feb352d)), k.all(bits(0x846ca68b))
}

// wide is a word in every lane.
func (k *kept) wide(word Op) vec {
	v := ZMM()
	VPBROADCASTQ(word, v)
	return v
}

// eights runs body for each eight rows, which stores their bits.
func (k *kept) eights(body func()) {
	start := label("eight")
	Label(start)
	k.eightKeys()
	body()
	ADDQ(k.cols, k.out)
	SUBQ(Imm(8), k.left)
	JNZ(LabelRef(start))
}

// eightKeys computes the keys of the next eight rows. Ids without a list end before 2^32.
func (k *kept) eightKeys() {
	z, t := ZMM(), ZMM()
	list, have := label("list"), label("have")
	TESTQ(k.ids, k.ids)
	JNZ(LabelRef(list))
	VMOVDQA64(k.base, z)
	VPADDQ(k.step, k.base, k.base)
	JMP(LabelRef(have))
	Label(list)
	VPMOVZXDQ(Mem{Base: k.ids}, z)
	VPMULLQ(k.mix[0], z, z)
	VPADDQ(k.base, z, z)
	ADDQ(Imm(32), k.ids)
	Label(have)
	for i, shift := range []uint64{30, 27, 31} {
		VPSRLQ(Imm(shift), z, t)
		VPXORQ(t, z, z)
		if i < 2 {
			VPMULLQ(k.mix[i+1], z, z)
		}
	}
	k.keys = z
}

// few stores the bits of rows of up to 8 columns, of each eight of which draw makes bytes.
func (k *kept) few(draw func(bytes Mem)) {
	bytes, which, times := AllocLocal(8), k.columnBits(), GP64()
	MOVQ(U64(0x0101010101010101), times)
	IMULQ(times, which)
	k.eights(func() {
		m := GP64()
		draw(bytes)
		MOVQ(bytes, m)
		PEXTQ(which, m, m)
		MOVQ(m, Mem{Base: k.out})
	})
}

// more stores the bits of rows of more columns, of each eight of which draw makes words. A row begins within a byte, which
// has what the row before has left, too.
func (k *kept) more(draw func() vec) {
	which, cols, seven := k.wide(k.columnBits()), k.wide(k.cols), k.wide(sevenBits)
	from, whole, shift, room, places := ZMM(), ZMM(), ZMM(), AllocLocal(64), AllocLocal(64)
	VPMOVZXDQ(toEight, from)
	VPMULLQ(cols, from, from)
	VPANDQ(seven, from, shift)
	VPADDQ(cols, shift, whole)
	VPANDNQ(whole, seven, whole) // bits from a row's first byte to the next row's
	VPSRLQ(Imm(3), from, from)
	VMOVDQU64(from, places)
	none := k.zero()
	k.eights(func() {
		x, left := ZMM(), ZMM()
		VPANDQ(which, draw(), x)
		VPSLLVQ(shift, x, x)
		VPSRLVQ(whole, x, left)
		VALIGNQ(Imm(7), none, left, left)
		VPORQ(left, x, x)
		VMOVDQU64(x, room)
		for row := range 8 {
			m, at := GP64(), GP64()
			MOVQ(room.Offset(8*row), m)
			MOVQ(places.Offset(8*row), at)
			MOVQ(m, Mem{Base: k.out, Index: at, Scale: 1})
		}
	})
}

// columnBits is a bit for each column.
func (k *kept) columnBits() reg.GPVirtual {
	ones := GP64()
	MOVQ(I64(-1), ones)
	BZHIQ(k.cols, ones, ones)
	return ones
}

// rowsAndTails draws for rows of more than 32 columns: a vector for each, and one for what is left of per of them.
func (k *kept) rowsAndTails(per int) {
	pairs, tails, room, ends := k.pairs(1), k.pairs(per), AllocLocal(32), AllocLocal(32)
	VPADDD_BCST(bits(16*dropC0&0xffffffff), tails, tails)
	k.more(func() vec {
		end := k.drawn(per, tails, ends)
		VPSLLQ(Imm(32), end, end)
		VPORQ(k.drawn(1, pairs, room), end, end)
		return end
	})
}

// pairs are the pairs of columns of a vector of per rows, multiplied as the hash wants it.
func (k *kept) pairs(per int) vec {
	pairs := ZMM()
	VMOVDQU32(keptTables[per].pairs, pairs)
	return pairs
}

// drawTo draws pairs of columns for the next eight rows, per of them a vector; drawn makes words of what it stored.
func (k *kept) drawTo(room Mem, per int, pairs vec) {
	for v := range 8 / per {
		MOVL(k.draw(per, v, pairs).As32(), room.Offset(4*v))
	}
}

func (k *kept) drawn(per int, pairs vec, room Mem) vec {
	k.drawTo(room, per, pairs)
	words := ZMM()
	switch per {
	case 1:
		VPMOVZXDQ(room, words)
	case 2:
		VPMOVZXWQ(room, words)
	case 4:
		VPMOVZXBQ(room, words)
	}
	return words
}

// draw is a bit for each of the 32 draws of vector v of the next eight rows: whether it keeps.
func (k *kept) draw(per, v int, pairs vec) reg.GPVirtual {
	low, high, t, m, r := ZMM(), ZMM(), ZMM(), K(), GP64()
	for half, keys := range []vec{low, high} {
		VMOVDQU32(keptTables[per].order.Offset(128*v+64*half), t)
		VPERMD(k.keys, t, keys)
	}
	VPADDD(pairs, low, low)
	VPSRLD(Imm(16), low, t)
	VPXORD(t, low, low)
	VPMULLD(k.c1, low, low)
	VPSRLD(Imm(15), low, t)
	VPTERNLOGD(U8(0x96), t, high, low)
	VPMULLD(k.c2, low, low)
	VPCMPUW(Imm(5), k.least, low, m)
	KMOVD(m, r.As32())
	return r
}

// keptTables are, for as many rows a vector: the pairs of columns of the lanes, multiplied as the hash wants it, and of each
// of eight rows' vectors the lanes where its keys' lower halves are, then the upper ones. toEight counts to eight.
var (
	keptTables         = map[int]struct{ pairs, order Mem }{}
	toEight, sevenBits Mem
)

func makeKeptTables() {
	for _, per := range []int{1, 2, 4} {
		t := keptTables[per]
		t.pairs = GLOBL(fmt.Sprintf("elementPairs%d", per), 16|8)
		for i := range 16 {
			DATA(4*i, U32(uint32(i%(16/per))*dropC0&0xffffffff))
		}
		t.order = GLOBL(fmt.Sprintf("elementKeys%d", per), 16|8)
		for i := range 8 / per * 32 {
			row := i/32*per + i%16*per/16
			DATA(4*i, U32(2*row+i/16%2))
		}
		keptTables[per] = t
	}
	toEight = GLOBL("elementEight", 16|8)
	for i := range 8 {
		DATA(4*i, U32(i))
	}
	sevenBits = ConstData("elementSeven", U64(7))
}
