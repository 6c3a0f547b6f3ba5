package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// mostLanes is how many vectors, or blocks, sixteen heads take that are at most half of one.
const mostLanes = 8

// gradLanes is the backward pass over wide rows: for the entries of a source row,
// dst (dz) = the sum of weight · destination's gradient, and dots gets the dot
// product of that gradient with the source's own row z for each head. It is for
// vectors that hold several heads; gradHeads is for the others.
func gradLanes(bf16 bool) {
	name := "attendGradLanes512"
	if bf16 {
		name += "b16"
	}
	regs := []VecPhysical{Z23, Z24, Z25, Z26, Z27}
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes the wide rows of an attendRowArgs.")
	beginRows(regs)
	loadSegments()
	choose(mostLanes)
	for n := 1; n <= mostLanes; n++ {
		gradLanesBody(n, bf16, regs)
	}
}

// loadSegments loads the masks that say which lanes are of one head.
func loadSegments() {
	rowFields.load("zbuf", zrow)
	rowFields.load("segments", tmp)
	KMOVW(tmp.As32(), K2)
	rowFields.load("heads16", tmp)
	KMOVW(tmp.As32(), K3)
	rowFields.load("swaps", tmp)
	for _, k := range swapMasks {
		KMOVW(tmp.As32(), k)
		SHRQ(U8(16), tmp)
	}
}

// storeDots adds the lanes of q that are of one head and stores one number a head at tmp, which it moves on unless
// this is the last vector.
func storeDots(q VecPhysical, last bool) {
	for i, d := range []int{1, 2, 4, 8} {
		lanes.Swap(d, q, y)
		VADDPS(y, q, swapMasks[i], q)
	}
	VCOMPRESSPS_Z(q, K2, q)
	VMOVUPS(q, K3, Mem{Base: tmp})
	if !last {
		ADDQ(rowFields.mem("heads"), tmp) // bytes of a vector's heads
	}
}

// copyZ puts the row's z into memory as the products want it.
func copyZ(n int, bf16 bool) {
	f := rowFields
	f.loadRow("z", row, tmp)
	for v := range n {
		line := Mem{Base: tmp, Disp: 64 * v}
		switch {
		case bf16:
			lanes.SplitBF16(line, x, y, v == n-1, K1)
			VMOVUPS(x, Mem{Base: zrow, Disp: 128 * v})
			VMOVUPS(y, Mem{Base: zrow, Disp: 128*v + 64})
		case v == n-1:
			VMOVUPS_Z(line, K1, x)
			VMOVUPS(x, Mem{Base: zrow, Disp: 64 * v})
		default:
			VMOVUPS(line, x)
			VMOVUPS(x, Mem{Base: zrow, Disp: 64 * v})
		}
	}
}

func gradLanesBody(n int, bf16 bool, regs []VecPhysical) {
	name := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	vectors := n
	if bf16 {
		vectors = 2 * n
	}
	q := Z16
	Label(name("row"))
	startRow()
	copyZ(n, bf16)
	for v := range vectors {
		VPXORD(sums[v], sums[v], sums[v])
	}
	Label(name("next"))
	CMPQ(index, end)
	JAE(LabelRef(name("done")))
	nextEntry(n, name("ask"))
	rowFields.load("dots", tmp)
	for v := range n {
		line := Mem{Base: at, Disp: 64 * v}
		if bf16 {
			lanes.SplitBF16By(upper, line, x, y, v == n-1, K1)
			VMULPS(Mem{Base: zrow, Disp: 128 * v}, x, q)
			VFMADD231PS(Mem{Base: zrow, Disp: 128*v + 64}, y, q)
			columnWeights(2*v, Mem{Base: weight}, regs, w)
			VFMADD231PS(x, w, sums[2*v])
			columnWeights(2*v+1, Mem{Base: weight}, regs, w)
			VFMADD231PS(y, w, sums[2*v+1])
		} else {
			if v == n-1 {
				VMOVUPS_Z(line, K1, x)
			} else {
				VMOVUPS(line, x)
			}
			VMULPS(Mem{Base: zrow, Disp: 64 * v}, x, q)
			columnWeights(v, Mem{Base: weight}, regs, w)
			VFMADD231PS(x, w, sums[v])
		}
		storeDots(q, v == n-1)
	}
	ADDQ(gap, weight)
	ADDQ(gap, rowFields.mem("dots"))
	JMP(LabelRef(name("next")))

	Label(name("done"))
	rowFields.loadRow("dst", row, dst)
	storeRow(n, bf16, name)
	if bf16 { // rounding used K3 and, as float32, K2
		rowFields.load("segments", tmp)
		KMOVW(tmp.As32(), K2)
		rowFields.load("heads16", tmp)
		KMOVW(tmp.As32(), K3)
	}
	INCQ(row)
	CMPQ(row, rowFields.mem("rows"))
	JB(LabelRef(name("row")))
	VZEROUPPER()
	RET()
}
