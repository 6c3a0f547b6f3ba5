package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// flat prepares a kernel over N numbers.
func flat(s set, fn, name string) *kernel {
	k := begin(s, fn, name)
	offset[name+".Cols"] = offset[name+".N"]
	k.prepareTail()
	return k
}

func adamKernel(s set) {
	k := flat(s, "adam", "Adam")
	p, g, m, v := k.load("P"), k.load("G"), k.load("M"), k.load("V")
	k.columnsBy(1, func(_ int, rest bool) {
		pv, gv, mv, vv := k.param(p, 0, rest), k.param(g, 0, rest), k.param(m, 0, rest), k.param(v, 0, rest)
		f := func(name string) vec { return k.all(k.field(name)) }
		t := k.reg()
		VFMADD231PS(f("L2"), pv, gv)
		VSUBPS(mv, gv, t)
		VFMADD231PS(f("OneBeta1"), t, mv)
		k.writeFloats(mv, k.cell(m, 4, 0), rest, false)
		VMULPS(gv, gv, gv)
		VMULPS(f("Beta2"), vv, vv)
		VFMADD231PS(f("OneBeta2"), gv, vv)
		k.writeFloats(vv, k.cell(v, 4, 0), rest, false)
		VSQRTPS(vv, vv)
		VFMADD213PS(f("Eps"), f("Root"), vv)
		VMULPS(f("Rate"), mv, mv)
		VDIVPS(vv, mv, mv)
		VFMSUB132PS(f("Shrink"), mv, pv)
		k.writeFloats(pv, k.cell(p, 4, 0), rest, false)
	})
	k.end()
}

func sgdKernel(s set) {
	k := flat(s, "sgd", "SGD")
	p, g := k.load("P"), k.load("G")
	k.columnsBy(1, func(_ int, rest bool) {
		pv, gv := k.param(p, 0, rest), k.param(g, 0, rest)
		VFMADD231PS(k.all(k.field("Decay")), pv, gv)
		k.ifPointer("Buf", func(buf reg.GPVirtual) { k.momentum(buf, gv, rest) })
		VFNMADD231PS(k.all(k.field("Rate")), gv, pv)
		k.writeFloats(pv, k.cell(p, 4, 0), rest, false)
	})
	k.end()
}

// momentum updates the buffer from g, and g to what the parameter moves by.
func (k *kernel) momentum(buf reg.GPVirtual, g vec, rest bool) {
	momentum, b := k.all(k.field("Momentum")), k.reg()
	VMOVAPS(g, b)
	first, plain, done := label("first"), label("plain"), label("moved")
	CMPB(k.field("Start"), Imm(0))
	JNE(LabelRef(first))
	VFMADD231PS(momentum, k.param(buf, 0, rest), b)
	Label(first)
	k.writeFloats(b, k.cell(buf, 4, 0), rest, false)
	CMPB(k.field("Nesterov"), Imm(0))
	JEQ(LabelRef(plain))
	VFMADD231PS(momentum, b, g)
	JMP(LabelRef(done))
	Label(plain)
	VMOVAPS(b, g)
	Label(done)
}
