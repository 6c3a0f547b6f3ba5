package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
	"starling/tensor/cpu/simd/asm/lanes"
)

// A block is 32 bfloat16 numbers, one cache line. Its even and its odd columns are
// summed in two vectors: shifting the line left gives the even ones as float32,
// masking it the odd ones, which is half the work of widening sixteen at a time.
// A row that is stored as bfloat16 is put together the same way.

// addBlock adds w times a block of a source row. Reading a block twice, as operands, is an instruction less; where rows
// are near (or their panels were asked for), loads are what there is too much of.
func addBlock(from Mem, w, even, odd VecPhysical, tail, near bool) {
	switch {
	case tail:
		VMOVDQU16_Z(from, K1, y)
		VPSLLD(U8(16), y, x)
		VPANDD(y, upper, y)
	case near:
		VMOVDQU32(from, y)
		VPSLLD(U8(16), y, x)
		VPANDD(y, upper, y)
	default:
		VPSLLD(U8(16), from, x)
		VPANDD(from, upper, y)
	}
	VFMADD231PS(x, w, even)
	VFMADD231PS(y, w, odd)
}

// store16 writes a block; of a row's last, what is in the row.
func store16(v VecPhysical, to Mem, tail bool) {
	if tail {
		VMOVDQU16(v, K1, to)
	} else {
		VMOVUPS(v, to)
	}
}

// narrow16 is the loop for rows of n blocks.
func narrow16(n int) {
	name := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	sum := func(ask bool) {
		for v := range n {
			if ask {
				askLine(n, v)
			}
			addBlock(Mem{Base: at, Disp: 64 * v}, weight, acc(2*v), acc(2*v+1), v == n-1, !ask)
		}
	}
	Label(name("row"))
	startRow()
	for v := range 2 * n {
		VPXORD(acc(v), acc(v), acc(v))
	}
	selfEntry(name("entries"), func() { sum(false) })
	loop := func(start string, entry func(), ask bool) {
		Label(start)
		frame.Compare(index, end, JAE, name("done"))
		if ask && n > 2 {
			LEAQ(Mem{Base: index, Disp: 4 * steps}, tmp)
			frame.Compare(tmp, last, JHI, name("next"))
		}
		entry()
		if ask && n <= 2 {
			askRow(Mem{Base: index, Index: ahead, Scale: 1}, last, 0)
		}
		sum(ask)
		JMP(LabelRef(start))
	}
	frame.Test(ahead, ahead, JZ, name("next"))
	frame.Test(colMask, colMask, JNZ, name("ask"))
	loop(name("unscaled"), unscaledEntry, true)
	loop(name("ask"), entry, true)
	loop(name("next"), entry, false)
	Label(name("done"))
	halfRows.leave(n)
}

// steps is how many entries ahead the first line of a row is asked for.
const steps = 16

// askLine asks for line v of a row of n that is to be summed: of the row that askRow found or,
// where rows are longer, of one
// the nearer the farther in the row the line is. So lines asked for one after the other are of
// different pages, and a row
// comes line by line. Bfloat16 keeps three times as many instructions waiting for each line as
// float32 and needs it more:
// without asking it reaches half of a plain gather's speed at width 256.
func askLine(n, v int) {
	if n <= 2 {
		PREFETCHT0(Mem{Base: tmp, Disp: 64 * v})
		return
	}
	MOVL(Mem{Base: index, Disp: 4 * (steps - 1 - v)}, tmp.As32())
	IMULQ(stride, tmp)
	PREFETCHT0(Mem{Base: src, Index: tmp, Scale: 1, Disp: 64 * v})
}

// scale16 finishes block v of a row, in acc(2v), where the processor rounds by itself.
func scale16(v int) {
	VMULPS(acc(2*v), rowScale, acc(2*v))
	VMULPS(acc(2*v+1), rowScale, acc(2*v+1))
	lanes.JoinNative(acc(2*v), acc(2*v+1), x)
}

// joinBF16 rounds even and odd columns and leaves the block in even.
func joinBF16(even, odd VecPhysical) {
	toBF16(even, x)
	toBF16(odd, y)
	VPSLLD(U8(16), y, y)
	VPORD(x, y, even)
}

// finish16 writes rowScale times the sum in memory to dst, in any mode.
func finish16(name string) {
	even, odd := acc(0), acc(1)
	Label(name)
	MOVQ(field(fieldAcc), at)
	MOVQ(field(fieldVectors), end)
	MOVQ(dst, tmp)
	KXNORD(K2, K2, K2)
	Label(name + "next")
	frame.Compare(end, U8(1), JNE, name+"whole")
	KMOVD(K1, K2)
	Label(name + "whole")
	VMULPS(Mem{Base: at}, rowScale, even)
	VMULPS(Mem{Base: at, Disp: 64}, rowScale, odd)
	frame.Test(U32(modeBF16), field(fieldMode), JNZ, name+"b16")

	lanes.Interleave(even, odd, x, y)
	KSHIFTRD(U8(16), K2, K4)
	frame.Test(U32(modeAdd), field(fieldMode), JZ, name+"store")
	VMOVUPS_Z(Mem{Base: tmp}, K2, acc(2))
	VADDPS(acc(2), even, even)
	VMOVUPS_Z(Mem{Base: tmp, Disp: 64}, K4, acc(2))
	VADDPS(acc(2), odd, odd)
	Label(name + "store")
	VMOVUPS(even, K2, Mem{Base: tmp})
	VMOVUPS(odd, K4, Mem{Base: tmp, Disp: 64})
	ADDQ(U32(128), tmp)
	JMP(LabelRef(name + "step"))

	Label(name + "b16")
	frame.Test(U32(modeAdd), field(fieldMode), JZ, name+"round")
	VMOVDQU16_Z(Mem{Base: tmp}, K2, y)
	VPSLLD(U8(16), y, x)
	VPANDD(y, upper, y)
	VADDPS(x, even, even)
	VADDPS(y, odd, odd)
	Label(name + "round")
	frame.Test(U32(modeNative), field(fieldMode), JNZ, name+"native")
	joinBF16(even, odd)
	JMP(LabelRef(name + "joined"))
	Label(name + "native")
	lanes.JoinNative(even, odd, x)
	Label(name + "joined")
	frame.Test(U32(modeStream), field(fieldMode), JNZ, name+"stream")
	VMOVDQU16(even, K2, Mem{Base: tmp})
	JMP(LabelRef(name + "stored"))
	Label(name + "stream")
	VMOVNTPS(even, Mem{Base: tmp})
	Label(name + "stored")
	ADDQ(U8(64), tmp)
	Label(name + "step")
	ADDQ(U32(128), at)
	frame.Next(end, name+"next")
}

var halfRows = rowKind{sums: 2, store: store16, finish: finish16, scale: scale16}
