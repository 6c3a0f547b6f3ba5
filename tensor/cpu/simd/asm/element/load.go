package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ahead is how many bytes ahead of a read its cache line is asked for: what a core
// reads while memory answers. Loops that compute much look too short a way ahead by
// themselves.
const ahead = 3072

func (k *kernel) prefetch(p reg.GPVirtual, size, n int) {
	for line := 0; line < n*k.lanes*size; line += 64 {
		PREFETCHT0(Mem{Base: p, Index: k.j, Scale: uint8(size), Disp: ahead + line})
	}
}

// prefetchAt asks for column j on of another row.
func (k *kernel) prefetchAt(p reg.GPVirtual, size, n int) {
	for line := 0; line < n*k.lanes*size; line += 64 {
		PREFETCHT0(Mem{Base: p, Index: k.j, Scale: uint8(size), Disp: line})
	}
}

// read loads n vectors from column j of a row of a block.
func (k *kernel) read(block string, p reg.GPVirtual, n int, rest bool) []vec {
	return k.readWith(block, p, n, rest, func(size int) { k.prefetch(p, size, n) })
}

// readAsking is read of a row of a list, whose follower is next: it asks for the
// same columns of that one, or for nothing if there is none.
func (k *kernel) readAsking(block string, p, next reg.GPVirtual, n int, rest bool) []vec {
	return k.readWith(block, p, n, rest, func(size int) {
		if next != nil {
			k.prefetchAt(next, size, n)
		}
	})
}

func (k *kernel) readWith(block string, p reg.GPVirtual, n int, rest bool, ask func(size int)) []vec {
	v := k.regs(n)
	k.either(block, func() {
		ask(4)
		for i := range v {
			k.readFloats(k.cell(p, 4, i), v[i], rest)
		}
	}, func() {
		ask(2)
		k.widen(p, v, rest)
	})
	return v
}

// widen loads vectors of bfloat16 from column j of a row. Of two at a time the words go
// to the upper halves of their lanes at once.
func (k *kernel) widen(p reg.GPVirtual, v []vec, rest bool) {
	if !k.zmm || len(v)%2 != 0 {
		for i := range v {
			k.readTwoWay(p, i, v[i], rest)
			VPSLLD(Imm(16), v[i], v[i])
		}
		return
	}
	for i := range v {
		VPERMW_Z(k.cell(p, 2, i&^1), k.words[i%2], k.upper, v[i])
	}
}

// prepareWiden loads what widen needs.
func (k *kernel) prepareWiden() {
	if !k.zmm {
		return
	}
	k.words, k.upper = k.regs(2), K()
	VMOVDQU32(toUpper, k.words[0])
	VMOVDQU32(toUpper.Offset(64), k.words[1])
	ones := GP32()
	MOVL(U32(0xaaaaaaaa), ones)
	KMOVD(ones, k.upper)
}

// toUpper chooses, for the upper halves of the lanes of two vectors, the words of one.
var toUpper Mem

// readFloats loads a vector of float32, zeros where there are no columns.
func (k *kernel) readFloats(m Mem, v vec, rest bool) {
	switch {
	case !rest:
		VMOVUPS(m, v)
	case k.zmm:
		VMOVUPS_Z(m, k.tailK, v)
	default:
		VMASKMOVPS(m, k.tailY, v)
	}
}

func (k *kernel) readTwoWay(p reg.GPVirtual, i int, v vec, rest bool) {
	m := k.cell(p, 2, i)
	switch {
	case !rest:
		VPMOVZXWD(m, v)
	case k.zmm:
		VPMOVZXWD_Z(m, k.tailK, v)
	default:
		VPXOR(v.AsX(), v.AsX(), v.AsX())
		VMOVDQU(v.AsX(), k.room)
		k.copyFP16(p, true)
		VPMOVZXWD(k.room, v)
	}
}

// copyFP16 copies the last few bfloat16 of a row to or from room, one by one.
func (k *kernel) copyFP16(p reg.GPVirtual, in bool) {
	n, w := GP64(), GP64()
	MOVQ(k.cols, n)
	SUBQ(k.j, n)
	row := GP64()
	LEAQ(k.cell(p, 2, 0), row)
	from := Mem{Base: row, Index: n, Scale: 2, Disp: -2}
	at := k.room
	at.Index, at.Scale, at.Disp = n, 2, at.Disp-2
	if !in {
		from, at = at, from
	}
	again := label("copy")
	Label(again)
	MOVW(from, w.As16())
	MOVW(w.As16(), at)
	DECQ(n)
	JNZ(LabelRef(again))
}
