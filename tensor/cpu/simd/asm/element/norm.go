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
	d.bySize(block, func(size int) { d.prefetch(p, size, n) })
	return d.readOnly(block, p, n, rest)
}

// readOnly is read without asking for what follows.
func (d *doubles) readOnly(block string, p reg.GPVirtual, n int, rest bool) []vec {
	v := d.regs(n)
	d.either(block, func() {
		for i := range v {
			d.full(p, i, v[i], rest)
		}
	}, func() {
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
		d.copyFP16(p, true)
		VPMOVZXWD(d.room, narrow)
	}
	VPSLLD(Imm(16), narrow, narrow)
	VCVTPS2PD(narrow, v)
}

// columnSumsKernel takes several rows at a time, so that the sums are loaded and stored once for all of them.
func columnSumsKernel(s set) {
	d := begin(s, "columnSums", "ColumnSums").doubles()
	x, dy := d.load("X.Data"), d.load("Dy.Data")
	d.left = d.load("Rows")
	d.rowGroups(8, x, dy, func(g rowGroup) {
		d.columns(func(n int, rest bool) { d.sumGroup(x, dy, g, n, rest) })
	})
	d.end()
}

// rowGroup is rows that are added up at a time: at most so many, fewer where there are no more.
type rowGroup struct {
	most  int
	count Mem
}

// rowGroups runs body on all rows.
func (d *doubles) rowGroups(most int, x, dy reg.GPVirtual, body func(g rowGroup)) {
	g, n, again := rowGroup{most, AllocLocal(8)}, GP64(), label("group")
	Label(again)
	MOVQ(U32(uint32(most)), n)
	CMPQ(d.left, n)
	CMOVQLT(d.left, n)
	MOVQ(n, g.count)
	body(g)
	for i, p := range []reg.GPVirtual{x, dy} {
		next := d.load([]string{"X", "Dy"}[i] + ".Stride")
		IMULQ(g.count, next)
		ADDQ(next, p)
	}
	SUBQ(g.count, d.left)
	JNZ(LabelRef(again))
}

// sumGroup adds n vectors from column j on of a group of rows.
func (d *doubles) sumGroup(x, dy reg.GPVirtual, group rowGroup, n int, rest bool) {
	s0, s1 := d.regs(n), d.regs(n)
	first, other := d.load("First"), d.load("Other")
	for i := range n {
		VMOVUPD(d.cell(first, 8, i), s0[i])
		VMOVUPD(d.cell(other, 8, i), s1[i])
	}
	read := func(block string, row reg.GPVirtual) []vec { return d.readOnly(block, row, n, rest) }
	plain, done := label("plain"), label("summed")
	mean := d.load("Mean")
	TESTQ(mean, mean)
	JZ(LabelRef(plain))
	center, rdev := d.regs(n), d.regs(n)
	for i := range n {
		VMOVUPD(d.cell(mean, 8, i), center[i])
		VMOVUPD(d.cell(d.load("Rdev"), 8, i), rdev[i])
	}
	d.eachRow([]string{"Dy", "X"}, []reg.GPVirtual{dy, x}, group, n, read, func(v [][]vec) {
		for i, a := range v[0] {
			b := v[1][i]
			VSUBPD(center[i], b, b)
			VMULPD(rdev[i], b, b)
			VADDPD(a, s0[i], s0[i])
			VFMADD231PD(a, b, s1[i])
		}
	})
	JMP(LabelRef(done))
	Label(plain)
	d.eachRow([]string{"X"}, []reg.GPVirtual{x}, group, n, read, func(v [][]vec) {
		for i, a := range v[0] {
			VADDPD(a, s0[i], s0[i])
			VFMADD231PD(a, a, s1[i])
		}
	})
	Label(done)
	first, other = d.load("First"), d.load("Other")
	for i := range n {
		VMOVUPD(s0[i], d.cell(first, 8, i))
		VMOVUPD(s1[i], d.cell(other, 8, i))
	}
}

// eachRow runs body on what read makes of n vectors from column j on of each of a group of
// rows. Meanwhile it prefetches
// as many lines of the next group.
func (k *kernel) eachRow(blocks []string, rows []reg.GPVirtual, group rowGroup, n int,
	read func(block string, row reg.GPVirtual) []vec, body func(v [][]vec)) {
	at, pos := make([]reg.GPVirtual, len(rows)), make([]reg.GPVirtual, len(rows))
	for b, p := range rows {
		at[b], pos[b] = GP64(), GP64()
		MOVQ(p, at[b])
		k.bySize(blocks[b], func(size int) { IMUL3Q(U32(uint32(group.most*size)), k.j, pos[b]) })
		ADDQ(p, pos[b])
		next := k.load(blocks[b] + ".Stride")
		IMUL3Q(U32(uint32(group.most)), next, next)
		ADDQ(next, pos[b])
	}
	left, again, end := GP64(), label("row"), label("rows")
	MOVQ(group.count, left)
	Label(again)
	for row := range 2 { // so little work that asking for each row and a loop's end take a tenth of its time and more
		var v [][]vec
		for b := range rows {
			v = append(v, read(blocks[b], at[b]))
			ADDQ(k.field(blocks[b]+".Stride"), at[b])
			if row == 0 {
				k.bySize(blocks[b], func(size int) { k.askRows(pos[b], 2*n*k.lanes*size) })
			}
		}
		body(v)
		DECQ(left)
		JZ(LabelRef(end))
	}
	JMP(LabelRef(again))
	Label(end)
}

// askRows prefetches as many bytes as are read of two rows.
func (k *kernel) askRows(p reg.GPVirtual, bytes int) {
	for line := range max(1, bytes/64) {
		PREFETCHT0(Mem{Base: p, Disp: 64 * line})
	}
	ADDQ(U32(uint32(bytes)), p)
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
