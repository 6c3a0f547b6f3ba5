// Package frame is what the functions of all generators share: where they find what they are given, keep what registers
// have no room for, and jump to.
package frame

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// args is the address of the struct of package simd that a function takes, from its start to its end.
var args = RAX

// Begin starts a function that takes a struct.
func Begin(name string) {
	TEXT(name, NOSPLIT, "func(t *byte)")
	Pragma("noescape")
	Load(Param("t"), args)
}

// Field is the number that the struct has at an offset.
func Field(off int) Mem { return Mem{Base: args, Disp: off} }

// Get loads it, and Keep keeps it elsewhere.
func Get(off int, to GPPhysical) { MOVQ(Field(off), to) }

func Keep(off int, tmp GPPhysical, to Mem) {
	Get(off, tmp)
	MOVQ(tmp, to)
}

// First loads the struct's first numbers.
func First(to ...GPPhysical) {
	for i, r := range to {
		Get(8*i, r)
	}
}

// Func starts a function that takes parameters instead, and loads these.
func Func(name, signature string, to ...GPPhysical) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	for i, r := range to {
		Load(ParamIndex(i), r)
	}
}

// Locals holds a number in each. In the struct, a pointer past the end of what it is of would confuse the garbage
// collector.
func Locals(numbers ...*Mem) {
	room := AllocLocal(8 * len(numbers))
	for i, m := range numbers {
		*m = room.Offset(8 * i)
	}
}

// End ends a function that used vector registers.
func End() {
	VZEROUPPER()
	RET()
}

// Next counts n down and jumps to label while any are left.
func Next(n Op, label string) {
	DECQ(n)
	JNZ(LabelRef(label))
}

// Compare jumps to label if a compared with b fulfils a condition, such as JB.
func Compare(a, b Op, jump func(Op), label string) {
	CMPQ(a, b)
	jump(LabelRef(label))
}

// Test jumps to label if the bits that a and b share fulfil a condition, such as JZ.
func Test(a, b Op, jump func(Op), label string) {
	TESTQ(a, b)
	jump(LabelRef(label))
}
