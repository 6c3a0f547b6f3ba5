package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// Dot products of rows whose heads are whole vectors (or that have one head). Each head's products are added
// up in a vector, and sums over the lanes of sixteen such vectors are made at once, as a tree: two
// vectors are folded into one, halves of which are half-made sums, and so on until each lane is the sum
// of one vector. A row's heads are folded at once; the rest is left for when some rows have come together in parts:
// a tree for each row would be twice the work, in a chain.

// folded is the loops for heads, a power of two, of each vectors (float32) or blocks (bfloat16).
type folded struct {
	bf16        bool
	heads, each int
}

// eachFolded calls body for all shapes that fit a panel.
func eachFolded(bf16 bool, body func(t folded)) {
	most := 16
	if bf16 {
		most = 8
	}
	for heads := 1; heads <= most; heads *= 2 {
		for each := 1; heads*each <= most; each++ {
			body(folded{bf16, heads, each})
		}
	}
}

func (t folded) vectors() int             { return t.heads * t.each }
func (t folded) shape() int               { return 32*t.heads + t.each }
func (t folded) label(name string) string { return fmt.Sprintf("%s%dx%d", name, t.heads, t.each) }

var (
	part   = R13 // where the next row's half-made sums go
	places = Z23 // of dot products in their list
)

// beginFolded loads what all loops need and branches to that of the shape.
func beginFolded(bf16 bool) {
	beginRows(nil)
	rowFields.load("zbuf", zrow)
	rowFields.load("parts", part)
	rowFields.load("places", tmp)
	VMOVDQU32(Mem{Base: tmp}, places)
	eachFolded(bf16, func(t folded) {
		CMPQ(rowFields.mem("shape"), U32(t.shape()))
		JE(LabelRef(t.label("row")))
	})
	RET()
}

// dotHeads is dotLanes for heads of whole vectors.
func dotHeads(bf16 bool) {
	foldedFunction("dotHeads512", "the dot products", "row", bf16, folded.dotBody)
}

// foldedFunction is a function with a body for each shape of heads. After finishing sums a body goes on where again names.
func foldedFunction(name, what, again string, bf16 bool, body func(folded)) {
	if bf16 {
		name += "b16"
	}
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes " + what + " of an attendRowArgs.")
	beginFolded(bf16)
	eachFolded(bf16, body)
	eachFolded(bf16, func(t folded) {
		if t.each == 1 {
			t.finish(again)
		}
	})
}

func (t folded) dotBody() {
	Label(t.label("row"))
	CMPQ(rowFields.mem("z"), U8(0))
	JE(LabelRef(t.label("same")))
	copyZ(t.vectors(), t.bf16)
	Label(t.label("same"))
	MOVQ(stride, at)
	IMULQ(row, at)
	ADDQ(src, at)
	for v := range t.vectors() {
		PREFETCHT0(Mem{Base: at, Index: stride, Scale: 8, Disp: 64 * v})
	}
	t.products(func(int) {})
	INCQ(row)
	CMPQ(row, rowFields.mem("rows"))
	JAE(LabelRef(t.finishLabel()))
	t.goOn("row")
}

// gradHeads is gradLanes for heads of whole vectors.
func gradHeads(bf16 bool) {
	foldedFunction("attendGradHeads512", "the wide rows", "next", bf16, folded.gradBody)
}

func (t folded) gradBody() {
	n, vectors := t.vectors(), t.vectors()
	if t.bf16 {
		vectors = 2 * n
	}
	Label(t.label("row"))
	startRow()
	copyZ(n, t.bf16)
	for v := range vectors {
		VPXORD(sums[v], sums[v], sums[v])
	}
	Label(t.label("next"))
	CMPQ(index, end)
	JAE(LabelRef(t.label("done")))
	nextEntry(n, t.label("ask"))
	t.products(func(v int) {
		if t.bf16 {
			if v%t.each == 0 {
				VBROADCASTSS(Mem{Base: weight, Disp: 4 * (v / t.each)}, w)
			}
			VFMADD231PS(x, w, sums[2*v])
			VFMADD231PS(y, w, sums[2*v+1])
		} else {
			VFMADD231PS_BCST(Mem{Base: weight, Disp: 4 * (v / t.each)}, x, sums[v])
		}
	})
	ADDQ(gap, weight)
	t.goOn("next")

	Label(t.label("done"))
	rowFields.loadRow("dst", row, dst)
	storeRow(n, t.bf16, t.label)
	INCQ(row)
	CMPQ(row, rowFields.mem("rows"))
	JB(LabelRef(t.label("row")))
	JMP(LabelRef(t.finishLabel()))
}

// products multiplies the row at at with the one at zrow and puts the half-made sums of its heads to part. use may use
// vector v of the row while it is in x, or x and y.
func (t folded) products(use func(v int)) {
	s := stack{}
	n := t.vectors()
	for v := range n {
		if v%t.each == 0 {
			s.push(0)
		}
		q := s.top()
		line, z := Mem{Base: at, Disp: 64 * v}, Mem{Base: zrow, Disp: 64 * v}
		switch {
		case t.bf16:
			z = Mem{Base: zrow, Disp: 128 * v}
			lanes.SplitBF16By(upper, line, x, y, v == n-1, K1)
		case v == n-1:
			VMOVUPS_Z(line, K1, x)
		default:
			VMOVUPS(line, x)
		}
		if v%t.each == 0 {
			VMULPS(z, x, q)
		} else {
			VFMADD231PS(z, x, q)
		}
		if t.bf16 {
			VFMADD231PS(z.Offset(64), y, q)
		}
		use(v)
		if v%t.each == t.each-1 {
			s.fold()
		}
	}
	VMOVUPS(s.top(), Mem{Base: part})
	ADDQ(U8(64), part)
}

// goOn goes on to again until parts are full; then their sums are to be finished.
func (t folded) goOn(again string) {
	CMPQ(part, rowFields.mem("partsEnd"))
	JB(LabelRef(t.label(again)))
	JMP(LabelRef(t.finishLabel()))
}

func (t folded) finishLabel() string { return fmt.Sprintf("finish%d", t.heads) }

// finish finishes the sums in parts, for all shapes of so many heads. Then it goes back to the shape's body, if there are
// rows left, or returns.
func (t folded) finish(again string) {
	f := rowFields
	Label(t.finishLabel())
	from, step, mask := at, dst, tmp
	f.load("parts", from)
	MOVQ(gap, step)
	group := 16 / t.heads
	SHLQ(U8(bits.Len(uint(group))-1), step)
	Label(t.label("fold"))
	MOVQ(part, mask)
	SUBQ(from, mask)
	JBE(LabelRef(t.label("finished")))
	// The lanes of rows that have come: heads for every 64 bytes.
	SHRQ(U8(7-bits.Len(uint(t.heads))), mask)
	MOVL(U32(16), zrow.As32())
	CMPQ(mask, zrow)
	CMOVQHI(zrow, mask)
	MOVL(U32(0xffff), zrow.As32())
	BZHIL(mask.As32(), zrow.As32(), mask.As32())
	KMOVW(mask.As32(), K2)
	s := stack{}
	for k := range group {
		q := s.push(bits.Len(uint(t.heads)) - 1)
		VMOVUPS(Mem{Base: from, Disp: 64 * k}, q)
		s.fold()
	}
	q := s.top()
	VMOVUPS(lanes.Table("transposed", 16, func(i int) uint32 { return uint32(i%4*4 + i/4) }), y)
	VPERMPS(q, y, q)
	f.load("dots", zrow)
	CMPQ(gap, U8(4*t.heads))
	JNE(LabelRef(t.label("apart")))
	VMOVUPS(q, K2, Mem{Base: zrow})
	JMP(LabelRef(t.label("put")))
	Label(t.label("apart"))
	VSCATTERDPS(q, K2, Mem{Base: zrow, Index: places, Scale: 4})
	Label(t.label("put"))
	ADDQ(step, zrow)
	MOVQ(zrow, f.mem("dots"))
	ADDQ(U32(64*group), from)
	JMP(LabelRef(t.label("fold")))
	Label(t.label("finished"))
	f.load("parts", part)
	f.load("zbuf", zrow)
	CMPQ(row, f.mem("rows"))
	JAE(LabelRef(t.label("end")))
	eachFolded(t.bf16, func(u folded) {
		if u.heads == t.heads {
			CMPQ(f.mem("shape"), U32(u.shape()))
			JE(LabelRef(u.label(again)))
		}
	})
	Label(t.label("end"))
	VZEROUPPER()
	RET()
}

// stack is the tree's vectors: level i holds the fold of 2^i of them.
type stack struct {
	level []int
}

var stackRegs = []VecPhysical{Z16, Z17, Z18, Z19, Z20, Z21, Z22}

func (s *stack) push(level int) VecPhysical {
	s.level = append(s.level, level)
	return s.top()
}

func (s *stack) top() VecPhysical { return stackRegs[len(s.level)-1] }

// fold folds the last two as long as they are of the same level.
func (s *stack) fold() {
	for k := len(s.level); k >= 2 && s.level[k-1] == s.level[k-2]; k = len(s.level) {
		foldPair(s.level[k-1], stackRegs[k-2], stackRegs[k-1], stackRegs[k-2])
		s.level = s.level[:k-1]
		s.level[k-2]++
	}
}

// foldPair adds halves of the sums in a and b so that both fit into one vector:
// sums take half as many lanes at each level. After four levels the sum of vector v is in lane v%4*4 + v/4.
func foldPair(level int, a, b, to VecPhysical) {
	y, w := Z25, Z26 // x and y hold a row
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
