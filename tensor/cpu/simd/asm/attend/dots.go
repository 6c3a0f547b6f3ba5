package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
	"starling/tensor/cpu/simd/asm/lanes"
)

// dots is the dot products of the heads of rows x with those of y, in order: a vector of sums per
// head, sixteen of which are folded at once. Rows come one after the other, so that memory limits, and one loop
// does for all numbers of heads and widths.
type dots struct {
	bf16 bool // rows
	row  bool // y is one float32 row, of bfloat16 in the order of lanes
}

var (
	dotFields = newFields(args, "x", "xStride", "xHead", "y", "yStride", "yHead", "rows", "heads", "whole", "tail",
		"parts", "partsEnd", "out")

	dotX, dotY        = RSI, R8  // a row's first head's last load
	headX, headY      = RAX, R9  // the same of the next head
	headBytes, yBytes = RBP, R14 // from head to head
	laterX, laterY    = R10, R15 // the same some rows later, for which is asked
	dotRow, dotHead   = RDX, RBX // rows and heads that are left
	before            = RCX      // from the last load to another, in bytes of x
	dotPart, dotEnd   = R11, R12 // where the next head's vector goes
	dotOut            = R13
	dotEvens, dotOdds = Z0, Z1
)

func (d dots) name() string {
	switch {
	case d.bf16 && d.row:
		return "dotHeadsRow512b16"
	case d.bf16:
		return "dotHeads512b16"
	}
	return "dotHeads512"
}

func (d dots) body() {
	f := dotFields
	TEXT(d.name(), NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(d.name() + " computes the dot products of a dotArgs.")
	Load(Param("a"), args)
	f.load("tail", dotRow)
	KMOVD(dotRow.As32(), K1)
	KXNORW(K2, K2, K2)
	for _, x := range []struct {
		field string
		to    GPPhysical
	}{{"x", dotX}, {"y", dotY}, {"xHead", headBytes}, {"yHead", yBytes},
		{"rows", dotRow}, {"parts", dotPart}, {"partsEnd", dotEnd}, {"out", dotOut}} {
		f.load(x.field, x.to)
	}
	if d.bf16 {
		lanes.LoadUpper(upper)
	}

	Label("row")
	MOVQ(dotX, headX)
	MOVQ(dotY, headY)
	f.load("xStride", laterX)
	LEAQ(Mem{Base: dotX, Index: laterX, Scale: 8}, laterX)
	f.load("yStride", laterY)
	LEAQ(Mem{Base: dotY, Index: laterY, Scale: 8}, laterY)
	f.load("heads", dotHead)
	Label("head")
	d.load(nil)
	f.load("whole", before)
	frame.Test(before, before, JZ, "summed")
	Label("load")
	d.load(before)
	ADDQ(U8(64), before)
	JNZ(LabelRef("load"))
	Label("summed")
	ADDQ(headBytes, headX)
	ADDQ(yBytes, headY)
	ADDQ(headBytes, laterX)
	if !d.row {
		ADDQ(yBytes, laterY)
	}
	if d.bf16 {
		VADDPS(dotOdds, dotEvens, dotEvens)
	}
	VMOVUPS(dotEvens, Mem{Base: dotPart})
	ADDQ(U8(64), dotPart)
	frame.Compare(dotPart, dotEnd, JE, "fold")
	Label("folded")
	frame.Next(dotHead, "head")
	ADDQ(f.mem("xStride"), dotX)
	ADDQ(f.mem("yStride"), dotY)
	frame.Next(dotRow, "row")

	// The lanes of those left.
	SUBQ(f.mem("parts"), dotPart)
	JZ(LabelRef("end"))
	SHRQ(U8(6), dotPart)
	MOVL(U32(0xffff), dotHead.As32())
	BZHIL(dotPart.As32(), dotHead.As32(), dotPart.As32())
	KMOVW(dotPart.As32(), K2)
	Label("fold")
	f.load("parts", dotPart)
	foldParts()
	Label("end")
	frame.End()
}

// foldParts makes sums of the vectors in parts.
func foldParts() {
	s := stack{}
	for k := range 16 {
		VMOVUPS(Mem{Base: dotPart, Disp: 64 * k}, s.push(0))
		s.fold()
	}
	VMOVUPS(lanes.Table("transposed", 16, func(i int) uint32 { return uint32(i%4*4 + i/4) }), Z0)
	VPERMPS(s.top(), Z0, Z0)
	VMOVUPS(Z0, K2, Mem{Base: dotOut})
	ADDQ(U8(64), dotOut)
	frame.Test(dotRow, dotRow, JNZ, "folded")
}

// load adds the products of the load at before to the sums, or makes these a head's last, which is masked.
func (d dots) load(before GPPhysical) {
	last, multiply := before == nil, func(with, x, sum Op) { VFMADD231PS(with, x, sum) }
	if last {
		multiply = func(with, x, sum Op) { VMULPS(with, x, sum) }
	}
	at := func(base GPPhysical, scale uint8) Mem {
		if last {
			return Mem{Base: base}
		}
		return Mem{Base: base, Index: before, Scale: scale}
	}
	line := at(headX, 1)
	PREFETCHT0(at(laterX, 1))
	if !d.row {
		PREFETCHT0(at(laterY, 1))
	}
	switch {
	case d.bf16 && d.row:
		lanes.SplitBF16By(upper, line, x, y, last, K1)
		multiply(at(headY, 2), x, dotEvens)
		multiply(at(headY, 2).Offset(64), y, dotOdds)
	case d.bf16:
		lanes.SplitBF16By(upper, line, x, y, last, K1)
		lanes.SplitBF16By(upper, at(headY, 1), Z2, Z3, last, K1)
		multiply(Z2, x, dotEvens)
		multiply(Z3, y, dotOdds)
	case last:
		VMOVUPS_Z(line, K1, x)
		VMULPS_Z(at(headY, 1), x, K1, dotEvens)
	default:
		VMOVUPS(line, x)
		multiply(at(headY, 1), x, dotEvens)
	}
}
