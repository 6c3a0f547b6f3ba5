package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// kept draws a dropout of a half for narrow rows, eight at a time: their keys, whose bits are
// the draws, are the lanes of
// a vector. AVX-512 only.
type kept struct {
	*kernel
	ids, left, out reg.GPVirtual
	// what is added to ids' multiples; without a list, what the next eight keys are made of,
	// and eight ids
	base, step vec
	mix        []vec // the factors of a key's hash
	keys       vec
}

func keptKernel() {
	k := &kept{kernel: begin(avx512, "kept", "Kept")}
	k.prepare()
	k.store()
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
}

// wide is a word in every lane.
func (k *kept) wide(word Op) vec {
	v := ZMM()
	VPBROADCASTQ(word, v)
	return v
}

// eightRows runs body for each eight rows, which stores their bits.
func (k *kept) eightRows(body func()) {
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

// store stores the rows' bits. A row begins within a byte, which has what the row before has left, too.
func (k *kept) store() {
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
	k.eightRows(func() {
		x, left := ZMM(), ZMM()
		VPANDQ(which, k.keys, x)
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

// toEight counts to eight.
var toEight, sevenBits Mem

func makeKeptTables() {
	toEight = GLOBL("elementEight", 16|8)
	for i := range 8 {
		DATA(4*i, U32(i))
	}
	sevenBits = ConstData("elementSeven", U64(7))
}
