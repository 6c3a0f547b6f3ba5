package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
	"starling/tensor/cpu/simd/asm/lanes"
)

// A row of z is copied before its entries come and the row of sums is written after them,
// sixteen vectors in order, by a table of where
// each is in a row of src and in one of dst: below zero for those that a shape leaves out. So
// all shapes have the same code, for a load
// and a comparison a vector. The last vector is always a row's last. Few rows have no more than the last four.
const (
	placesFrom = 0
	placesTo   = 8 * 16
	few        = 12
)

// kind is what a load is: a vector of float32, a block of bfloat16 in two vectors, of even and
// odd columns, or half a block in one.
type kind int

const (
	floats kind = iota
	pairs
	singles
)

// vectors is how many a load is, and bytes what it has of a row.
func (k kind) vectors() int {
	if k == pairs {
		return 2
	}
	return 1
}

func (k kind) bytes() int {
	if k == singles {
		return 32
	}
	return 64
}

func (k kind) label(name string) string { return fmt.Sprintf("%s%d", name, k) }

// eachKind goes to what body writes for the row's kind.
func eachKind(f fields, name string, body func(kind)) {
	for _, k := range []kind{pairs, singles} {
		frame.Compare(f.mem("kind"), U8(k), JE, k.label(name))
	}
	for _, k := range []kind{floats, pairs, singles} {
		Label(k.label(name))
		body(k)
	}
}

// each goes through the vectors of a row that there are, with place their offsets from table: v is the first of a load.
func (k kind) each(f fields, name string, table, place GPPhysical, body func(v int, last bool)) {
	last := 16 - k.vectors()
	frame.Compare(f.mem("few"), U8(0), JNE, k.label(name+"few"))
	for v := 0; v <= last; v += k.vectors() {
		if v == few {
			Label(k.label(name + "few"))
		}
		next := lanes.NewLabel("next")
		MOVQ(Mem{Base: table, Disp: 8 * v}, place)
		if v < last {
			frame.Test(place, place, JS, next)
		}
		body(v, v == last)
		if v < last {
			Label(next)
		}
	}
}

// load loads a vector or pair to x, or x and y, of a row's last the columns in K1.
func (k kind) load(line Mem, last bool) {
	switch {
	case k == pairs:
		lanes.SplitBF16By(upper, line, x, y, last, K1)
	case k == singles && last:
		VPMOVZXWD_Z(line, K1, x)
		VPSLLD(U8(16), x, x)
	case k == singles:
		VPMOVZXWD(line, x)
		VPSLLD(U8(16), x, x)
	case last:
		VMOVUPS_Z(line, K1, x)
	default:
		VMOVUPS(line, x)
	}
}

// copyRow puts a row of z into memory as the products want it, and goes to done. It asks for
// the next one: entries from anywhere keep the
// processor from seeing that sources follow each other.
func copyRow(f fields, room Mem, done string) {
	table, from, later, off := part, at, tmp, tmp2
	f.loadRow("z", row, from)
	MOVQ(from, later)
	ADDQ(f.mem("zStride"), later)
	f.load("places", table)
	eachKind(f, "copy", func(k kind) {
		k.each(f, "copy", table, off, func(v int, last bool) {
			// what is before came with the row before
			PREFETCHT0(Mem{Base: later, Index: off, Scale: 1, Disp: k.bytes() - 1})
			k.load(Mem{Base: from, Index: off, Scale: 1}, last)
			VMOVUPS(x, room.Offset(64*v))
			if k == pairs {
				VMOVUPS(y, room.Offset(64*v+64))
			}
		})
		JMP(LabelRef(done))
	})
}

// storeRow writes a row's sums to dst, and goes to done. Behind a head's end come columns of
// the next, which is stored later.
func storeRow(f fields, room Mem, done string) {
	table, to := end, at
	f.loadRow("dst", row, dst)
	f.load("places", table)
	ADDQ(U32(placesTo), table)
	way := func(k kind, name string, store func(v int, to Mem, last bool)) {
		Label(k.label(name))
		k.each(f, name, table, to, func(v int, last bool) { store(v, Mem{Base: dst, Index: to, Scale: 1}, last) })
		JMP(LabelRef(done))
	}
	ifMode := func(k kind, mode int, label string) {
		frame.Test(U32(mode), f.mem("mode"), JNZ, k.label(label))
	}
	eachKind(f, "store", func(k kind) {
		if k != singles { // half a block is no line
			ifMode(k, modeStream, "stream")
		}
		if k == floats {
			way(k, "whole", func(v int, to Mem, last bool) { storeVector(sums[v], to, last) })
		} else {
			ifMode(k, modeNative, "native")
			storeStaged(f, k, room, done)
			way(k, "native", func(v int, to Mem, last bool) { storeWords(k.rounded(v), to, last) })
		}
		if k != singles {
			way(k, "stream", func(v int, to Mem, _ bool) { VMOVNTPS(k.rounded(v), to) })
		}
	})
}

// rounded is the load whose first sum is v as dst has it.
func (k kind) rounded(v int) Op {
	switch k {
	case pairs:
		lanes.JoinNative(sums[v], sums[v+1], x)
		return sums[v]
	case singles:
		lanes.RoundOne(sums[v], x.AsY())
		return x.AsY()
	}
	return sums[v]
}

// storeStaged writes a row of bfloat16 by way of room, vector by vector, for processors that do
// not round and for a dst of float32, and goes
// to done. Neither is so frequent that it had more code than a loop.
func storeStaged(f fields, k kind, room Mem, done string) {
	v, to, table, mask, first := tmp, at, end, K2, k.vectors()
	for i, sum := range sums {
		VMOVUPS(sum, room.Offset(64*i))
	}
	name := k.label("staged")
	XORL(v.As32(), v.As32())
	KXNORD(mask, mask, mask)
	Label(name)
	MOVQ(Mem{Base: table, Index: v, Scale: 8}, to)
	frame.Test(to, to, JS, name+"next")
	ADDQ(dst, to)
	frame.Compare(v, U8(16-first), JNE, name+"put")
	KMOVD(K1, mask)
	Label(name + "put")
	SHLQ(U8(6), v)
	for i := range first {
		VMOVUPS(Mem{Base: room.Base, Index: v, Scale: 1, Disp: room.Disp + 64*i}, sums[i])
	}
	SHRQ(U8(6), v)
	frame.Test(U32(modeBF16), f.mem("mode"), JZ, name+"wide")
	if k == pairs {
		lanes.JoinBF16(sums[0], sums[1], x, y)
		VMOVDQU16(sums[0], mask, Mem{Base: to})
	} else {
		lanes.ToBF16(sums[0], x)
		VPMOVDW(x, mask, Mem{Base: to})
	}
	JMP(LabelRef(name + "next"))
	Label(name + "wide")
	if k == pairs {
		lanes.Interleave(sums[0], sums[1], x, y)
		KSHIFTRD(U8(16), mask, K3)
		VMOVUPS(sums[1], K3, Mem{Base: to, Disp: 64})
	}
	VMOVUPS(sums[0], mask, Mem{Base: to})
	Label(name + "next")
	ADDQ(U8(first), v)
	frame.Compare(v, U8(16), JB, name)
	JMP(LabelRef(done))
}

// storeVector and storeWords write sixteen float32, or bfloat16; a row's last are masked.
func storeVector(v VecPhysical, to Mem, last bool) {
	if last {
		VMOVUPS(v, K1, to)
	} else {
		VMOVUPS(v, to)
	}
}

func storeWords(v Op, to Mem, last bool) {
	if last {
		VMOVDQU16(v, K1, to)
	} else {
		VMOVDQU16(v, to)
	}
}
