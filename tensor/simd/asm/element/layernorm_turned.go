package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unlessSideBySide jumps if there is room between the rows of a block, where nothing may be written.
func (k *kernel) unlessSideBySide(block, to string) {
	bytes := GP64()
	k.bySize(block, func(size int) { IMUL3Q(U32(uint32(size)), k.cols, bytes) })
	CMPQ(bytes, k.field(block+".Stride"))
	JNE(LabelRef(to))
}

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
		t.storePairs(mean, rdev)
		t.write("Dst", func(column reg.GPVirtual, n int) []vec {
			x, at, scale := t.regs(n), t.from(column), t.reg()
			SUBQ(t.room, at)
			SHRQ(Imm(4), at)
			for i := range x { // beta - (mean - x)·(rdev·gamma): all but mean and rdev is read where it is used
				VSUBPS(Mem{Base: column, Disp: 64 * i}, mean, x[i])
				VMULPS_BCST(along(gamma, at, i), rdev, scale)
				VFNMADD213PS_BCST(along(beta, at, i), scale, x[i])
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

// storePairs stores the pairs of mean and 1/deviation of the group's rows.
func (t *turned) storePairs(mean, rdev vec) {
	t.byPairs(func(stat Mem) {
		for i := range 2 {
			pairs := t.reg()
			VMOVDQU32(inTurns.Offset(64*i), pairs)
			VPERMI2PS(rdev, mean, pairs)
			VMOVUPS(pairs, stat.Offset(64*i))
		}
	}, func(stat Mem) {
		for i, v := range []vec{mean, rdev} {
			VSCATTERDPS(v, t.every(), stat.Offset(4*i))
		}
	})
}

// loadPairs loads them.
func (t *turned) loadPairs() (mean, rdev vec) {
	mean, rdev = t.zero(), t.zero()
	t.byPairs(func(stat Mem) {
		pairs := t.reg()
		VMOVUPS(stat, pairs)
		for i, v := range []vec{mean, rdev} {
			VMOVDQU32(everyOther.Offset(64*i), v)
			VPERMI2PS(stat.Offset(64), pairs, v)
		}
	}, func(stat Mem) {
		for i, v := range []vec{mean, rdev} {
			VGATHERDPS(stat.Offset(4*i), t.every(), v)
		}
	})
	return mean, rdev
}

// byPairs runs whole where the group has sixteen pairs side by side, which are two vectors, else apart: sixteen lanes each
// at its own place take as long as turning four columns.
func (t *turned) byPairs(whole, apart func(stat Mem)) {
	p, other, done := t.from(t.at), label("apart"), label("pairs")
	IMULQ(t.field("StatStride"), p)
	ADDQ(t.field("Stat"), p)
	CMPQ(t.field("StatStride"), Imm(8))
	JNE(LabelRef(other))
	CMPQ(t.n, Imm(16))
	JNE(LabelRef(other))
	whole(Mem{Base: p})
	JMP(LabelRef(done))
	Label(other)
	index, stride := t.rowNumbers(0), t.reg()
	VPBROADCASTD(t.at.As32(), stride)
	VPSUBD(stride, index, index)
	VPBROADCASTD(t.field("StatStride"), stride)
	VPMULLD(stride, index, index)
	apart(Mem{Base: p, Index: index, Scale: 1})
	Label(done)
}

// inTurns takes the numbers of two vectors in turns, everyOther takes them apart again.
var inTurns, everyOther Mem

func makePairTables() {
	inTurns = GLOBL("elementInTurns", 16|8)
	for i := range 32 {
		DATA(i*4, U32(i/2+i%2*16))
	}
	everyOther = GLOBL("elementEveryOther", 16|8)
	for i := range 32 {
		DATA(i*4, U32(i%16*2+i/16))
	}
}

// layerGradTurned is layer norm's gradient of short rows, turned (see layerRow). Columns of Dy are in room, of X behind
// it, and behind these sums, a vector a column until the end.
type layerGradTurned struct {
	*turned
	gamma             Mem
	share, mean, rdev vec
	less, times       vec // of a row: dx = dy·gamma·rdev - ((x - mean)·times + less)
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
		g.mean, g.rdev = g.loadPairs()
		g.sums()
		g.write("Dx", g.gradients)
	})
	g.addSums("DGamma", turnedDGamma)
	g.addSums("DBeta", turnedDBeta)
}

// sums adds to those of columns, and makes of those of rows what all columns need. Meanwhile lines move.
func (g *layerGradTurned) sums() {
	s0, s1, lines, real := g.zeros(2), g.zeros(2), g.traffic("Dx", "Dy", "X"), g.valid()
	down := g.zero() // -rdev
	VSUBPS(g.rdev, down, down)
	g.bySize("Dy", func(size int) {
		g.each(func(at reg.GPVirtual) {
			lines.some(size)
			number := g.from(at)
			SHRQ(Imm(4), number)
			for i := range 4 {
				cell := func(line int) Mem { return g.column(at, i).Offset(64 * line) }
				dy, term, sum := g.reg(), g.reg(), g.reg()
				VMOVUPS(cell(0), dy)
				VADDPS(cell(turnedDBeta), dy, sum)
				VMOVUPS(sum, real, cell(turnedDBeta))
				VSUBPS(cell(turnedX), g.mean, term)
				VMULPS(down, term, term)
				VMULPS(dy, term, term) // dy·xhat
				VADDPS(cell(turnedDGamma), term, sum)
				VMOVUPS(sum, real, cell(turnedDGamma))
				VFMADD231PS_BCST(along(g.gamma, number, i), dy, s0[i%2])
				VFMADD231PS_BCST(along(g.gamma, number, i), term, s1[i%2])
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
		VSUBPS(Mem{Base: column, Disp: 64 * (i + turnedX)}, g.mean, x)
		VFNMADD213PS(g.less, g.times, x)
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
