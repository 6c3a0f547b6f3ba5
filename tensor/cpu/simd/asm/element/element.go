package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

// ifAct runs body when the activation is act.
func (k *kernel) ifAct(act uint64, body func()) {
	skip := label("act")
	CMPB(k.field("Act"), Imm(act))
	JNE(LabelRef(skip))
	body()
	Label(skip)
}

func mapKernel(s set) {
	k := begin(s, "map", "Map")
	k.prepareTail()
	dst, src, other := k.load("Dst.Data"), k.load("Src.Data"), k.load("Other.Data")
	stat := k.load("Stat")
	d, norm := k.newDrops(), k.hasNorm()
	share, blocks := k.perColumn(), map[string]reg.GPVirtual{"Dst": dst, "Src": src, "Other": other}
	k.left = k.load("Rows")
	k.ifField("Moments", func() { k.backTwo(blocks, stat) })
	k.rowsLeft(blocks, func() {
		next := label("next")
		k.ifField("Moments", func() { k.momentsAhead(src, stat, share, next) })
		k.ifField("Drop.On", d.row)
		k.columns(func(n int, rest bool) {
			x := k.read("Src", src, n, rest)
			k.ifField("Combine", func() { k.combine(x, other, rest) })
			k.normalize(norm, x, stat, rest)
			k.activate(x)
			k.ifField("Drop.On", func() { d.apply(x) })
			k.write("Dst", dst, x, rest)
		})
		Label(next)
		ADDQ(k.field("StatStride"), stat)
	})
	k.end()
}

// backTwo begins two rows before the first: the moments of a row wait for sums over all lanes, twice, so the mean is
// computed two rows ahead and the deviation one.
func (k *kernel) backTwo(blocks map[string]reg.GPVirtual, stat reg.GPVirtual) {
	for range 2 {
		INCQ(k.left)
		SUBQ(k.field("StatStride"), stat)
		for _, name := range sortedKeys(blocks) {
			SUBQ(k.field(name+".Stride"), blocks[name])
		}
	}
}

// momentsAhead computes the mean of the row after the next and the deviation of the next, where
// there are these, and jumps
// if there is no row here yet.
func (k *kernel) momentsAhead(src, stat reg.GPVirtual, share vec, none string) {
	row, at, second := GP64(), GP64(), label("second")
	k.ifMore(2, func() {
		MOVQ(k.field("Src.Stride"), row)
		LEAQ(Mem{Base: src, Index: row, Scale: 2}, row)
		MOVQ(k.field("StatStride"), at)
		LEAQ(Mem{Base: stat, Index: at, Scale: 2}, at)
		k.mean(row, at, share)
	})
	LEAQ(Mem{Base: k.left, Disp: -1}, row)
	frame.Compare(row, k.field("Rows"), JGT, none)
	frame.Compare(row, Imm(0), JEQ, second)
	MOVQ(src, row)
	ADDQ(k.field("Src.Stride"), row)
	MOVQ(stat, at)
	ADDQ(k.field("StatStride"), at)
	k.deviation(row, at, share)
	Label(second)
	frame.Compare(k.left, k.field("Rows"), JGT, none)
}

// combine: x = Alpha·x + Beta·other.
func (k *kernel) combine(x []vec, other reg.GPVirtual, rest bool) {
	alpha := k.all(k.field("Alpha"))
	for i := range x {
		VMULPS(alpha, x[i], x[i])
	}
	k.ifPointer("Other.Data", func(reg.GPVirtual) {
		beta := k.all(k.field("Beta"))
		for i, y := range k.read("Other", other, len(x), rest) {
			VFMADD231PS(beta, y, x[i])
		}
	})
}

// hasNorm is not zero if a map normalizes: most have a bias at most, and a test for each step
// that might come takes time.
func (k *kernel) hasNorm() Mem {
	has, any := AllocLocal(8), k.load("Stat")
	ORQ(k.field("Center"), any)
	ORQ(k.field("Scale"), any)
	MOVQ(any, has)
	return has
}

// normalize: the steps of a map that depend on row and column.
func (k *kernel) normalize(has Mem, x []vec, stat reg.GPVirtual, rest bool) {
	plain := label("plain")
	frame.Compare(has, Imm(0), JEQ, plain)
	k.ifPointer("Stat", func(reg.GPVirtual) {
		mean, rdev := k.all(Mem{Base: stat}), k.all(Mem{Base: stat, Disp: 4})
		for i := range x {
			VSUBPS(mean, x[i], x[i])
			VMULPS(rdev, x[i], x[i])
		}
	})
	k.ifPointer("Center", func(p reg.GPVirtual) {
		for i := range x {
			VSUBPS(k.param(p, i, rest), x[i], x[i])
		}
	})
	done := label("normal")
	k.ifPointer("Scale", func(scale reg.GPVirtual) {
		k.ifPointer("Bias", func(bias reg.GPVirtual) {
			for i := range x {
				VFMADD213PS(k.param(bias, i, rest), k.param(scale, i, rest), x[i])
			}
			JMP(LabelRef(done))
		})
		for i := range x {
			VMULPS(k.param(scale, i, rest), x[i], x[i])
		}
	})
	Label(plain)
	k.ifPointer("Bias", func(p reg.GPVirtual) {
		for i := range x {
			VADDPS(k.param(p, i, rest), x[i], x[i])
		}
	})
	Label(done)
}

const (
	relu  = 1
	elu   = 2
	leaky = 3
)

func (k *kernel) activate(x []vec) {
	k.activateBy(x, func() {
		k.byType("Dst", func(c series) { k.elu(x, c) })
	})
}

// activateBy is activate with elu as given.
func (k *kernel) activateBy(x []vec, byELU func()) {
	none := label("none")
	CMPB(k.field("Act"), Imm(0))
	JEQ(LabelRef(none))
	k.ifAct(relu, func() {
		zero := k.zero()
		for i := range x {
			VMAXPS(x[i], zero, x[i])
		}
	})
	k.ifAct(leaky, func() {
		slope, zero, y := k.all(num(0.01)), k.zero(), k.reg()
		for i := range x {
			VMULPS(slope, x[i], y)
			k.choose(k.compare(less, x[i], zero), y, x[i], x[i])
		}
	})
	k.ifAct(elu, byELU)
	Label(none)
}

func actGradKernel(s set) {
	k := begin(s, "actGrad", "ActGrad")
	k.prepareTail()
	dx, dy, y := k.load("Dx.Data"), k.load("Dy.Data"), k.load("Y.Data")
	d := k.newDrops()
	k.rows(map[string]reg.GPVirtual{"Dx": dx, "Dy": dy, "Y": y}, func() {
		k.ifField("Drop.On", d.row)
		k.columns(func(n int, rest bool) {
			g := k.read("Dy", dy, n, rest)
			k.ifField("Act", func() { k.slopes(g, k.read("Y", y, n, rest)) })
			k.ifField("Drop.On", func() { d.undo(g) })
			k.write("Dx", dx, g, rest)
			k.ifPointer("Sums", func(p reg.GPVirtual) {
				for i := range g {
					VADDPS(k.cell(p, 4, i), g[i], g[i])
					VMOVUPS(g[i], k.cell(p, 4, i))
				}
			})
		})
	})
	k.end()
}

// slopes multiplies g by the activation's derivative where its value is y.
func (k *kernel) slopes(g, y []vec) {
	zero := k.zero()
	k.ifAct(relu, func() {
		for i := range g {
			k.keep(k.compare(greater, y[i], zero), g[i])
		}
	})
	k.ifAct(leaky, func() {
		slope, t := k.all(num(0.01)), k.reg()
		for i := range g {
			VMULPS(slope, g[i], t)
			k.choose(k.compare(greater, y[i], zero), g[i], t, g[i])
		}
	})
	k.ifAct(elu, func() {
		keep, one := k.all(num(1)), k.all(num(1))
		k.ifField("Drop.On", func() { VBROADCASTSS(k.field("Drop.Keep"), keep) })
		for i := range g {
			VMINPS(y[i], zero, y[i])
			VFMADD213PS(one, keep, y[i])
			VMULPS(y[i], g[i], g[i])
		}
	})
}
