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

// halfSums takes bfloat16 rows sixteen at a time. Their squares are exact in float32
// and a sum of sixteen loses less than their storage did, so only the sums are
// widened. It works on sixteen columns, for which there is room.
func (d *doubles) halfSums(x, dy, left reg.GPVirtual) {
	const group = 16
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
		k.columnsBy(2, func(n int, rest bool) {
			s0, s1 := k.zeros(n), k.zeros(n)
			plain, done := label("plain"), label("summed")
			mean := k.load("Mean")
			TESTQ(mean, mean)
			JZ(LabelRef(plain))
			var center, scale []vec
			for i := range n {
				center, scale = append(center, k.narrowed(mean, i)), append(scale, k.narrowed(k.load("Rdev"), i))
			}
			k.halfRows([]string{"Dy", "X"}, []reg.GPVirtual{dy, x}, group, n, rest, func(v [][]vec) {
				for i := range n {
					a, b := v[0][i], v[1][i]
					VSUBPS(center[i], b, b)
					VMULPS(scale[i], b, b)
					VADDPS(a, s0[i], s0[i])
					VFMADD231PS(a, b, s1[i])
				}
			})
			JMP(LabelRef(done))
			Label(plain)
			k.halfRows([]string{"X"}, []reg.GPVirtual{x}, group, n, rest, func(v [][]vec) {
				for i, a := range v[0] {
					VADDPS(a, s0[i], s0[i])
					VFMADD231PS(a, a, s1[i])
				}
			})
			Label(done)
			for i := range n {
				k.addWidened(s0[i], k.load("First"), i)
				k.addWidened(s1[i], k.load("Other"), i)
			}
		})
	})
	Label(skip)
}

// halfRows runs body on n vectors from column j on of each of a group of bfloat16 rows,
// and asks for the group that follows, in the order of memory and a line a row: all at once they
// would wait for each other.
func (k *kernel) halfRows(blocks []string, rows []reg.GPVirtual, group, n int, rest bool, body func(v [][]vec)) {
	at, far := make([]reg.GPVirtual, len(rows)), make([]reg.GPVirtual, len(rows))
	for b, p := range rows {
		at[b], far[b] = GP64(), GP64()
		MOVQ(p, at[b])
		MOVQ(k.j, far[b])
		ADDQ(far[b], far[b])
		ADDQ(k.field(blocks[b]+".Stride"), far[b])
		IMUL3Q(Imm(uint64(group)), far[b], far[b])
		ADDQ(p, far[b])
	}
	pairs, again := GP64(), label("pair")
	MOVQ(U32(group/2), pairs)
	Label(again)
	for row := range 2 {
		var v [][]vec
		for b := range rows {
			r := k.regs(n)
			k.widen(at[b], r, rest)
			ADDQ(k.field(blocks[b]+".Stride"), at[b])
			v = append(v, r)
			if line := row * n * k.lanes * 2; line%64 == 0 {
				PREFETCHT0(Mem{Base: far[b], Disp: line})
			}
		}
		body(v)
	}
	for b := range far {
		ADDQ(Imm(uint64(2*n*k.lanes*2)), far[b])
	}
	DECQ(pairs)
	JNZ(LabelRef(again))
}

// narrowed is sixteen float64, the i-th such from column j on, as float32.
func (k *kernel) narrowed(p reg.GPVirtual, i int) vec {
	low, high, v := YMM(), YMM(), ZMM()
	VCVTPD2PS(k.cell(p, 8, i), low)
	VCVTPD2PS(k.cell(p, 8, i).Offset(64), high)
	VINSERTF64X4(Imm(1), high, low.AsZ(), v)
	return v
}

// addWidened adds sixteen float32 to the float64 sums, the i-th such from column j on.
func (k *kernel) addWidened(v vec, to reg.GPVirtual, i int) {
	for h := range 2 {
		w, m := ZMM(), k.cell(to, 8, i).Offset(64*h)
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
