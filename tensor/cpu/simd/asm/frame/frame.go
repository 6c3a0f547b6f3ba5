// Package frame is where generated functions find what they are given, and keep what registers have no room for.
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
