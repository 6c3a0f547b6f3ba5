package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// The AVX2 loops sum rows of eight-number vectors into float32 rows. Up to
// narrow256 vectors stay in registers. A float32 row's last vector is masked; of
// bfloat16 rows the caller does the columns after the last whole vector.
const narrow256 = 8

var (
	weight2, x2, tail2, scale2 = Y12, Y13, Y14, Y15

	sums2 = []VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7}
)

func aggregate256(name string, bf16 bool) {
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " sums the rows of a sumArgs.")
	beginPointers()
	MOVQ(field(fieldMask), tmp) // here a pointer to the lanes' masks
	VMOVUPS(Mem{Base: tmp}, tail2)
	MOVQ(field(fieldVectors), tmp)
	choose(1, narrow256+1)
	for n := 1; n <= narrow256; n++ {
		narrow2(n, bf16)
	}
	wide2(fmt.Sprintf("row%d", narrow256+1), bf16)
	Label("end")
	frame.End()
}

// entryWeight2 spreads weight2, the product of two numbers, and sets at to its row's address.
func entryWeight2(scale, by Mem) {
	VBROADCASTSS(scale, weight2)
	VBROADCASTSS(by, x2)
	VMULPS(x2, weight2, weight2)
	IMULQ(stride, at)
	ADDQ(src, at)
}

func entry2() {
	MOVL(Mem{Base: index}, at.As32())
	ADDQ(U8(4), index)
	MOVQ(at, tmp)
	ANDQ(colMask, tmp)
	entryWeight2(Mem{Base: colScale, Index: tmp, Scale: 4}, Mem{Base: value})
	ADDQ(valueStep, value)
}

func selfEntry2(skip string, add func()) {
	MOVL(field(fieldSelf), tmp.As32())
	TESTL(tmp.As32(), tmp.As32())
	JZ(LabelRef(skip))
	selfScaleAt()
	entryWeight2(Mem{Base: tmp}, field(fieldSelf))
	add()
	Label(skip)
}

// multiplyAdd2 adds the weighted vector at from.
func multiplyAdd2(from Mem, to VecPhysical, tail, bf16 bool) {
	switch {
	case bf16:
		VPMOVZXWD(from, x2)
		VPSLLD(U8(16), x2, x2)
		VFMADD231PS(x2, weight2, to)
	case tail:
		VMASKMOVPS(from, tail2, x2)
		VFMADD231PS(x2, weight2, to)
	default:
		VFMADD231PS(from, weight2, to)
	}
}

func bytes2(bf16 bool) int {
	if bf16 {
		return 16
	}
	return 32
}

func narrow2(n int, bf16 bool) {
	name := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	Label(name("row"))
	startRow()
	for v := range n {
		VXORPS(sums2[v], sums2[v], sums2[v])
	}
	add := func() {
		for v := range n {
			multiplyAdd2(Mem{Base: at, Disp: v * bytes2(bf16)}, sums2[v], v == n-1, bf16)
		}
	}
	selfEntry2(name("next"), add)
	frame.Compare(index, end, JAE, name("done"))
	prefetch((n*bytes2(bf16)+63)/64, name("ask"))
	entry2()
	add()
	JMP(LabelRef(name("next")))
	Label(name("done"))
	loadRowScale(scale2)
	for v := range n {
		VMULPS(scale2, sums2[v], sums2[v])
	}
	each := func(do func(v VecPhysical, to Mem, tail bool)) {
		for v := range n {
			do(sums2[v], Mem{Base: dst, Disp: 32 * v}, v == n-1 && !bf16)
		}
	}
	frame.Compare(field(fieldMode), U8(0), JE, name("put"))
	each(plus2)
	Label(name("put"))
	each(put2)
	nextRow(name("row"))
}

// put2 writes v, plus2 adds to it what is there.
func put2(v VecPhysical, to Mem, tail bool) {
	if tail {
		VMASKMOVPS(v, tail2, to)
	} else {
		VMOVUPS(v, to)
	}
}

func plus2(v VecPhysical, to Mem, tail bool) {
	if tail {
		VMASKMOVPS(to, tail2, x2)
		VADDPS(x2, v, v)
	} else {
		VADDPS(to, v, v)
	}
}

// finish2 writes scale2 times v, or adds it.
func finish2(v VecPhysical, to Mem, tail bool, name string) {
	VMULPS(scale2, v, v)
	frame.Compare(field(fieldMode), U8(0), JE, name)
	plus2(v, to, tail)
	Label(name)
	put2(v, to, tail)
}

// wide2 is the loop for rows that do not fit into registers: the sum is in memory.
func wide2(name string, bf16 bool) {
	left, sum := RBP, R9
	each := func(name string, tails bool, step func(tail bool), move func()) {
		MOVQ(field(fieldVectors), left)
		MOVQ(field(fieldAcc), sum)
		Label(name)
		if tails {
			DECQ(left)
			JZ(LabelRef(name + "last"))
			step(false)
			move()
			JMP(LabelRef(name))
			Label(name + "last")
			step(true)
			return
		}
		step(false)
		move()
		frame.Next(left, name)
	}
	add := func(name string) {
		each(name, !bf16, func(tail bool) {
			VMOVUPS(Mem{Base: sum}, sums2[0])
			multiplyAdd2(Mem{Base: at}, sums2[0], tail, bf16)
			VMOVUPS(sums2[0], Mem{Base: sum})
		}, func() {
			ADDQ(U8(bytes2(bf16)), at)
			ADDQ(U8(32), sum)
		})
	}
	Label(name)
	startRow()
	VXORPS(sums2[0], sums2[0], sums2[0])
	each("wideclear", false, func(bool) { VMOVUPS(sums2[0], Mem{Base: sum}) }, func() { ADDQ(U8(32), sum) })
	selfEntry2("wideentries", func() { add("wideself") })
	Label("widenext")
	frame.Compare(index, end, JAE, "widedone")
	entry2()
	add("wideadd")
	JMP(LabelRef("widenext"))
	Label("widedone")
	loadRowScale(scale2)
	MOVQ(dst, at)
	puts := 0
	each("wideput", !bf16, func(tail bool) {
		VMOVUPS(Mem{Base: sum}, sums2[0])
		puts++
		finish2(sums2[0], Mem{Base: at}, tail, fmt.Sprintf("wideput_%d", puts))
	}, func() {
		ADDQ(U8(32), at)
		ADDQ(U8(32), sum)
	})
	nextRow(name)
}
