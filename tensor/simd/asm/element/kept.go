package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// kept draws for narrow rows, eight at a time: their keys are the lanes of a vector. A vector of hashes is 32 draws, of
// four rows of up to 8 columns, of two of up to 16, or of a row's next columns. AVX-512 only.
type kept struct {
	*kernel
	ids, left reg.GPVirtual
	id        reg.VecVirtual   // of the next eight rows where they have no list
	mix       []reg.VecVirtual // the factors of a key's hash
	key, one  vec
	c1, c2    vec
	least     vec
	keys      vec // of eight rows, two lanes each
	out       reg.GPVirtual
	bits      reg.GPVirtual // that do not fill a byte yet, count of them
	count     reg.GPVirtual
	ask       []asked
}

// asked is a block whose lines are asked for: the next of them, and where the rows drawn for end, which moves on by step.
type asked struct{ next, end, step reg.GPVirtual }

func keptKernel() {
	k := &kept{kernel: begin(avx512, "kept", "Kept")}
	k.prepare()
	done, long := label("kept"), label("long")
	for _, tail := range []int{8, 16} {
		other := label("other")
		CMPQ(k.cols, Imm(32))
		JLE(LabelRef(long))
		CMPQ(k.cols, Imm(uint64(32+tail)))
		JGT(LabelRef(other))
		k.rowsAndTails(tail)
		JMP(LabelRef(done))
		Label(other)
	}
	Label(long)
	for _, per := range []int{4, 2, 1} {
		wider := label("wider")
		if per > 1 {
			CMPQ(k.cols, Imm(uint64(32/per)))
			JGT(LabelRef(wider))
		}
		k.rowsBy(per)
		if per > 1 {
			JMP(LabelRef(done))
			Label(wider)
		}
	}
	Label(done)
	k.end()
}

func (k *kept) prepare() {
	k.cols, k.ids, k.left, k.out = k.load("Cols"), k.load("Drop.IDs"), k.load("Rows"), k.load("Bits")
	k.bits, k.count = GP64(), GP64()
	XORQ(k.bits, k.bits)
	XORQ(k.count, k.count)
	k.id = YMM()
	VPBROADCASTD(k.field("Drop.First"), k.id)
	VPADDD(eightIDs, k.id, k.id)
	for _, factor := range []uint64{0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb} {
		k.mix = append(k.mix, k.wide64(factor))
	}
	k.key, k.one, k.least = ZMM(), k.wide64(1), ZMM()
	VPBROADCASTQ(k.field("Drop.Key"), k.key)
	VPBROADCASTW(k.field("Drop.Threshold"), k.least)
	k.c1, k.c2 = k.all(bits(0x7feb352d)), k.all(bits(0x846ca68b))
	for _, block := range []string{"From", "Other"} {
		a := asked{k.load(block + ".Data"), GP64(), GP64()}
		MOVQ(a.next, a.end)
		XORQ(a.step, a.step)
		k.ifPointer(block+".Data", func(reg.GPVirtual) {
			k.either(block, func() { IMUL3Q(Imm(4*8), k.cols, a.step) }, func() { IMUL3Q(Imm(2*8), k.cols, a.step) })
		})
		k.ask = append(k.ask, a)
	}
}

// askEight asks for the next eight rows.
func (k *kept) askEight() {
	for _, a := range k.ask {
		start, end := label("ask"), label("asked")
		ADDQ(a.step, a.end)
		Label(start)
		CMPQ(a.next, a.end)
		JAE(LabelRef(end))
		PREFETCHT1(Mem{Base: a.next})
		ADDQ(Imm(64), a.next)
		JMP(LabelRef(start))
		Label(end)
	}
}

func (k *kept) wide64(x uint64) reg.VecVirtual {
	g, v := GP64(), ZMM()
	MOVQ(U64(x), g)
	VPBROADCASTQ(g, v)
	return v
}

// rowsBy draws for all rows, per of them a vector.
func (k *kept) rowsBy(per int) {
	count, which := GP64(), GP64()
	MOVQ(k.cols, count)
	if per > 1 { // the bits of a vector that are columns
		ones, times := GP64(), GP64()
		MOVQ(U32(0xffffffff), ones)
		BZHIQ(k.cols, ones, which)
		MOVQ(U32(map[int]uint32{4: 0x01010101, 2: 0x00010001}[per]), times)
		IMULQ(times, which)
		IMUL3Q(Imm(uint64(per)), count, count)
	}
	pairs, step := ZMM(), k.all(bits(16*dropC0&0xffffffff))
	VMOVDQU32(keptTables[per].pairs, pairs)
	start := label("eight")
	Label(start)
	k.eightKeys()
	k.askEight()
	for v := range 8 / per {
		x, high := k.hashes(per, v, pairs)
		if per > 1 {
			m := k.draw(x, high)
			PEXTQ(which, m, m)
			k.append(m, count)
			continue
		}
		k.wholeRow(x, high, step, count)
	}
	SUBQ(Imm(8), k.left)
	JNZ(LabelRef(start))
}

// hashes are those of vector v of the next eight rows, per of them a vector, for the pairs of columns.
func (k *kept) hashes(per, v int, pairs vec) (x, high vec) {
	x, high = ZMM(), ZMM()
	for half, keys := range []vec{x, high} {
		order := ZMM()
		VMOVDQU32(keptTables[per].order.Offset(128*v+64*half), order)
		VPERMD(k.keys, order, keys)
	}
	VPADDD(pairs, x, x)
	return x, high
}

// rowsAndTails draws for rows of more than 32 columns, by up to tail: a vector for each, and one for what is left of several.
func (k *kept) rowsAndTails(tail int) {
	per, left, ends := 32/tail, GP64(), AllocLocal(16)
	LEAQ(Mem{Base: k.cols, Disp: -32}, left)
	pairs, tails := ZMM(), ZMM()
	VMOVDQU32(keptTables[1].pairs, pairs)
	VMOVDQU32(keptTables[per].pairs, tails)
	VPADDD_BCST(bits(16*dropC0&0xffffffff), tails, tails)
	start := label("eight")
	Label(start)
	k.eightKeys()
	k.askEight()
	for v := range 8 / per {
		MOVL(k.draw(k.hashes(per, v, tails)).As32(), ends.Offset(4*v))
	}
	for row := range 8 {
		m, end := k.draw(k.hashes(1, row, pairs)), GP64()
		if tail == 8 {
			MOVBQZX(ends.Offset(row), end)
		} else {
			MOVWQZX(ends.Offset(2*row), end)
		}
		BZHIQ(left, end, end)
		SHLQ(Imm(32), end)
		ORQ(end, m)
		k.append(m, k.cols)
	}
	SUBQ(Imm(8), k.left)
	JNZ(LabelRef(start))
}

// wholeRow draws for the columns of one row.
func (k *kept) wholeRow(x, high, step vec, cols reg.GPVirtual) {
	left, whole, again, last := GP64(), GP64(), label("columns"), label("last")
	MOVQ(cols, left)
	MOVQ(U32(32), whole)
	Label(again)
	CMPQ(left, Imm(32))
	JLE(LabelRef(last))
	k.append(k.draw(x, high), whole)
	VPADDD(step, x, x)
	SUBQ(Imm(32), left)
	JMP(LabelRef(again))
	Label(last)
	m := k.draw(x, high)
	BZHIQ(left, m, m)
	k.append(m, left)
}

// eightKeys computes the keys of the next eight rows.
func (k *kept) eightKeys() {
	z, t := ZMM(), ZMM()
	plain, have := label("plain"), label("have")
	TESTQ(k.ids, k.ids)
	JZ(LabelRef(plain))
	VPMOVZXDQ(Mem{Base: k.ids}, z)
	ADDQ(Imm(32), k.ids)
	JMP(LabelRef(have))
	Label(plain)
	VPMOVZXDQ(k.id, z)
	VPADDD(eightIDs.Offset(32), k.id, k.id)
	Label(have)
	VPADDQ(k.one, z, z)
	VPMULLQ(k.mix[0], z, z)
	VPADDQ(k.key, z, z)
	for i, shift := range []uint64{30, 27, 31} {
		VPSRLQ(Imm(shift), z, t)
		VPXORQ(t, z, z)
		if i < 2 {
			VPMULLQ(k.mix[i+1], z, z)
		}
	}
	k.keys = z
}

// draw is a bit for each of the 32 draws of the hashes that start with x: whether it keeps.
func (k *kept) draw(x, high vec) reg.GPVirtual {
	h, t, m, r := ZMM(), ZMM(), K(), GP64()
	VPSRLD(Imm(16), x, h)
	VPXORD(x, h, h)
	VPMULLD(k.c1, h, h)
	VPSRLD(Imm(15), h, t)
	VPTERNLOGD(U8(0x96), t, high, h)
	VPMULLD(k.c2, h, h)
	VPCMPUW(Imm(5), k.least, h, m)
	KMOVD(m, r.As32())
	return r
}

// append stores the lowest count bits of m, at most 57, behind those before.
func (k *kept) append(m, count reg.GPVirtual) {
	t := GP64()
	SHLXQ(k.count, m, m)
	ORQ(m, k.bits)
	MOVQ(k.bits, Mem{Base: k.out})
	ADDQ(count, k.count)
	MOVQ(k.count, t)
	ANDQ(I8(^7), t)
	SHRXQ(t, k.bits, k.bits)
	SHRQ(Imm(3), t)
	ADDQ(t, k.out)
	ANDQ(Imm(7), k.count)
}

// keptTables are, for as many rows a vector: the pairs of columns of the lanes, multiplied as the hash wants it, and of each
// of eight rows' vectors the lanes where its keys' lower halves are, then the upper ones. eightIDs counts to eight, and by eight.
var (
	keptTables = map[int]struct{ pairs, order Mem }{}
	eightIDs   Mem
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
	eightIDs = GLOBL("elementEight", 16|8)
	for i := range 16 {
		DATA(4*i, U32(min(i, 8)))
	}
}
