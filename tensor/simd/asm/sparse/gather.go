package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gather512 is the yardstick of the benchmarks: it reads the listed rows, 64 bytes at
// a time, and adds them up in registers. Nothing is weighted or written.
func gather512() {
	TEXT("gather512", NOSPLIT, "func(src *byte, stride int, index *uint32, n int, lines int) float32")
	Pragma("noescape")
	Doc("gather512 reads rows of lines·64 bytes.")
	Load(Param("src"), src)
	Load(Param("stride"), stride)
	Load(Param("index"), index)
	Load(Param("n"), end)
	Load(Param("lines"), dst)
	for v := range 16 {
		VPXORD(acc(v), acc(v), acc(v))
	}
	Label("row")
	DECQ(end)
	JL(LabelRef("done"))
	MOVL(Mem{Base: index}, at.As32())
	ADDQ(U8(4), index)
	IMULQ(stride, at)
	ADDQ(src, at)
	MOVQ(dst, row)
	for _, n := range []int{16, 8, 4, 2, 1} {
		again := fmt.Sprintf("by%d", n)
		Label(again)
		CMPQ(row, U8(n))
		JL(LabelRef(fmt.Sprintf("under%d", n)))
		for v := range n {
			VADDPS(Mem{Base: at, Disp: 64 * v}, acc(v), acc(v))
		}
		ADDQ(U32(64*n), at)
		SUBQ(U8(n), row)
		if n == 16 {
			JMP(LabelRef(again))
		}
		Label(fmt.Sprintf("under%d", n))
	}
	JMP(LabelRef("row"))
	Label("done")
	for v := 1; v < 16; v++ {
		VADDPS(acc(v), acc(0), acc(0))
	}
	Store(X0, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
