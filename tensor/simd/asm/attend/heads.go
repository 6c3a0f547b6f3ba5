package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// headGrad is HeadDot's backward pass for a panel of columns: with w the row's
// score gradients spread over the columns, zbuf (da) += w · src, and, unless dst is
// nil, dst (dz) += w · z, where z is the one row a.
func headGrad(bf16 bool) {
	name, most := "headGrad512", 16
	if bf16 {
		name, most = "headGrad512b16", 8
	}
	regs := []VecPhysical{Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25}
	f := rowFields
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes the rows of an attendRowArgs.")
	beginRows(regs)
	f.load("zbuf", tmp)
	f.load("z", zrow)
	f.load("heads", at)
	KMOVW(at.As32(), K2)
	MOVQ(src, at)
	choose(most)
	for n := 1; n <= most; n++ {
		headGradBody(n, bf16, regs)
	}
}

func headGradBody(n int, bf16 bool, regs []VecPhysical) {
	f := rowFields
	label := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	vectors := n
	if bf16 {
		vectors = 2 * n
	}
	head := Z26
	Label(label("row"))
	f.load("zbuf", tmp)
	for v := range vectors {
		VMOVUPS(Mem{Base: tmp, Disp: 64 * v}, sums[v])
	}
	Label(label("next"))
	VMOVUPS_Z(Mem{Base: weight}, K2, head)
	TESTQ(dst, dst)
	JZ(LabelRef(label("dz")))
	if bf16 {
		TESTQ(U32(modeNative), f.mem("mode"))
		JNZ(LabelRef(label("native")))
	}
	addHead(n, bf16, false, regs, head)
	Label(label("added"))
	ADDQ(f.mem("dstStride"), dst)
	Label(label("dz"))
	for v := range n {
		line := Mem{Base: at, Disp: 64 * v}
		if bf16 {
			lanes.SplitBF16(line, x, y, v == n-1, K1)
			spread(2*v, head, regs, w)
			VFMADD231PS(x, w, sums[2*v])
			spread(2*v+1, head, regs, w)
			VFMADD231PS(y, w, sums[2*v+1])
			continue
		}
		spread(v, head, regs, w)
		if v == n-1 {
			VFMADD231PS(line, w, K1, sums[v])
		} else {
			VFMADD231PS(line, w, sums[v])
		}
	}
	ADDQ(gap, weight)
	ADDQ(stride, at)
	INCQ(row)
	CMPQ(row, f.mem("rows"))
	JB(LabelRef(label("next")))
	for v := range vectors {
		VMOVUPS(sums[v], Mem{Base: tmp, Disp: 64 * v})
	}
	VZEROUPPER()
	RET()
	if bf16 {
		Label(label("native"))
		addHead(n, true, true, regs, head)
		JMP(LabelRef(label("added")))
	}
}

// addHead adds what scores' gradients give to a row of dz.
func addHead(n int, bf16, native bool, regs []VecPhysical, head VecPhysical) {
	for v := range n {
		to := Mem{Base: dst, Disp: 64 * v}
		if bf16 {
			lanes.SplitBF16(to, x, y, v == n-1, K1)
			spread(2*v, head, regs, w)
			VFMADD231PS(Mem{Base: zrow, Disp: 128 * v}, w, x)
			spread(2*v+1, head, regs, w)
			VFMADD231PS(Mem{Base: zrow, Disp: 128*v + 64}, w, y)
			if native {
				lanes.JoinNative(x, y, w)
			} else {
				lanes.JoinBF16(x, y, w, Z27)
			}
			if v == n-1 {
				VMOVDQU16(x, K1, to)
			} else {
				VMOVUPS(x, to)
			}
			continue
		}
		spread(v, head, regs, w)
		if v == n-1 {
			VMOVUPS_Z(to, K1, x)
			VFMADD231PS(Mem{Base: zrow, Disp: 64 * v}, w, x)
			VMOVUPS(x, K1, to)
		} else {
			VMOVUPS(to, x)
			VFMADD231PS(Mem{Base: zrow, Disp: 64 * v}, w, x)
			VMOVUPS(x, to)
		}
	}
}

// spread puts into to the number of head for each column of vector v.
func spread(v int, head VecPhysical, regs []VecPhysical, to VecPhysical) {
	if v < len(regs) {
		VPERMPS(head, regs[v], to)
		return
	}
	VMOVDQU32(Mem{Base: patterns, Disp: 64 * v}, to)
	VPERMPS(head, to, to)
}

// sumEntries adds the rows of entries, as many floats as heads (a power of two), over each
// row of a sparse matrix: whole vectors first, then the lanes of a head.
func sumEntries() {
	f := newFields(args, "ptr", "rows", "edge", "dst", "dstStride", "heads", "swaps")
	heads, left := R11, R12
	TEXT("sumEntries512", NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc("sumEntries512 sums the rows of a sumEntriesArgs.")
	Load(Param("a"), args)
	f.load("heads", heads)
	f.load("dst", dst)
	f.load("edge", at)
	f.load("swaps", tmp)
	for _, k := range swapMasks {
		KMOVW(tmp.As32(), k)
		SHRQ(U8(16), tmp)
	}
	MOVL(U32(0xffff), R13.As32())
	BZHIL(heads.As32(), R13.As32(), tmp.As32())
	KMOVW(tmp.As32(), K2)
	f.load("ptr", index)
	XORQ(row, row)
	Label("row")
	MOVQ(Mem{Base: index, Index: row, Scale: 8, Disp: 8}, left)
	SUBQ(Mem{Base: index, Index: row, Scale: 8}, left)
	IMULQ(heads, left)
	VPXORD(Z0, Z0, Z0)
	Label("whole")
	SUBQ(U8(16), left)
	JL(LabelRef("part"))
	VADDPS(Mem{Base: at}, Z0, Z0)
	ADDQ(U8(64), at)
	JMP(LabelRef("whole"))
	Label("part")
	ADDQ(U8(16), left)
	BZHIL(left.As32(), R13.As32(), tmp.As32())
	KMOVW(tmp.As32(), K1)
	VADDPS(Mem{Base: at}, Z0, K1, Z0)
	LEAQ(Mem{Base: at, Index: left, Scale: 4}, at)
	overEntries(Z0, Z1, func(a, b VecPhysical, k OpmaskPhysical) { VADDPS(a, b, k, b) })
	VMOVUPS(Z0, K2, Mem{Base: dst})
	ADDQ(f.mem("dstStride"), dst)
	INCQ(row)
	CMPQ(row, f.mem("rows"))
	JB(LabelRef("row"))
	VZEROUPPER()
	RET()
}
