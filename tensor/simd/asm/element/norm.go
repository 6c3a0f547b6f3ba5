package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// doubles is a kernel over float64 lanes: half as many as there are of float32.
// Vectors of sums have room up to a multiple of the lanes, so only blocks need masks.
type doubles struct {
	*kernel
	tailX vec // AVX2: mask of the last columns
}

func (k *kernel) doubles() *doubles {
	d := &doubles{kernel: k}
	k.lanes /= 2
	k.cols = k.load("Cols")
	n := GP64()
	MOVQ(k.cols, n)
	ANDQ(Imm(uint64(k.lanes-1)), n)
	if k.zmm {
		one := GP64()
		MOVQ(U32(0xff), one)
		BZHIQ(n, one, one)
		k.tailK = K()
		KMOVW(one.As32(), k.tailK)
		return d
	}
	NEGQ(n)
	table := GP64()
	LEAQ(tailTable, table)
	d.tailX = XMM()
	VMOVDQU(Mem{Base: table, Index: n, Scale: 4, Disp: 32}, d.tailX)
	return d
}

// read loads n vectors from column j of a row of a block and widens them.
func (d *doubles) read(block string, p reg.GPVirtual, n int, rest bool) []vec {
	v := d.regs(n)
	d.either(block, func() {
		d.prefetch(p, 4, n)
		for i := range v {
			d.full(p, i, v[i], rest)
		}
	}, func() {
		d.prefetch(p, 2, n)
		for i := range v {
			d.half(p, i, v[i], rest)
		}
	})
	return v
}

// narrow is the register half as wide as v.
func (d *doubles) narrow(v vec) reg.Register {
	if d.zmm {
		return v.AsY()
	}
	return v.AsX()
}

func (d *doubles) full(p reg.GPVirtual, i int, v vec, rest bool) {
	m := d.cell(p, 4, i)
	switch {
	case !rest:
		VCVTPS2PD(m, v)
	case d.zmm:
		VCVTPS2PD_Z(m, d.tailK, v)
	default:
		VMASKMOVPS(m, d.tailX, v.AsX())
		VCVTPS2PD(v.AsX(), v)
	}
}

func (d *doubles) half(p reg.GPVirtual, i int, v vec, rest bool) {
	m, narrow := d.cell(p, 2, i), d.narrow(v)
	switch {
	case !rest:
		VPMOVZXWD(m, narrow)
	case d.zmm:
		VPMOVZXWD_Z(m, d.tailK, narrow)
	default:
		VPXOR(narrow, narrow, narrow)
		VMOVDQU(narrow, d.room)
		d.copyHalves(p, true)
		VPMOVZXWD(d.room, narrow)
	}
	VPSLLD(Imm(16), narrow, narrow)
	VCVTPS2PD(narrow, v)
}

// columnSumsKernel takes four rows at a time, so that the sums are loaded and stored
// once for four.
func columnSumsKernel(s set) {
	d := begin(s, "columnSums", "ColumnSums").doubles()
	x, dy, left := d.load("X.Data"), d.load("Dy.Data"), d.load("Rows")
	if s.zmm {
		d.halfSums(x, dy, left)
	}
	for _, group := range []int{4, 1} {
		d.rowGroups(left, group, x, dy, func() {
			d.columnsBy(1, func(_ int, rest bool) { d.sumGroup(x, dy, group, rest) })
		})
	}
	d.end()
}

// rowGroups runs body while there are so many rows left.
func (d *doubles) rowGroups(left reg.GPVirtual, group int, x, dy reg.GPVirtual, body func()) {
	again, end := label("group"), label("group")
	Label(again)
	CMPQ(left, Imm(uint64(group)))
	JLT(LabelRef(end))
	body()
	for range group {
		ADDQ(d.field("X.Stride"), x)
		ADDQ(d.field("Dy.Stride"), dy)
	}
	SUBQ(Imm(uint64(group)), left)
	JMP(LabelRef(again))
	Label(end)
}

// sumGroup adds column j of a group of rows.
func (d *doubles) sumGroup(x, dy reg.GPVirtual, group int, rest bool) {
	s0, s1 := d.reg(), d.reg()
	VMOVUPD(d.cell(d.load("First"), 8, 0), s0)
	VMOVUPD(d.cell(d.load("Other"), 8, 0), s1)
	plain, done := label("plain"), label("summed")
	mean := d.load("Mean")
	TESTQ(mean, mean)
	JZ(LabelRef(plain))
	center, rdev := d.reg(), d.reg()
	VMOVUPD(d.cell(mean, 8, 0), center)
	VMOVUPD(d.cell(d.load("Rdev"), 8, 0), rdev)
	a, b := d.readGroup("Dy", dy, group, rest), d.readGroup("X", x, group, rest)
	for i := range a {
		VSUBPD(center, b[i], b[i])
		VMULPD(rdev, b[i], b[i])
		VADDPD(a[i], s0, s0)
		VFMADD231PD(a[i], b[i], s1)
	}
	JMP(LabelRef(done))
	Label(plain)
	for _, v := range d.readGroup("X", x, group, rest) {
		VADDPD(v, s0, s0)
		VFMADD231PD(v, v, s1)
	}
	Label(done)
	VMOVUPD(s0, d.cell(d.load("First"), 8, 0))
	VMOVUPD(s1, d.cell(d.load("Other"), 8, 0))
}

// halfSums takes bfloat16 rows eight at a time. Their squares are exact in float32
// and a sum of eight loses less than their storage did, so only the sums are
// widened. It works on sixteen columns, for which there is room.
func (d *doubles) halfSums(x, dy, left reg.GPVirtual) {
	const group = 8
	skip := label("wide")
	CMPB(d.field("X.BF16"), Imm(0))
	JEQ(LabelRef(skip))
	d.ifPointer("Mean", func(reg.GPVirtual) {
		CMPB(d.field("Dy.BF16"), Imm(0))
		JEQ(LabelRef(skip))
	})
	k := *d.kernel
	k.lanes *= 2
	k.prepareTail()
	d.rowGroups(left, group, x, dy, func() {
		k.columnsBy(1, func(_ int, rest bool) {
			s0, s1 := k.zero(), k.zero()
			plain, done := label("plain"), label("summed")
			mean := k.load("Mean")
			TESTQ(mean, mean)
			JZ(LabelRef(plain))
			center, rdev := k.narrowed(mean), k.narrowed(k.load("Rdev"))
			a, b := k.halfGroup("Dy", dy, group, rest), k.halfGroup("X", x, group, rest)
			for i := range a {
				VSUBPS(center, b[i], b[i])
				VMULPS(rdev, b[i], b[i])
				VADDPS(a[i], s0, s0)
				VFMADD231PS(a[i], b[i], s1)
			}
			JMP(LabelRef(done))
			Label(plain)
			for _, v := range k.halfGroup("X", x, group, rest) {
				VADDPS(v, s0, s0)
				VFMADD231PS(v, v, s1)
			}
			Label(done)
			k.addWidened(s0, k.load("First"))
			k.addWidened(s1, k.load("Other"))
		})
	})
	Label(skip)
}

// halfGroup loads column j of eight bfloat16 rows and asks for the eight that follow,
// in the order of memory.
func (k *kernel) halfGroup(block string, p reg.GPVirtual, rows int, rest bool) []vec {
	row, far := GP64(), GP64()
	MOVQ(k.field(block+".Stride"), far)
	LEAQ(Mem{Base: p, Index: far, Scale: 8}, far)
	LEAQ(Mem{Base: far, Index: k.j, Scale: 8}, far)
	for line := 0; line < k.lanes*rows*2; line += 64 {
		PREFETCHT0(Mem{Base: far, Index: k.j, Scale: 8, Disp: line})
	}
	MOVQ(p, row)
	v := k.regs(rows)
	for i := range v {
		k.readHalves(row, 0, v[i], rest)
		VPSLLD(Imm(16), v[i], v[i])
		ADDQ(k.field(block+".Stride"), row)
	}
	return v
}

// narrowed is sixteen float64 from column j as float32.
func (k *kernel) narrowed(p reg.GPVirtual) vec {
	low, high, v := YMM(), YMM(), ZMM()
	VCVTPD2PS(k.cell(p, 8, 0), low)
	VCVTPD2PS(k.cell(p, 8, 0).Offset(64), high)
	VINSERTF64X4(Imm(1), high, low.AsZ(), v)
	return v
}

// addWidened adds sixteen float32 to the float64 sums from column j.
func (k *kernel) addWidened(v vec, to reg.GPVirtual) {
	for h := range 2 {
		w, m := ZMM(), k.cell(to, 8, 0).Offset(64*h)
		if h == 0 {
			VCVTPS2PD(v.AsY(), w)
		} else {
			high := YMM()
			VEXTRACTF64X4(Imm(1), v, high)
			VCVTPS2PD(high, w)
		}
		VADDPD(m, w, w)
		VMOVUPD(w, m)
	}
}

// readGroup loads column j of as many rows, widened.
func (d *doubles) readGroup(block string, p reg.GPVirtual, rows int, rest bool) []vec {
	row := GP64()
	MOVQ(p, row)
	if rows == 1 {
		return d.read(block, row, 1, rest)
	}
	v := d.regs(rows)
	// The next rows are asked for in the order of memory: the processor itself
	// follows one stream a page, not four.
	next := func(size int) {
		far := GP64()
		MOVQ(d.field(block+".Stride"), far)
		LEAQ(Mem{Base: p, Index: far, Scale: 4}, far)
		at := GP64()
		LEAQ(Mem{Base: far, Index: d.j, Scale: uint8(2 * size)}, at)
		for line := 0; line < d.lanes*rows*size; line += 64 {
			PREFETCHT0(Mem{Base: at, Index: d.j, Scale: uint8(2 * size), Disp: line})
		}
	}
	d.either(block, func() {
		next(4)
		for i := range v {
			d.full(row, 0, v[i], rest)
			ADDQ(d.field(block+".Stride"), row)
		}
	}, func() {
		next(2)
		for i := range v {
			d.half(row, 0, v[i], rest)
			ADDQ(d.field(block+".Stride"), row)
		}
	})
	return v
}

func dotKernel(s set) {
	d := begin(s, "dot", "Dot").doubles()
	x, y := d.load("X.Data"), d.load("Y.Data")
	sum := d.regs(4)
	for _, s := range sum {
		VBROADCASTSS(bits(0), s)
	}
	d.rows(map[string]reg.GPVirtual{"X": x, "Y": y}, func() {
		d.columnsBy(4, func(n int, rest bool) {
			a, b := d.read("X", x, n, rest), d.read("Y", y, n, rest)
			for i := range n {
				VFMADD231PD(a[i], b[i], sum[i])
			}
		})
	})
	VADDPD(sum[1], sum[0], sum[0])
	VADDPD(sum[3], sum[2], sum[2])
	VADDPD(sum[2], sum[0], sum[0])
	d.sumDoubles(sum[0], d.field("Sum"))
	d.end()
}

// finiteKernel: x·0 is zero for all but infinities and NaN, which poison the sum.
func finiteKernel(s set) {
	k := begin(s, "finite", "Finite")
	k.prepareTail()
	x := k.load("X.Data")
	zero := k.zero()
	sums := []vec{k.zero(), k.zero(), k.zero(), k.zero()}
	k.rows(map[string]reg.GPVirtual{"X": x}, func() {
		k.columns(func(n int, rest bool) {
			for i, v := range k.read("X", x, n, rest) {
				VFMADD231PS(v, zero, sums[i])
			}
		})
	})
	for _, s := range sums[1:] {
		VADDPS(s, sums[0], sums[0])
	}
	total := k.sum(sums[0])
	VUCOMISS(total, total)
	SETPS(k.field("Bad"))
	k.end()
}

func normGradKernel(s set) {
	k := begin(s, "normGrad", "NormGrad")
	k.prepareTail()
	dx, dy, x := k.load("Dx.Data"), k.load("Dy.Data"), k.load("X.Data")
	mean, a, b, c := k.load("Mean"), k.load("A"), k.load("B"), k.load("C")
	k.rows(map[string]reg.GPVirtual{"Dx": dx, "Dy": dy, "X": x}, func() {
		k.columnsBy(2, func(n int, rest bool) {
			g, v := k.read("Dy", dy, n, rest), k.read("X", x, n, rest)
			for i := range n {
				VSUBPS(k.param(mean, i, rest), v[i], v[i])
				VFMSUB132PS(k.param(a, i, rest), k.param(b, i, rest), g[i])
				VFNMADD231PS(k.param(c, i, rest), v[i], g[i])
			}
			k.write("Dx", dx, g, rest)
		})
	})
	k.end()
}

// perColumn is 1/Cols in the first lane.
func (k *kernel) perColumn() vec {
	one, n := XMM(), XMM()
	VMOVSS(num(1), one)
	VPXOR(n, n, n)
	VCVTSI2SSQ(k.cols, n, n)
	VDIVSS(n, one, one)
	return one
}

// moments stores mean and 1/deviation of a row of Src. The row is read twice, the
// second time from the nearest cache.
func (k *kernel) moments(row, stat reg.GPVirtual) {
	share := k.perColumn()
	sums := k.regs(k.wide)
	total := func(term func(v vec, rest bool)) vec {
		for _, s := range sums {
			VBROADCASTSS(bits(0), s)
		}
		k.columns(func(n int, rest bool) {
			for i, v := range k.read("Src", row, n, rest) {
				term(v, rest)
				VADDPS(v, sums[i], sums[i])
			}
		})
		for _, s := range sums[1:] {
			VADDPS(s, sums[0], sums[0])
		}
		t := k.sum(sums[0])
		VMULSS(share, t, t)
		return t
	}
	mean := total(func(vec, bool) {})
	VMOVSS(mean, Mem{Base: stat})
	center := k.spread(mean)
	variance := total(func(v vec, rest bool) {
		VSUBPS(center, v, v)
		if rest {
			k.keep(k.tail(), v)
		}
		VMULPS(v, v, v)
	})
	VADDSS(k.field("Eps"), variance, variance)
	VSQRTSS(variance, variance, variance)
	one := XMM()
	VMOVSS(num(1), one)
	VDIVSS(variance, one, one)
	VMOVSS(one, Mem{Base: stat, Disp: 4})
}

func layerGradKernel(s set) {
	k := begin(s, "layerGrad", "LayerGrad")
	k.prepareTail()
	dx, dy, x := k.load("Dx.Data"), k.load("Dy.Data"), k.load("X.Data")
	stat, gamma, dgamma := k.load("Stat"), k.load("Gamma"), k.load("DGamma")
	share := k.perColumn()
	s0, s1 := k.reg(), k.reg()
	k.rows(map[string]reg.GPVirtual{"Dx": dx, "Dy": dy, "X": x}, func() {
		VBROADCASTSS(bits(0), s0)
		VBROADCASTSS(bits(0), s1)
		mean, rdev := k.all(Mem{Base: stat}), k.all(Mem{Base: stat, Disp: 4})
		// hat reads dy·gamma and xhat of column j; sums adds them up on the way.
		hat := func(n int, rest bool, sums func(i int, g, v vec)) (g, v []vec) {
			g, v = k.read("Dy", dy, n, rest), k.read("X", x, n, rest)
			for i := range n {
				VSUBPS(mean, v[i], v[i])
				VMULPS(rdev, v[i], v[i])
				sums(i, g[i], v[i])
				VMULPS(k.param(gamma, i, rest), g[i], g[i])
			}
			return g, v
		}
		k.columnsBy(2, func(n int, rest bool) {
			g, v := hat(n, rest, func(i int, g, v vec) {
				t := k.reg()
				VMOVUPS(k.cell(dgamma, 4, i), t)
				VFMADD231PS(g, v, t)
				VMOVUPS(t, k.cell(dgamma, 4, i))
				dbeta := k.load("DBeta")
				VADDPS(k.cell(dbeta, 4, i), g, t)
				VMOVUPS(t, k.cell(dbeta, 4, i))
			})
			for i := range n {
				VADDPS(g[i], s0, s0)
				VFMADD231PS(g[i], v[i], s1)
			}
		})
		m0, m1 := k.sum(s0), k.sum(s1)
		VMULSS(share, m0, m0)
		VMULSS(share, m1, m1)
		all0, all1 := k.spread(m0), k.spread(m1)
		k.columnsBy(2, func(n int, rest bool) {
			g, v := hat(n, rest, func(int, vec, vec) {})
			for i := range n {
				VSUBPS(all0, g[i], g[i])
				VFNMADD231PS(all1, v[i], g[i])
				VMULPS(rdev, g[i], g[i])
			}
			k.write("Dx", dx, g, rest)
		})
		ADDQ(k.field("StatStride"), stat)
	})
	k.end()
}
