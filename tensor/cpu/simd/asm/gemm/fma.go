package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// fmaLoop is the yardstick of dense multiplication: as many independent FMAs as
// hide the unit's latency, and nothing else.
func fmaLoop(name string, f flavour) {
	TEXT(name, NOSPLIT, "func(steps int)")
	Load(Param("steps"), RCX)
	sums := f.vec[:2*f.full]
	x, y := f.vec[2*f.full], f.vec[2*f.full+1]
	for _, v := range f.vec {
		if f.bytes == 64 {
			VPXORD(v, v, v)
		} else {
			VXORPS(v, v, v)
		}
	}
	Label("step")
	for _, s := range sums {
		VFMADD231PS(x, y, s)
	}
	DECQ(RCX)
	JNZ(LabelRef("step"))
	VZEROUPPER()
	RET()
}
