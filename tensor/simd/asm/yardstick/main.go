// Command yardstick writes the assembly of package simd's measures of the machine:
// reading, copying and adding streams, and gathering rows.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
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
	DECQ(turns)
	JNZ(LabelRef("turn"))
	VZEROUPPER()
	RET()
}

// gather reads rows of lines·64 bytes by number and adds them up.
func gather(width int) {
	TEXT(name("Gather", width), 0, "func(src *byte, stride int, list *uint32, n, lines int)")
	Pragma("noescape")
	src, stride := Load(Param("src"), GP64()), Load(Param("stride"), GP64())
	list, n := Load(Param("list"), GP64()), Load(Param("n"), GP64())
	lines := Load(Param("lines"), GP64())
	const ahead = 8
	sums := make([]reg.VecVirtual, ahead*64/width)
	if width == 32 {
		sums = sums[:8]
	}
	for i := range sums {
		sums[i] = vec(width)
		clear(width, sums[i])
	}
	row, left := GP64(), GP64()
	add := func(bytes int) {
		for i := range bytes / width {
			s := sums[i%len(sums)]
			VADDPS(Mem{Base: row, Disp: i * width}, s, s)
		}
		ADDQ(U32(bytes), row)
		SUBQ(U32(bytes/64), left)
	}
	Label("next")
	MOVL(Mem{Base: list}, row.As32())
	ADDQ(Imm(4), list)
	IMULQ(stride, row)
	ADDQ(src, row)
	MOVQ(lines, left)
	Label("many")
	CMPQ(left, Imm(ahead))
	JLT(LabelRef("few"))
	add(ahead * 64)
	JMP(LabelRef("many"))
	Label("few")
	TESTQ(left, left)
	JZ(LabelRef("done"))
	add(64)
	JMP(LabelRef("few"))
	Label("done")
	DECQ(n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}
