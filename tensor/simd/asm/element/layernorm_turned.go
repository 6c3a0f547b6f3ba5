package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// layerNormTurned is layer norm of short rows, turned: a row's mean and deviation are lanes of a vector.
func (k *kernel) layerNormTurned() {
	var gamma, beta Mem
	share := k.spread(k.perColumn())
	t := &turned{kernel: k}
	t.turnRows("Dst", func() {
		gamma, beta = t.parameter("Scale", 1), t.parameter("Bias", 0)
	}, func() {
		t.read("Src", t.room, t.zero())
		mean, rdev := t.moments(share)
		stat, index := t.statistics()
		for i, v := range []vec{mean, rdev} {
			VSCATTERDPS(v, t.every(), Mem{Base: stat, Index: index, Scale: 1, Disp: 4 * i})
		}
		t.write("Dst", func(column reg.GPVirtual, n int) []vec {
			x, at := t.regs(n), t.from(column)
			SUBQ(t.room, at)
			SHRQ(Imm(4), at)
			for i := range x {
				VMOVUPS(Mem{Base: column, Disp: 64 * i}, x[i])
				VSUBPS(mean, x[i], x[i])
				VMULPS(rdev, x[i], x[i])
				VFMADD213PS(t.all(along(beta, at, i)), t.all(along(gamma, at, i)), x[i])
			}
			t.activateBy(x, func() {
				for i := 0; i < n; i += 2 { // there are no registers for more
					t.elu(x[i:i+2], map[int]series{4: fine, 8: coarse}[n])
				}
			})
			return x
		})
	})
}

// along is a column's number of those in memory.
func along(m Mem, at reg.GPVirtual, i int) Mem {
	m.Index, m.Scale = at, 1
	return m.Offset(4 * i)
}

// parameter copies a parameter of columns, otherwise in place of those there are not, and goes on beyond the last.
func (t *turned) parameter(field string, otherwise float64) Mem {
	const vectors = (turnedMost + 8 + 15) / 16
	to, v := AllocLocal(64*vectors), t.regs(vectors)
	for _, x := range v {
		VBROADCASTSS(num(otherwise), x)
	}
	t.ifPointer(field, func(p reg.GPVirtual) {
		ones := GP64()
		MOVQ(I32(-1), ones)
		BZHIQ(t.cols, ones, ones)
		for i, x := range v {
			m := K()
			KMOVW(ones.As32(), m)
			VMOVUPS(Mem{Base: p, Disp: 64 * i}, m, x)
			SHRQ(Imm(16), ones)
		}
	})
	for i, x := range v {
		VMOVUPS(x, to.Offset(64*i))
	}
	return to
}

// moments are the mean and 1/deviation of the rows of Src in room. Meanwhile lines move.
func (t *turned) moments(share vec) (mean, rdev vec) {
	sum, square, lines := t.zeros(4), t.zeros(4), t.traffic("Dst", "Src")
	add := func(a, b, dst Op) { VADDPS(a, b, dst) }
	t.each(func(at reg.GPVirtual) {
		for i, s := range sum {
			VADDPS(t.column(at, i), s, s)
		}
	})
	mean = t.foldFour(sum, add)
	VMULPS(share, mean, mean)
	t.pad(t.room, mean)
	t.bySize("Src", func(size int) {
		t.each(func(at reg.GPVirtual) {
			lines.some(size)
			for i, s := range square {
				d := t.reg()
				VSUBPS(t.column(at, i), mean, d)
				VFMADD231PS(d, d, s)
			}
		})
	})
	lines.end()
	rdev = t.foldFour(square, add)
	VMULPS(share, rdev, rdev)
	VADDPS_BCST(t.field("Eps"), rdev, rdev)
	return mean, t.inverseRoot(rdev)
}

// inverseRoot is 1/√x, for x above zero: an estimate of 14 bits and one step of Newton's, y + y·(1 - x·y²)/2, a sixth of
// the time of a root and a division.
func (t *turned) inverseRoot(x vec) vec {
	y, off := t.reg(), t.all(num(1))
	VRSQRT14PS(x, y)
	VMULPS(y, x, x)
	VFNMADD231PS(x, y, off)
	VMULPS_BCST(num(0.5), off, off)
	VFMADD231PS(off, y, y)
	return y
}

// statistics are where pairs of mean and 1/deviation begin, and how far the group's are from there.
func (t *turned) statistics() (reg.GPVirtual, vec) {
	p, index, stride := t.from(t.at), t.rowNumbers(0), t.reg()
	VPBROADCASTD(t.at.As32(), stride)
	VPSUBD(stride, index, index)
	IMULQ(t.field("StatStride"), p)
	ADDQ(t.field("Stat"), p)
	VPBROADCASTD(t.field("StatStride"), stride)
	VPMULLD(stride, index, index)
	return p, index
}

// layerGradTurned is layer norm's gradient of short rows, turned (see layerRow). Columns of Dy are in room, of X behind
// it, and behind these sums, a vector a column until the end.
type layerGradTurned struct {
	*turned
	gamma             Mem
	share, rdev       vec
	mean, less, times vec // of a row: dx = dy·gamma·rdev - ((x - mean)·times + less)
}

// Lines behind room.
const (
	turnedX      = roomLines + stageLines
	turnedDGamma = turnedX + roomLines
	turnedDBeta  = turnedDGamma + roomLines
)

func (k *kernel) layerGradTurned() {
	g := &layerGradTurned{turned: &turned{kernel: k, more: 3 * roomLines}, share: k.spread(k.perColumn())}
	g.turnRows("Dx", func() {
		g.gamma = g.parameter("Gamma", 1)
		zero := k.zero()
		for i := range 2 * roomLines {
			VMOVUPS(zero, Mem{Base: g.room, Disp: 64 * (turnedDGamma + i)})
		}
	}, func() {
		g.read("Dy", g.room, g.zero())
		g.read("X", g.behind(turnedX), g.zero())
		g.rowStat()
		g.sums()
		g.write("Dx", g.gradients)
	})
	g.addSums("DGamma", turnedDGamma)
	g.addSums("DBeta", turnedDBeta)
}

// rowStat loads the mean and 1/deviation.
func (g *layerGradTurned) rowStat() {
	stat, index := g.statistics()
	g.mean, g.rdev = g.zero(), g.zero()
	VGATHERDPS(Mem{Base: stat, Index: index, Scale: 1}, g.every(), g.mean)
	VGATHERDPS(Mem{Base: stat, Index: index, Scale: 1, Disp: 4}, g.every(), g.rdev)
}

// sums adds to those of columns, and makes of those of rows what all columns need. Meanwhile lines move.
func (g *layerGradTurned) sums() {
	s0, s1, lines, real := g.zeros(2), g.zeros(2), g.traffic("Dx", "Dy", "X"), g.valid()
	g.bySize("Dy", func(size int) {
		g.each(func(at reg.GPVirtual) {
			lines.some(size)
			number := g.from(at)
			SHRQ(Imm(4), number)
			for i := range 4 {
				cell := func(line int) Mem { return g.column(at, i).Offset(64 * line) }
				dy, xhat, sum := g.reg(), g.reg(), g.reg()
				VMOVUPS(cell(0), dy)
				VMOVUPS(cell(turnedX), xhat)
				VSUBPS(g.mean, xhat, xhat)
				VMULPS(g.rdev, xhat, xhat)
				VMOVUPS(cell(turnedDBeta), sum)
				VADDPS(dy, sum, real, sum)
				VMOVUPS(sum, cell(turnedDBeta))
				VMOVUPS(cell(turnedDGamma), sum)
				VFMADD231PS(dy, xhat, real, sum)
				VMOVUPS(sum, cell(turnedDGamma))
				VMULPS_BCST(along(g.gamma, number, i), dy, dy)
				VADDPS(dy, s0[i%2], s0[i%2])
				VFMADD231PS(dy, xhat, s1[i%2])
			}
		})
	})
	lines.end()
	g.less, g.times = s0[0], s1[0]
	for _, s := range [][]vec{s0, s1} {
		VADDPS(s[1], s[0], s[0])
		VMULPS(g.share, s[0], s[0])
	}
	VMULPS(g.rdev, g.less, g.less)
	VMULPS(g.rdev, g.times, g.times)
	VMULPS(g.rdev, g.times, g.times)
}

// gradients are those of some columns.
func (g *layerGradTurned) gradients(column reg.GPVirtual, n int) []vec {
	dx, number := g.regs(n), g.from(column)
	SUBQ(g.room, number)
	SHRQ(Imm(4), number)
	for i := range dx {
		x := g.reg()
		VMOVUPS(Mem{Base: column, Disp: 64 * (i + turnedX)}, x)
		VSUBPS(g.mean, x, x)
		VFMADD213PS(g.less, g.times, x)
		VMULPS_BCST(along(g.gamma, number, i), g.rdev, dx[i])
		VFMSUB132PS(Mem{Base: column, Disp: 64 * i}, x, dx[i])
	}
	return dx
}

// addSums adds the lanes of the columns' sums to a field's numbers.
func (g *layerGradTurned) addSums(field string, lines int) {
	to, number, at, again := g.load(field), GP64(), g.behind(lines), label("sum")
	XORQ(number, number)
	Label(again)
	v := g.reg()
	VMOVUPS(Mem{Base: at}, v)
	sum, cell := g.sum(v), Mem{Base: to, Index: number, Scale: 4}
	VADDSS(cell, sum, sum)
	VMOVSS(sum, cell)
	ADDQ(Imm(64), at)
	INCQ(number)
	CMPQ(number, g.cols)
	JLT(LabelRef(again))
}
