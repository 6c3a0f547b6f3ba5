package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/frame"
)

// outerSquare512 is outer512 of more than two vectors of B, with nothing to decide on the way: a core whose other thread is
// busy has few turns at the decoder. Eight columns of A by three vectors or, where the third is up to half of one, ten by
// two and a half: there each of the last columns of B stands twice, beside two numbers of A in turn.
func outerSquare512(half bool) {
	left, whole, name := 8, 3, "outer512by48"
	if half {
		left, whole, name = 10, 2, "outer512by40"
	}
	frame.Begin(name)
	sum := func(j, v int) VecPhysical { return avx512.vec[whole*j+v] }
	both := func(j int) VecPhysical { return avx512.vec[whole*left+j/2] } // the last columns' sums of j and j+1
	x, one, two, order := avx512.vec[25:28], avx512.vec[28:30], avx512.vec[30], avx512.vec[31]
	a, b, c, arow, brow, crow, rows, ahead, step, tmp := RSI, RDI, R8, R14, R9, R10, R11, R12, R13, RBX

	frame.First(a, b, c, arow, brow, crow, rows)
	frame.Get(fieldOuterAhead, ahead)
	frame.Get(fieldOuterAheadStep, step)
	frame.Get(fieldOuterCols, RCX)
	SUBQ(Imm(32), RCX)
	MOVQ(I32(-1), tmp)
	BZHIQ(RCX, tmp, tmp)
	KMOVW(tmp.As32(), K1) // the last columns of B
	for _, s := range avx512.vec[:25] {
		VPXORD(s, s, s)
	}
	if half {
		VMOVUPS(outerOrder("outerTwice", func(i int) int { return i / 2 }), order)
	}
	row := func() {
		VMOVUPS(Mem{Base: b}, x[0])
		VMOVUPS(Mem{Base: b, Disp: 64}, x[1])
		if half {
			VMOVUPS_Z(Mem{Base: b, Disp: 128}, K1, x[2].AsY())
			VPERMPS(x[2], order, x[2])
		} else {
			VMOVUPS_Z(Mem{Base: b, Disp: 128}, K1, x[2])
		}
		for j := range left {
			if half && j%2 == 0 {
				VBROADCASTF32X2(Mem{Base: a, Disp: 4 * j}, two)
				VFMADD231PS(x[2], two, both(j))
			}
			VBROADCASTSS(Mem{Base: a, Disp: 4 * j}, one[j%2])
			for v := range whole {
				VFMADD231PS(x[v], one[j%2], sum(j, v))
			}
		}
		ADDQ(arow, a)
		ADDQ(brow, b)
	}
	SUBQ(Imm(2), rows)
	JLT(LabelRef("single"))
	Label("rows")
	for i := range 2 {
		PREFETCHT1(Mem{Base: ahead, Disp: 64 * i})
	}
	PREFETCHT1(Mem{Base: ahead, Index: step, Scale: 2, Disp: -64})
	LEAQ(Mem{Base: ahead, Index: step, Scale: 2}, ahead)
	row()
	row()
	SUBQ(Imm(2), rows)
	JGE(LabelRef("rows"))
	Label("single")
	CMPQ(rows, I8(-1)) // one row is left
	JNE(LabelRef("sums"))
	row()

	Label("sums")
	last := func(j int) Op { return sum(j, 2) }
	if half { // one half of these sums becomes a row's, the other the next one's
		VMOVUPS(outerOrder("outerApart", func(i int) int { return i%8*2 + i/8 }), order)
		for j := 0; j < left; j += 2 {
			VPERMPS(both(j), order, both(j))
			VEXTRACTF32X8(Imm(1), both(j), x[0:5][j/2].AsY())
		}
		last = func(j int) Op { return []Op{both(j).AsY(), x[0:5][j/2].AsY()}[j%2] }
	}
	// The first rows may be another step's.
	frame.Get(fieldOuterLeft, tmp)
	for j := range left {
		next := fmt.Sprintf("sums%d", j)
		CMPQ(tmp, Imm(uint64(left-j)))
		JLT(LabelRef(next))
		sums := []Op{sum(j, 0), sum(j, 1), last(j)}
		CMPQ(frame.Field(fieldOuterAdd), Imm(0))
		JEQ(LabelRef(next + "write"))
		for v, s := range sums {
			VADDPS(Mem{Base: c, Disp: 64 * v}, s, s)
		}
		Label(next + "write")
		for v, s := range sums {
			VMOVUPS(s, Mem{Base: c, Disp: 64 * v})
		}
		ADDQ(crow, c)
		Label(next)
	}
	VZEROUPPER()
	RET()
}

// outerOrder is an order of lanes, in memory.
func outerOrder(name string, from func(i int) int) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(from(i)))
	}
	return m
}
