package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
	"starling/tensor/cpu/simd/asm/lanes"
)

// headGrad is HeadDot's backward pass for a panel of columns: with w the row's
// score gradients spread over the columns, zbuf (da) += w · src, and, unless dst is
// nil, dst (dz) += w · z, where z is the one row a.
func headGrad(bf16 bool) {
	f, name, p := rowFields, "headGrad512", newPanel(bf16)
	if bf16 {
		name += "b16"
	}
	heads, head, each := spread{Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25}, Z26, R10
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes the rows of an attendRowArgs.")
	beginRows()
	heads.begin()
	f.load("dst", dst)
	f.load("zbuf", tmp)
	f.load("z", zrow)
	f.load("each", each)
	f.load("heads", at)
	KMOVW(at.As32(), K2)
	MOVQ(src, at)
	for v := range 16 {
		VMOVUPS(Mem{Base: tmp, Disp: 64 * v}, sums[v])
	}
	frame.Test(dst, dst, JZ, "row")
	ADDQ(f.mem("whole"), dst)
	Label("row")
	VMOVUPS_Z(Mem{Base: weight}, K2, head)
	frame.Test(dst, dst, JZ, "added")
	if bf16 {
		frame.Test(U32(modeNative), f.mem("mode"), JZ, "rounded")
	}
	add := loop{from: dst, each: each, load: func(_, v int, to Mem) { p.addHead(v, to, true, heads, head) }}
	p.eachLine(add)
	Label("dz")
	ADDQ(f.mem("dstStride"), dst)
	Label("added")
	p.eachLine(loop{from: at, each: each, load: func(_, v int, line Mem) {
		to := p.sum(v)
		heads.lanes(p.vector(v), head, w)
		switch {
		case bf16:
			lanes.SplitBF16(line, x, y, v == 0, K1)
			VFMADD231PS(x, w, to[0])
			heads.lanes(p.vector(v)+1, head, w)
			VFMADD231PS(y, w, to[1])
		case v == 0:
			VFMADD231PS(line, w, K1, to[0])
		default:
			VFMADD231PS(line, w, to[0])
		}
	}})
	ADDQ(gap, weight)
	ADDQ(stride, at)
	INCQ(row)
	frame.Compare(row, f.mem("rows"), JB, "row")
	for v := range 16 {
		VMOVUPS(sums[v], Mem{Base: tmp, Disp: 64 * v})
	}
	frame.End()
	if bf16 {
		Label("rounded")
		add.load = func(_, v int, to Mem) { p.addHead(v, to, false, heads, head) }
		p.eachLine(add)
		JMP(LabelRef("dz"))
	}
}

// addHead adds what scores' gradients give to load v of a row of dz.
func (p panel) addHead(v int, to Mem, native bool, heads spread, head VecPhysical) {
	at, z, tail := p.vector(v), Mem{Base: zrow, Disp: 64 * p.vector(v)}, v == 0
	heads.lanes(at, head, w)
	if !p.bf16 {
		if tail {
			VMOVUPS_Z(to, K1, x)
		} else {
			VMOVUPS(to, x)
		}
		VFMADD231PS(z, w, x)
		if tail {
			VMOVUPS(x, K1, to)
		} else {
			VMOVUPS(x, to)
		}
		return
	}
	lanes.SplitBF16(to, x, y, tail, K1)
	VFMADD231PS(z, w, x)
	heads.lanes(at+1, head, w)
	VFMADD231PS(z.Offset(64), w, y)
	if native {
		lanes.JoinNative(x, y, w)
	} else {
		lanes.JoinBF16(x, y, w, Z27)
	}
	if tail {
		VMOVDQU16(x, K1, to)
	} else {
		VMOVDQU16(x, to)
	}
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
	frame.Compare(row, f.mem("rows"), JB, "row")
	frame.End()
}
