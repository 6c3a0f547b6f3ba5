package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// Dot products of rows, a head at a time. A head's products are added up in a vector, and sums over the lanes of sixteen such vectors are made at once, as a tree: two
// vectors are folded into one, halves of which are half-made sums, and so on until each lane is the sum
// of one vector. A row's heads are folded at once; the rest is left for when some rows have come together in parts:
// a tree for each row would be twice the work, in a chain.

// folded is the loops for heads, a power of two, of each vectors (float32) or blocks (bfloat16). Heads of up to 16 bfloat16 numbers, half
// a block, are one vector; each is 0 then. Where heads are a half or a quarter of a vector or block, that many share one.
type folded struct {
	bf16               bool
	heads, each, share int
}

// eachFolded calls body for all shapes that fit a panel.
func eachFolded(bf16 bool, body func(t folded)) {
	most := 16
	if bf16 {
		most = 8
	}
	for heads := 1; heads <= 16; heads *= 2 {
		for share := 2; share <= min(heads, 4); share *= 2 {
			body(folded{bf16, heads, 1, share})
		}
		if bf16 {
			body(folded{bf16, heads, 0, 1})
		}
		for each := 1; heads*each <= most; each++ {
			body(folded{bf16, heads, each, 1})
		}
	}
}

func (t folded) shape() int { return 128*t.heads + 32*(t.share-1) + t.each }

func (t folded) label(name string) string {
	return fmt.Sprintf("%s%dx%dx%d", name, t.heads, t.each, t.share)
}

// pairs says whether a load is two vectors, of even and odd columns.
func (t folded) pairs() bool { return t.bf16 && t.each > 0 }

// loads is how many a head takes, or those that share one, and runs how many of these there are.
func (t folded) loads() int { return max(t.each, 1) }
func (t folded) runs() int  { return t.heads / t.share }

// sums is how many vectors a row takes.
func (t folded) sums() int {
	if t.pairs() {
		return 2 * t.runs() * t.loads()
	}
	return t.runs() * t.loads()
}

// z is where load v of run r has its vector, or pair, in a row's copy.
func (t folded) z(r, v int) int {
	if t.pairs() {
		return 128 * (r*t.loads() + v)
	}
	return 64 * (r*t.loads() + v)
}

// eachLine calls body for the lines, or parts, of a row's heads at from, which it moves on from head to head.
func (t folded) eachLine(f fields, from GPPhysical, headBytes string, body func(h, v int, line Mem)) {
	for h := range t.runs() {
		if h > 0 {
			ADDQ(f.mem(headBytes), from)
		}
		for v := range t.loads() {
			body(h, v, Mem{Base: from, Disp: 64 * v})
		}
	}
}

// last says whether a load is the row's last: what lies behind it may be in a line that nobody asked for, so it
// ends where the row ends, and its first lanes, which were loaded before, are masked.
func (t folded) last(h, v int) bool { return h == t.runs()-1 && v == t.loads()-1 }

// eachVector is eachLine for loads and stores.
func (t folded) eachVector(f fields, from GPPhysical, headBytes, shift string, body func(h, v int, line Mem)) {
	t.eachLine(f, from, headBytes, func(h, v int, line Mem) {
		if t.last(h, v) {
			SUBQ(f.mem(shift), from)
		}
		body(h, v, line)
	})
}

// load loads a vector or pair to x, or x and y. Behind a head's end come columns of the next.
func (t folded) load(line Mem, h, v int) {
	last := t.last(h, v)
	switch {
	case t.pairs():
		lanes.SplitBF16By(upper, line, x, y, last, K1)
	case t.bf16 && last:
		VPMOVZXWD_Z(line, K1, x)
		VPSLLD(U8(16), x, x)
	case t.bf16:
		VPMOVZXWD(line, x)
		VPSLLD(U8(16), x, x)
	case last:
		VMOVUPS_Z(line, K1, x)
	default:
		VMOVUPS(line, x)
	}
}

// dotProducts multiplies the row at from with the one at z, and leaves half-made sums of its heads in the vector it gives.
// use may use load v of head h while it is in x, or x and y.
func (t folded) dotProducts(f fields, from GPPhysical, z Mem, use func(h, v int)) VecPhysical {
	s := stack{}
	t.eachVector(f, from, "headBytes", "shift", func(h, v int, line Mem) {
		if v == 0 {
			s.push(bits.Len(uint(t.share)) - 1)
		}
		q, with := s.top(), z.Offset(t.z(h, v))
		t.load(line, h, v)
		last := v == t.loads()-1
		cut := last && !t.last(h, v)
		switch {
		case v == 0 && cut:
			VMULPS_Z(with, x, headMask[0], q)
		case v == 0:
			VMULPS(with, x, q)
		case cut:
			VFMADD231PS(with, x, headMask[0], q)
		default:
			VFMADD231PS(with, x, q)
		}
		switch {
		case t.pairs() && cut:
			VFMADD231PS(with.Offset(64), y, headMask[1], q)
		case t.pairs():
			VFMADD231PS(with.Offset(64), y, q)
		}
		use(h, v)
		if last {
			s.fold()
		}
	})
	return s.top()
}

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
	for i, field := range []string{"evens", "odds"} {
		rowFields.load(field, tmp)
		KMOVW(tmp.As32(), headMask[i])
	}
	eachFolded(bf16, func(t folded) {
		CMPQ(rowFields.mem("shape"), U32(t.shape()))
		JE(LabelRef(t.label("row")))
	})
	RET()
}

// dotHeads is the dot products of the rows of src with those of z, or with the one row
// in zbuf when z is nil, one number a head.
func dotHeads(bf16 bool) {
	name := "dotHeads512"
	if bf16 {
		name += "b16"
	}
	TEXT(name, NOSPLIT, "func(a *byte)")
	Pragma("noescape")
	Doc(name + " computes the dot products of an attendRowArgs.")
	beginFolded(bf16)
	eachFolded(bf16, folded.dotBody)
	for heads := 1; heads <= 16; heads *= 2 {
		folded{bf16, heads, 1, 1}.finish()
	}
}

func (t folded) dotBody() {
	f := rowFields
	Label(t.label("row"))
	CMPQ(f.mem("z"), U8(0))
	JE(LabelRef(t.label("same")))
	f.loadRow("z", row, at)
	t.copyZ(f, at, Mem{Base: zrow})
	Label(t.label("same"))
	MOVQ(stride, at)
	IMULQ(row, at)
	ADDQ(src, at)
	LEAQ(Mem{Base: at, Index: stride, Scale: 8}, tmp)
	t.eachLine(f, tmp, "headBytes", func(h, v int, line Mem) { PREFETCHT0(line) })
	q := t.dotProducts(f, at, Mem{Base: zrow}, func(h, v int) {})
	VMOVUPS(q, Mem{Base: part})
	ADDQ(U8(64), part)
	INCQ(row)
	CMPQ(row, f.mem("rows"))
	JAE(LabelRef(t.finishLabel()))
	CMPQ(part, f.mem("partsEnd"))
	JB(LabelRef(t.label("row")))
	JMP(LabelRef(t.finishLabel()))
}

// copyZ puts the row at from into memory as the products want it.
func (t folded) copyZ(f fields, from GPPhysical, to Mem) {
	t.eachVector(f, from, "headBytes", "shift", func(h, v int, line Mem) {
		t.load(line, h, v)
		VMOVUPS(x, to.Offset(t.z(h, v)))
		if t.pairs() {
			VMOVUPS(y, to.Offset(t.z(h, v)+64))
		}
	})
}

func (t folded) finishLabel() string { return fmt.Sprintf("finish%d", t.heads) }

// finish finishes the sums in parts, for all shapes of so many heads. Then it goes back to the shape's body, if there are
// rows left, or returns.
func (t folded) finish() {
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
			JE(LabelRef(u.label("row")))
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
