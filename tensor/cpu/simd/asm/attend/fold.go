package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Dot products of rows, a head at a time. A head's products are added up in a vector, and sums
// over the lanes of sixteen such vectors are made at once, as a tree: two
// vectors are folded into one, halves of which are half-made sums, and so on until each lane is the sum
// of one vector. A row's heads are folded at once; the rest is left for when some rows have come together:
// a tree for each row would be twice the work, in a chain.

// folded is the loops for one head, or usualHeads, whose vectors (float32) or blocks (bfloat16)
// fit the registers. A head is
// a run of loads. Heads of up to 16 numbers are a single vector, of bfloat16 half a block.
type folded struct {
	kind
	single bool
	heads  int
	runs
}

// eachFolded calls body for all shapes that fit a panel.
func eachFolded(body func(t folded)) {
	for _, heads := range []int{1, usualHeads} {
		body(folded{floats, true, heads, runs{heads, 1, 1}})
		body(folded{singles, true, heads, runs{heads, 1, 1}})
		body(folded{floats, false, heads, runs{heads, 2, 16 / heads}})
		body(folded{pairs, false, heads, runs{heads, 1, 8 / heads}})
	}
}

func (t folded) shape() int {
	n := 4 * t.heads
	if t.kind != floats {
		n += 2
	}
	if t.single {
		return n
	}
	return n + 1
}

// first is the first of the vectors of load v of run r, among sixteen. The row's last is the last of all.
func (t folded) first(r, v int) int {
	return 16 - t.vectors()*(t.count*t.most-t.slot(r, v))
}

// sum is where load v of run r is summed, z where it is in the copy of a row.
func (t folded) sum(r, v int) []VecPhysical {
	return sums[t.first(r, v):][:t.vectors()]
}

func (t folded) z(r, v int) Mem {
	return inBuf(atZ + 64*t.first(r, v))
}

// dotProducts multiplies the row at at with the copy, and leaves half-made sums of its heads in
// the vector it gives. Run comes before
// each run; use may use load v of run r while it is in x, or x and y. Behind a head's end come columns of the next.
func (t folded) dotProducts(f fields, headBytes Op, run func(r int), use func(r, v int)) VecPhysical {
	s := stack{}
	t.eachVector(loop{
		from: at, headBytes: headBytes, each: each,
		run: func(r int) {
			q := s.push(0)
			if t.most > 1 {
				VPXORD(q, q, q)
			}
			run(r)
		},
		load: func(r, v int, line Mem) {
			t.load(line, t.last(r, v))
			t.multiply(t.z(r, v), s.top(), v == 0 && !t.last(r, v))
			use(r, v)
			if v == 0 {
				s.fold()
			}
		},
	}, f.mem("shift"))
	return s.top()
}

// multiply adds the products of a load with what is at with to q, or makes q them if there are
// no others. Of a head's last load only its own
// columns count; a row's last is already masked.
func (t folded) multiply(with Mem, q VecPhysical, last bool) {
	switch {
	case t.most == 1 && last:
		VMULPS_Z(with, x, headMask[0], q)
	case t.most == 1:
		VMULPS(with, x, q)
	case last:
		VFMADD231PS(with, x, headMask[0], q)
	default:
		VFMADD231PS(with, x, q)
	}
	switch {
	case t.kind == pairs && last:
		VFMADD231PS(with.Offset(64), y, headMask[1], q)
	case t.kind == pairs:
		VFMADD231PS(with.Offset(64), y, q)
	}
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
