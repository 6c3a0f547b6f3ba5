package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const dropC0 = 0x9e3779b1

// iota16 is pair·c0 of the first sixteen pairs of columns.
var iota16 Mem

// drops draws the columns of a row, two vectors at a time, or looks up what to keep.
type drops struct {
	k         *kernel
	ids, id   reg.GPVirtual // ids are the bits of the next row where these are given
	next, top vec           // the hash's start for the next pairs of columns; the upper half of the row's key
}

func (k *kernel) newDrops() *drops {
	d := &drops{k: k, next: k.reg(), top: k.reg()}
	d.ids, d.id = k.load("Drop.IDs"), GP64()
	MOVL(k.field("Drop.First"), d.id.As32())
	if k.zmm {
		k.ifPointer("Drop.Bits", func(bits reg.GPVirtual) { MOVQ(bits, d.ids) })
	}
	return d
}

// drawing runs body unless what to keep is given: then, other.
func (d *drops) drawing(body, other func()) {
	if !d.k.zmm {
		body()
		return
	}
	given, done := label("given"), label("decided")
	CMPQ(d.k.field("Drop.Bits"), Imm(0))
	JNE(LabelRef(given))
	body()
	JMP(LabelRef(done))
	Label(given)
	other()
	Label(done)
}

// row goes on to the next row.
func (d *drops) row() {
	d.drawing(d.rowKey, func() { ADDQ(d.k.field("Drop.BitStride"), d.ids) })
}

// rowKey computes the key of the next row.
func (d *drops) rowKey() {
	have, z, t := label("id"), GP64(), GP64()
	MOVQ(d.id, z)
	TESTQ(d.ids, d.ids)
	JZ(LabelRef(have))
	MOVL(Mem{Base: d.ids}, z.As32())
	ADDQ(Imm(4), d.ids)
	Label(have)
	INCL(d.id.As32())
	INCQ(z)
	for _, step := range []struct {
		shift uint64
		mul   uint64
	}{{0, 0x9e3779b97f4a7c15}, {30, 0xbf58476d1ce4e5b9}, {27, 0x94d049bb133111eb}, {31, 0}} {
		if step.shift > 0 {
			MOVQ(z, t)
			SHRQ(Imm(step.shift), t)
			XORQ(t, z)
		}
		if step.mul > 0 {
			MOVQ(U64(step.mul), t)
			IMULQ(t, z)
		}
		if step.shift == 0 {
			ADDQ(d.k.field("Drop.Key"), z)
		}
	}
	x := XMM()
	VMOVQ(z, x)
	VPBROADCASTD(x, d.next)
	VPADDD(iota16, d.next, d.next)
	VPSRLQ(Imm(32), x, x)
	VPBROADCASTD(x, d.top)
}

// apply keeps and scales, or zeroes, the numbers of the next columns.
func (d *drops) apply(v []vec) {
	d.drawing(func() { d.draw(v) }, func() { d.lookUp(v) })
}

// lookUp is apply by the bits of the columns; row has gone beyond them.
func (d *drops) lookUp(v []vec) {
	k, at, scale := d.k, GP64(), d.k.all(d.k.field("Drop.Scale"))
	MOVQ(k.j, at)
	SHRQ(Imm(3), at)
	ADDQ(d.ids, at)
	SUBQ(k.field("Drop.BitStride"), at)
	for i, x := range v {
		m := K()
		KMOVW(Mem{Base: at, Disp: 2 * i}, m)
		VMULPS_Z(scale, x, m, x)
	}
}

// draw is apply by draws.
func (d *drops) draw(v []vec) {
	k := d.k
	c1, c2 := k.all(bits(0x7feb352d)), k.all(bits(0x846ca68b))
	// A single vector is the first of two, of which the other may follow.
	pairs := min(len(v), 2) * k.lanes / 2
	step := k.all(bits(uint32(pairs * dropC0 & 0xffffffff)))
	least, scale := k.reg(), k.all(k.field("Drop.Scale"))
	VPBROADCASTW(k.field("Drop.Threshold"), least)
	for i := 0; i < len(v); i += 2 {
		h, t := k.reg(), k.reg()
		VPSRLD(Imm(16), d.next, h)
		k.xor(d.next, h, h)
		VPADDD(step, d.next, d.next)
		VPMULLD(c1, h, h)
		VPSRLD(Imm(15), h, t)
		k.xor3(t, d.top, h)
		VPMULLD(c2, h, h)
		k.decide(v[i:min(i+2, len(v))], h, least, scale)
	}
}

// decide scales the numbers of one or two vectors whose draws, the words of h, are at least least, and zeroes the others.
func (k *kernel) decide(v []vec, h, least, scale vec) {
	if k.zmm {
		m := K()
		VPCMPUW(Imm(5), least, h, m)
		for i, x := range v {
			if i > 0 {
				KSHIFTRD(Imm(16), m, m)
			}
			VMULPS_Z(scale, x, m, x)
		}
		return
	}
	t := k.reg()
	VPMAXUW(least, h, t)
	VPCMPEQW(t, h, t)
	for i, x := range v {
		m := k.reg()
		if i > 0 {
			VEXTRACTI128(Imm(1), t, t.AsX())
		}
		VPMOVSXWD(t.AsX(), m)
		VMULPS(scale, x, x)
		VPAND(m, x, x)
	}
}

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
	done := label("done")
	if s.zmm {
		k.shortNorm(done)
	}
	dst, src, other := k.load("Dst.Data"), k.load("Src.Data"), k.load("Other.Data")
	stat := k.load("Stat")
	d, ask, norm := k.newDrops(), k.across("Src", src), k.hasNorm()
	// The moments of a row wait for sums over all lanes, twice, so the mean is computed two
	// rows ahead and the deviation one.
	share := k.perColumn()
	ahead := func(n int, moment func(row, stat reg.GPVirtual, share vec)) {
		k.ifMore(n, func() {
			row, at := GP64(), GP64()
			MOVQ(src, row)
			MOVQ(stat, at)
			for range n {
				ADDQ(k.field("Src.Stride"), row)
				ADDQ(k.field("StatStride"), at)
			}
			moment(row, at, share)
		})
	}
	k.left = k.load("Rows")
	k.ifField("Moments", func() {
		ahead(0, k.mean)
		ahead(0, k.deviation)
		ahead(1, k.mean)
	})
	k.rows(map[string]reg.GPVirtual{"Dst": dst, "Src": src, "Other": other}, func() {
		k.ifField("Moments", func() {
			ahead(2, k.mean)
			ahead(1, k.deviation)
		})
		k.ifField("Drop.On", d.row)
		read := GP64()
		MOVQ(src, read)
		k.ifField("Moments", func() { // the mean is two rows ahead
			ADDQ(k.field("Src.Stride"), read)
			ADDQ(k.field("Src.Stride"), read)
		})
		ask.row(read)
		k.columns(func(n int, rest bool) {
			x := ask.read(src, n, rest)
			k.ifField("Combine", func() { k.combine(x, other, rest) })
			k.normalise(norm, x, stat, rest)
			k.activate(x)
			k.ifField("Drop.On", func() { d.apply(x) })
			k.write("Dst", dst, x, rest)
		})
		ADDQ(k.field("StatStride"), stat)
	})
	Label(done)
	k.end()
}

// shortNorm is layer norm of short rows, without dropout.
func (k *kernel) shortNorm(done string) {
	other := label("other")
	CMPB(k.field("Moments"), Imm(0))
	JEQ(LabelRef(other))
	for _, more := range []string{"Drop.On", "Combine"} {
		CMPB(k.field(more), Imm(0))
		JNE(LabelRef(other))
	}
	CMPQ(k.field("Center"), Imm(0))
	JNE(LabelRef(other))
	k.ifShort(turnedMost, done, k.layerNormTurned)
	Label(other)
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

// hasNorm is not zero if a map normalises: most have a bias at most, and a test for each step that might come takes time.
func (k *kernel) hasNorm() Mem {
	has, any := AllocLocal(8), k.load("Stat")
	ORQ(k.field("Center"), any)
	ORQ(k.field("Scale"), any)
	MOVQ(any, has)
	return has
}

// normalise: the steps of a map that depend on row and column.
func (k *kernel) normalise(has Mem, x []vec, stat reg.GPVirtual, rest bool) {
	plain := label("plain")
	CMPQ(has, Imm(0))
	JEQ(LabelRef(plain))
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

// undo is the dropout of the gradient: after ReLU only its scale, for what was dropped is zero already.
func (d *drops) undo(g []vec) {
	k := d.k
	draws, done := label("draws"), label("drawn")
	CMPB(k.field("Act"), Imm(relu))
	JNE(LabelRef(draws))
	scale := k.all(k.field("Drop.Scale"))
	for i := range g {
		VMULPS(scale, g[i], g[i])
	}
	JMP(LabelRef(done))
	Label(draws)
	d.apply(g)
	Label(done)
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
