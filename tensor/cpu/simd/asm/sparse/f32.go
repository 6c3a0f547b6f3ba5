package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// multiplyAdd adds w times a vector of a source row; tail says that it is the last of the row.
func multiplyAdd(from Mem, w, to VecPhysical, tail bool) {
	if tail {
		VFMADD231PS(from, w, K1, to)
	} else {
		VFMADD231PS(from, w, to)
	}
}

// store writes a vector; of a row's last, what is in the row.
func store(v VecPhysical, to Mem, tail bool) {
	if tail {
		VMOVUPS(v, K1, to)
	} else {
		VMOVUPS(v, to)
	}
}

// narrow is the loop for rows of n vectors.
func narrow(n int) {
	name := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	Label(name("row"))
	startRow()
	for v := range n {
		VPXORD(acc(v), acc(v), acc(v))
	}
	sum := func() {
		for v := range n {
			multiplyAdd(Mem{Base: at, Disp: 64 * v}, weight, acc(v), v == n-1)
		}
	}
	selfEntry(name("next"), sum)
	frame.Compare(index, end, JAE, name("done"))
	prefetch(1, name("ask"))
	entry()
	sum()
	JMP(LabelRef(name("next")))
	Label(name("done"))
	floatRows.leave(n)
}

// finish writes rowScale times the sum in memory to dst, in any mode.
func finish(name string) {
	Label(name)
	MOVQ(field(fieldAcc), at)
	MOVQ(field(fieldVectors), end)
	MOVQ(dst, tmp)
	KXNORW(K2, K2, K2)
	Label(name + "next")
	frame.Compare(end, U8(1), JNE, name+"whole")
	KMOVW(K1, K2)
	Label(name + "whole")
	VMULPS(Mem{Base: at}, rowScale, x)
	frame.Test(U32(modeBF16), field(fieldMode), JNZ, name+"b16")
	frame.Test(U32(modeAdd), field(fieldMode), JZ, name+"store")
	VMOVUPS_Z(Mem{Base: tmp}, K2, y)
	VADDPS(y, x, x)
	Label(name + "store")
	frame.Test(U32(modeStream), field(fieldMode), JNZ, name+"stream")
	VMOVUPS(x, K2, Mem{Base: tmp})
	ADDQ(U8(64), tmp)
	JMP(LabelRef(name + "step"))
	Label(name + "stream")
	VMOVNTPS(x, Mem{Base: tmp})
	ADDQ(U8(64), tmp)
	JMP(LabelRef(name + "step"))

	Label(name + "b16")
	frame.Test(U32(modeAdd), field(fieldMode), JZ, name+"round")
	VPMOVZXWD_Z(Mem{Base: tmp}, K2, y)
	VPSLLD(U8(16), y, y)
	VADDPS(y, x, x)
	Label(name + "round")
	toBF16(x, y)
	VPMOVDW(y, K2, Mem{Base: tmp})
	ADDQ(U8(32), tmp)
	Label(name + "step")
	ADDQ(U8(64), at)
	frame.Next(end, name+"next")
}

var floatRows = rowKind{sums: 1, store: store, finish: finish, scale: func(v int) { VMULPS(acc(v), rowScale, acc(v)) }}
