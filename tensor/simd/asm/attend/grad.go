package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// gradRows is the backward pass over wide rows: for the entries of a source row,
// dst (dz) = the sum of weight · destination's gradient, and dots gets the dot
// product of that gradient with the source's own row z for each head.
//
// Products are summed over the columns of a head in one of two ways. As a tree,
// where a head is whole vectors (or is alone): vectors are folded into each other
// until each lane is the sum of one of them, then neighbouring lanes are added as
// long as they are of one head. Or by lanes, where a vector holds several heads.
func gradRows(bf16, tree bool) {
	name, most := "attendGradTree512", 16
	if !tree {
		name = "attendGradLanes512"
	}
	if bf16 {
		name, most = name+"b16", 8
	}
	regs := []VecPhysical{Z23, Z24, Z25, Z26, Z27}
	if tree {
		regs = nil
	}
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes the wide rows of an attendRowArgs.")
	beginRows(regs)
	loadSegments()
	choose(most)
	for n := 1; n <= most; n++ {
		gradBody(n, bf16, tree, regs)
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

// product takes in q, the products of one vector's columns, as tree or by lanes.
func (s *stack) product(q VecPhysical, tree, last bool) {
	if tree {
		s.fold()
		return
	}
	s.pop()
	storeDots(q)
	if !last {
		ADDQ(rowFields.mem("heads"), tmp) // bytes of a vector's heads
	}
}

// storeDots adds the lanes of q that are of one head and stores one number a head at tmp.
func storeDots(q VecPhysical) {
	for i, d := range []int{1, 2, 4, 8} {
		lanes.Swap(d, q, y)
		VADDPS(y, q, swapMasks[i], q)
	}
	VCOMPRESSPS_Z(q, K2, q)
	VMOVUPS(q, K3, Mem{Base: tmp})
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

func gradBody(n int, bf16, tree bool, regs []VecPhysical) {
	name := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	vectors := n
	if bf16 {
		vectors = 2 * n
	}
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
	s := stack{}
	for v := range n {
		q := s.push()
		line := Mem{Base: at, Disp: 64 * v}
		if bf16 {
			lanes.SplitBF16By(upper, line, x, y, v == n-1, K1)
			VMULPS(Mem{Base: zrow, Disp: 128 * v}, x, q)
			VFMADD231PS(Mem{Base: zrow, Disp: 128*v + 64}, y, q)
			if tree {
				headWeight(2*v, w)
			} else {
				columnWeights(2*v, Mem{Base: weight}, regs, w)
			}
			VFMADD231PS(x, w, sums[2*v])
			if !tree {
				columnWeights(2*v+1, Mem{Base: weight}, regs, w)
			}
			VFMADD231PS(y, w, sums[2*v+1])
		} else {
			if v == n-1 {
				VMOVUPS_Z(line, K1, x)
			} else {
				VMOVUPS(line, x)
			}
			VMULPS(Mem{Base: zrow, Disp: 64 * v}, x, q)
			if tree {
				headWeight(v, w)
			} else {
				columnWeights(v, Mem{Base: weight}, regs, w)
			}
			VFMADD231PS(x, w, sums[v])
		}
		s.product(q, tree, v == n-1)
	}
	if tree {
		storeDots(s.finish(n))
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

// headWeight is the coefficient of vector v, all of whose columns are of one
// head: reading it costs less than permuting. Between rows dst's register is free.
func headWeight(v int, to VecPhysical) {
	MOVL(Mem{Base: patterns, Disp: 64 * v}, dst.As32())
	VBROADCASTSS(Mem{Base: weight, Index: dst, Scale: 4}, to)
}

// stack is the tree's vectors: level i holds the fold of 2^i of them.
type stack struct {
	level []int
}

var stackRegs = []VecPhysical{Z16, Z17, Z18, Z19, Z20, Z21, Z22}

func (s *stack) push() VecPhysical {
	s.level = append(s.level, 0)
	return stackRegs[len(s.level)-1]
}

func (s *stack) pop() { s.level = s.level[:len(s.level)-1] }

// fold folds the last two as long as they are of the same level.
func (s *stack) fold() {
	for k := len(s.level); k >= 2 && s.level[k-1] == s.level[k-2]; k = len(s.level) {
		foldPair(s.level[k-1], stackRegs[k-2], stackRegs[k-1], stackRegs[k-2])
		s.level = s.level[:k-1]
		s.level[k-2]++
	}
}

// finish folds what is left, with nothing where a partner is missing and with
// itself above the last level, and puts the sum of vector v into lane v.
func (s *stack) finish(n int) VecPhysical {
	depth := bits.Len(uint(n - 1)) // levels until one vector is left
	for s.level[0] < depth || len(s.level) > 1 {
		zero := s.push()
		VPXORD(zero, zero, zero)
		s.level[len(s.level)-1] = s.level[len(s.level)-2]
		s.fold()
	}
	q := stackRegs[0]
	for level := depth; level < 4; level++ {
		foldPair(level, q, q, q)
	}
	t := lanes.Table("transposed", 16, func(i int) uint32 { return uint32(i%4*4 + i/4) })
	VMOVUPS(t, y)
	VPERMPS(q, y, q)
	return q
}

// foldPair adds halves of the sums in a and b so that both fit into one vector:
// sums take half as many lanes at each level.
func foldPair(level int, a, b, to VecPhysical) {
	switch level {
	case 0:
		VSHUFF32X4(U8(0x44), b, a, y)
		VSHUFF32X4(U8(0xee), b, a, w)
	case 1:
		VSHUFF32X4(U8(0x88), b, a, y)
		VSHUFF32X4(U8(0xdd), b, a, w)
	case 2:
		VSHUFPS(U8(0x44), b, a, y)
		VSHUFPS(U8(0xee), b, a, w)
	case 3:
		VSHUFPS(U8(0x88), b, a, y)
		VSHUFPS(U8(0xdd), b, a, w)
	}
	VADDPS(w, y, to)
}
