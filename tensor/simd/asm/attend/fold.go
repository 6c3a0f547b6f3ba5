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
// of one vector. A row's heads are folded at once; the rest is left for when some rows have come together:
// a tree for each row would be twice the work, in a chain.

// folded is the loops for heads, a power of two, whose vectors (float32) or blocks (bfloat16) fit the registers. A head, or heads
// of a half or a quarter of a vector or block that share one, is a run of loads. Heads of up to 16 numbers are a single vector, of
// bfloat16 half a block.
type folded struct {
	bf16, single bool
	heads, share int
	runs
}

// eachFolded calls body for all shapes that fit a panel.
func eachFolded(bf16 bool, body func(t folded)) {
	for heads := 1; heads <= 16; heads *= 2 {
		for share := 2; share <= min(heads, 4); share *= 2 {
			body(folded{bf16, false, heads, share, runs{heads / share, 1, 1}})
		}
		body(folded{bf16, true, heads, 1, runs{heads, 1, 1}})
		least, most := 2, 16/heads
		if bf16 {
			least, most = 1, 8/heads
		}
		if least <= most {
			body(folded{bf16, false, heads, 1, runs{heads, least, most}})
		}
	}
}

func (t folded) shape() int {
	n := 128*t.heads + 32*(t.share-1)
	if t.single {
		return n
	}
	return n + 1
}

func (t folded) label(name string) string { return fmt.Sprintf("%s%d", name, t.shape()) }

// pairs says whether a load is two vectors, of even and odd columns.
func (t folded) pairs() bool { return t.bf16 && !t.single }

// sums is how many vectors a row takes.
func (t folded) sums() int {
	if t.pairs() {
		return 2 * t.count * t.most
	}
	return t.count * t.most
}

// z is where load v of run r has its vector, or pair, in a row's copy.
func (t folded) z(r, v int) int {
	if t.pairs() {
		return 128 * t.slot(r, v)
	}
	return 64 * t.slot(r, v)
}

// load loads a vector or pair to x, or x and y. Behind a head's end come columns of the next.
func (t folded) load(line Mem, last bool) {
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

// dotProducts multiplies the row at from with another, and leaves half-made sums of its heads in the vector it gives. Run comes before
// each run, and with gives where the other row has load v of run r; use may use the load while it is in x, or x and y.
func (t folded) dotProducts(f fields, from GPPhysical, each Op, run func(r int), with func(r, v int) Mem, use func(r, v int)) VecPhysical {
	s := stack{}
	t.eachVector(loop{
		from: from, headBytes: f.mem("headBytes"), each: each,
		run: func(r int) {
			q := s.push(bits.Len(uint(t.share)) - 1)
			if t.most > 1 {
				VPXORD(q, q, q)
			}
			run(r)
		},
		load: func(r, v int, line Mem) {
			t.load(line, t.last(r, v))
			t.multiply(with(r, v), s.top(), t.columns(r, v))
			use(r, v)
			if v == 0 {
				s.fold()
			}
		},
	}, f.mem("shift"))
	return s.top()
}

// columns is the masks of a load's columns that count, of bfloat16 the even and the odd: behind those of a run's last are the next head's.
// What a row's last, already masked, is multiplied with must not be read where the row may be shorter.
func (t folded) columns(r, v int) []OpmaskPhysical {
	switch {
	case v > 0 || t.bf16 && t.last(r, v):
		return nil
	case t.last(r, v):
		return []OpmaskPhysical{K1}
	}
	return headMask
}

// multiply adds the products of a load with what is at with to q, or makes q them if there are no others.
func (t folded) multiply(with Mem, q VecPhysical, masks []OpmaskPhysical) {
	switch {
	case t.most == 1 && masks != nil:
		VMULPS_Z(with, x, masks[0], q)
	case t.most == 1:
		VMULPS(with, x, q)
	case masks != nil:
		VFMADD231PS(with, x, masks[0], q)
	default:
		VFMADD231PS(with, x, q)
	}
	switch {
	case t.pairs() && masks != nil:
		VFMADD231PS(with.Offset(64), y, masks[1], q)
	case t.pairs():
		VFMADD231PS(with.Offset(64), y, q)
	}
}

// copyZ puts the row at from, its first run's last load, into memory as the products want it. It asks for the row at later.
func (t folded) copyZ(f fields, from GPPhysical, to Mem, later GPPhysical) {
	t.eachVector(loop{
		from: from, headBytes: f.mem("headBytes"), each: f.mem("each"),
		run: func(r int) {
			if r > 0 {
				ADDQ(f.mem("headBytes"), later)
			}
		},
		load: func(r, v int, line Mem) {
			PREFETCHT0(Mem{Base: later, Disp: -64 * v})
			t.load(line, t.last(r, v))
			VMOVUPS(x, to.Offset(t.z(r, v)))
			if t.pairs() {
				VMOVUPS(y, to.Offset(t.z(r, v)+64))
			}
		},
	}, f.mem("shift"))
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
