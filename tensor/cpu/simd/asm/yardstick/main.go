// Command yardstick writes the assembly of package simd's measures of the machine:
// reading, copying and adding streams, and gathering rows.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

const step = 256 // bytes a turn of a loop

func main() {
	ConstraintExpr("amd64")
	for _, width := range []int{64, 32} {
		stream(width, "Read", false, 1)
		stream(width, "Copy", true, 1)
		stream(width, "Triad", true, 2)
		gather(width)
	}
	Generate()
}

func name(what string, width int) string { return fmt.Sprintf("yard%s%d", what, width*8) }

func vec(width int) reg.VecVirtual {
	if width == 64 {
		return ZMM()
	}
	return YMM()
}

func clear(width int, v reg.VecVirtual) {
	if width == 64 {
		VPXORD(v, v, v)
	} else {
		VPXOR(v, v, v)
	}
}

// stream reads one or two arrays and, if writes, stores what it read: a, or a + 3·b.
// Without writes the numbers are added up, so that the loads are needed.
func stream(width int, what string, writes bool, reads int) {
	TEXT(name(what, width), 0, "func(dst, a, b *float32, turns int)")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	in := []reg.Register{Load(Param("a"), GP64()), Load(Param("b"), GP64())}
	turns := Load(Param("turns"), GP64())
	var sums []reg.VecVirtual
	for range step / width {
		sums = append(sums, vec(width))
		clear(width, sums[len(sums)-1])
	}
	scale, three := vec(width), GP32()
	MOVL(U32(0x40400000), three)
	x := XMM()
	VMOVD(three, x)
	VBROADCASTSS(x, scale)
	Label("turn")
	for i := range step / width {
		at := func(r reg.Register) Mem { return Mem{Base: r, Disp: i * width} }
		if !writes {
			VADDPS(at(in[0]), sums[i], sums[i])
			continue
		}
		v := vec(width)
		VMOVUPS(at(in[0]), v)
		if reads == 2 {
			VFMADD231PS(at(in[1]), scale, v)
		}
		VMOVUPS(v, at(dst))
	}
	for _, r := range append(in, dst) {
		ADDQ(U32(step), r)
	}
	frame.Next(turns, "turn")
	frame.End()
}

// gather reads rows of lines·64 bytes and tail numbers by number and adds them up. low and high are the masks of
// the tail's halves where it takes two vectors.
func gather(width int) {
	TEXT(name("Gather", width), 0, "func(src *byte, stride int, list *uint32, n, lines, tail int, low, high *uint32)")
	Pragma("noescape")
	src, stride := Load(Param("src"), GP64()), Load(Param("stride"), GP64())
	list, n := Load(Param("list"), GP64()), Load(Param("n"), GP64())
	lines, tail := Load(Param("lines"), GP64()), GP64()
	Load(Param("tail"), tail)
	sums := make([]reg.VecVirtual, 8)
	for i := range sums {
		sums[i] = vec(width)
		clear(width, sums[i])
	}
	row, left := GP64(), GP64()
	rest := tailOf(width, tail, row)
	Label("next")
	MOVL(Mem{Base: list}, row.As32())
	ADDQ(Imm(4), list)
	IMULQ(stride, row)
	ADDQ(src, row)
	MOVQ(lines, left)
	for _, many := range []int{16, 8, 4, 2, 1} {
		again, under := fmt.Sprintf("by%d", many), fmt.Sprintf("under%d", many)
		Label(again)
		frame.Compare(left, Imm(uint64(many)), JLT, under)
		for i := range many * 64 / width {
			s := sums[i%len(sums)]
			VADDPS(Mem{Base: row, Disp: i * width}, s, s)
		}
		ADDQ(U32(64*many), row)
		SUBQ(Imm(uint64(many)), left)
		if many == 16 {
			JMP(LabelRef(again))
		}
		Label(under)
	}
	frame.Test(tail, tail, JZ, "done")
	rest(sums)
	Label("done")
	frame.Next(n, "next")
	frame.End()
}

// tailOf loads the masks of the tail and returns what adds it.
func tailOf(width int, tail, row reg.GPVirtual) func(sums []reg.VecVirtual) {
	if width == 64 {
		k, bits := K(), GP64()
		MOVL(U32(0xffff), bits.As32())
		BZHIQ(tail, bits, bits)
		KMOVW(bits.As32(), k)
		return func(sums []reg.VecVirtual) { VADDPS(Mem{Base: row}, sums[0], k, sums[0]) }
	}
	var masks [2]reg.VecVirtual
	for i, half := range []string{"low", "high"} {
		masks[i] = YMM()
		VMOVDQU(Mem{Base: Load(Param(half), GP64())}, masks[i])
	}
	return func(sums []reg.VecVirtual) {
		for i, m := range masks {
			x := YMM()
			VMASKMOVPS(Mem{Base: row, Disp: 32 * i}, m, x)
			VADDPS(x, sums[i], sums[i])
		}
	}
}
