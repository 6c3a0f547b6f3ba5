package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

const dropC0, dropGolden = 0x9e3779b1, 0x9e3779b97f4a7c15

var (
	iota16     Mem // pair·c0 of the first sixteen pairs of columns
	mixFactors Mem // of a row's key and of mix, then what is added for the next block of columns
	eachBit    Mem // of two vectors of AVX2, the bit of each lane
)

func makeDropTables() {
	iota16 = GLOBL("elementColumns", 16|8)
	for i := range 16 {
		DATA(4*i, U32(uint32(i)*dropC0&0xffffffff))
	}
	mixFactors = GLOBL("elementMix", 16|8)
	for i, x := range []uint64{dropGolden, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, dropGolden << 32 & (1<<64 - 1)} {
		DATA(8*i, U64(x))
	}
	eachBit = GLOBL("elementBits", 16|8)
	for i := range 16 {
		DATA(4*i, U32(1<<i))
	}
}

// drops draws the columns of a row, 64 of one hash of a half, two vectors at a time of any
// other P, or looks up what to keep.
type drops struct {
	k         *kernel
	ids, id   reg.GPVirtual // ids are the bits of the next row where these are given
	next, top vec           // the hash's start for the next pairs of columns; the upper half of the row's key
	block     Mem           // of a half, what the next 64 columns' bits are made of
	bits      reg.GPVirtual // those from column j on
}

func (k *kernel) newDrops() *drops {
	d := &drops{k: k, next: k.reg(), top: k.reg(), block: AllocLocal(8), bits: GP64()}
	XORQ(d.bits, d.bits)
	d.ids, d.id = k.load("Drop.IDs"), GP64()
	MOVL(k.field("Drop.First"), d.id.As32())
	if k.zmm {
		k.ifPointer("Drop.Bits", func(bits reg.GPVirtual) { MOVQ(bits, d.ids) })
	}
	return d
}

// drawing runs body unless what to keep is given: then, other.
func (d *drops) drawing(body, other func()) {
	if !d.k.zmm {
		body()
		return
	}
	given, done := label("given"), label("decided")
	frame.Compare(d.k.field("Drop.Bits"), Imm(0), JNE, given)
	body()
	JMP(LabelRef(done))
	Label(given)
	other()
	Label(done)
}

// row goes on to the next row.
func (d *drops) row() {
	d.drawing(d.rowKey, func() { ADDQ(d.k.field("Drop.BitStride"), d.ids) })
}

// rowKey computes the key of the next row, or, of a half, what it is made of.
func (d *drops) rowKey() {
	have, z := label("id"), GP64()
	MOVQ(d.id, z)
	frame.Test(d.ids, d.ids, JZ, have)
	MOVL(Mem{Base: d.ids}, z.As32())
	ADDQ(Imm(4), d.ids)
	Label(have)
	INCL(d.id.As32())
	INCQ(z)
	IMULQ(mixFactors, z)
	ADDQ(d.k.field("Drop.Key"), z)
	d.k.ofHalf(func() { MOVQ(z, d.block) }, func() {
		mix(z)
		x := XMM()
		VMOVQ(z, x)
		VPBROADCASTD(x, d.next)
		VPADDD(iota16, d.next, d.next)
		VPSRLQ(Imm(32), x, x)
		VPBROADCASTD(x, d.top)
	})
}

// ofHalf runs yes where a half is dropped, else no.
func (k *kernel) ofHalf(yes, no func()) {
	other, done := label("other"), label("half")
	CMPW(k.field("Drop.Threshold"), U16(1<<15))
	JNE(LabelRef(other))
	yes()
	JMP(LabelRef(done))
	Label(other)
	no()
	Label(done)
}

// mix makes of a row's key and id, multiplied and added, its bits.
func mix(z reg.GPVirtual) {
	t := GP64()
	for i, shift := range []uint64{30, 27, 31} {
		MOVQ(z, t)
		SHRQ(Imm(shift), t)
		XORQ(t, z)
		if i < 2 {
			IMULQ(mixFactors.Offset(8*(i+1)), z)
		}
	}
}

// apply keeps and scales, or zeroes, the numbers of the next columns.
func (d *drops) apply(v []vec) {
	d.drawing(func() {
		d.k.ofHalf(func() { d.byBits(v) }, func() { d.draw(v) })
	}, func() { d.lookUp(v) })
}

// byBits is apply by the row's bits.
func (d *drops) byBits(v []vec) {
	k, same := d.k, label("same")
	if len(v)*k.lanes < 64 {
		frame.Test(U32(63), k.j, JNZ, same)
	}
	step := GP64()
	MOVQ(d.block, d.bits)
	MOVQ(mixFactors.Offset(24), step)
	ADDQ(step, d.block)
	mix(d.bits)
	Label(same)
	k.keepBits(d.bits, v, k.all(k.field("Drop.Scale")))
	if len(v)*k.lanes < 64 {
		SHRQ(Imm(uint64(len(v)*k.lanes)), d.bits)
	}
}

// keepBits scales the numbers whose bits are set, the lowest for the first, and zeroes the others.
func (k *kernel) keepBits(bits reg.GPVirtual, v []vec, scale vec) {
	if k.zmm {
		m := K()
		KMOVQ(bits, m)
		keepLanes(m, v, scale, func() { KSHIFTRQ(Imm(16), m, m) })
		return
	}
	all := k.reg()
	VMOVQ(bits, all.AsX())
	VPBROADCASTD(all.AsX(), all)
	for i, x := range v {
		m := k.reg()
		VPAND(eachBit.Offset(32*i), all, m)
		VPCMPEQD(eachBit.Offset(32*i), m, m)
		VMULPS(scale, x, x)
		VPAND(m, x, x)
	}
}

// keepLanes scales the numbers that m has, sixteen at a time, and zeroes the others.
func keepLanes(m reg.Register, v []vec, scale vec, next func()) {
	for i, x := range v {
		if i > 0 {
			next()
		}
		VMULPS_Z(scale, x, m, x)
	}
}

// lookUp is apply by the bits of the columns; row has gone beyond them.
func (d *drops) lookUp(v []vec) {
	k, at, scale := d.k, GP64(), d.k.all(d.k.field("Drop.Scale"))
	MOVQ(k.j, at)
	SHRQ(Imm(3), at)
	ADDQ(d.ids, at)
	SUBQ(k.field("Drop.BitStride"), at)
	for i, x := range v {
		m := K()
		KMOVW(Mem{Base: at, Disp: 2 * i}, m)
		VMULPS_Z(scale, x, m, x)
	}
}

// draw is apply by draws.
func (d *drops) draw(v []vec) {
	k := d.k
	c1, c2 := k.all(bits(0x7feb352d)), k.all(bits(0x846ca68b))
	// A single vector is the first of two, of which the other may follow.
	pairs := min(len(v), 2) * k.lanes / 2
	step := k.all(bits(uint32(pairs * dropC0 & 0xffffffff)))
	least, scale := k.reg(), k.all(k.field("Drop.Scale"))
	VPBROADCASTW(k.field("Drop.Threshold"), least)
	for i := 0; i < len(v); i += 2 {
		h, t := k.reg(), k.reg()
		VPSRLD(Imm(16), d.next, h)
		k.xor(d.next, h, h)
		VPADDD(step, d.next, d.next)
		VPMULLD(c1, h, h)
		VPSRLD(Imm(15), h, t)
		k.xor3(t, d.top, h)
		VPMULLD(c2, h, h)
		k.decide(v[i:min(i+2, len(v))], h, least, scale)
	}
}

// decide scales the numbers of one or two vectors whose draws, the words of h, are at least
// least, and zeroes the others.
func (k *kernel) decide(v []vec, h, least, scale vec) {
	if k.zmm {
		m := K()
		VPCMPUW(Imm(5), least, h, m)
		keepLanes(m, v, scale, func() { KSHIFTRD(Imm(16), m, m) })
		return
	}
	t := k.reg()
	VPMAXUW(least, h, t)
	VPCMPEQW(t, h, t)
	for i, x := range v {
		m := k.reg()
		if i > 0 {
			VEXTRACTI128(Imm(1), t, t.AsX())
		}
		VPMOVSXWD(t.AsX(), m)
		VMULPS(scale, x, x)
		VPAND(m, x, x)
	}
}

// undo is the dropout of the gradient: after ReLU only its scale, for what was dropped is zero already.
func (d *drops) undo(g []vec) {
	k := d.k
	draws, done := label("draws"), label("drawn")
	CMPB(k.field("Act"), Imm(relu))
	JNE(LabelRef(draws))
	scale := k.all(k.field("Drop.Scale"))
	for i := range g {
		VMULPS(scale, g[i], g[i])
	}
	JMP(LabelRef(done))
	Label(draws)
	d.apply(g)
	Label(done)
}
