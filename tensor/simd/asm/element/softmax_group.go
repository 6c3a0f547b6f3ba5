package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// softmaxGroup is a few rows of up to three vectors, which stay in registers from their maxima to their
// gradients: four lines of a row each, or of two rows if these are at most half a vector. What is one
// number a row (its maximum, its sum) is one vector a group, so that the work of a row by itself, most of it in
// narrow rows, is done once for four or eight. Where the list ends its last row is computed again, to
// the same numbers. AVX-512 only: AVX2 has too few registers.
type softmaxGroup struct {
	*kernel
	n, per       int           // vectors a line, rows a line
	at, end, far reg.GPVirtual // places in the list: of the first row, of the list's last; how far ahead to ask
	x            [][]vec       // the lines
	numbers      Mem           // of the rows
	labels       Mem           // of the rows, -1 where there are none
	mine         []vec         // the labels' numbers, four rows each
	// Of the last vector of a line, for each row: its lanes, and the upper words of these.
	part, upper []reg.OpmaskVirtual
	pair        reg.OpmaskVirtual // the words of the last two vectors
}

func (g *softmaxGroup) rows() int { return 4 * g.per }

// softmaxGroups computes the rows of the list in groups.
func (k *kernel) softmaxGroups(n, per int) {
	g := &softmaxGroup{kernel: k, n: n, per: per, at: GP64(), end: k.load("Rows"), far: k.rowsAhead()}
	g.numbers, g.labels = k.room.Offset(16), k.room.Offset(48)
	for range 4 {
		g.x = append(g.x, k.regs(n))
	}
	g.prepareMasks()
	none := GP64()
	MOVQ(I32(-1), none)
	for r := range g.rows() {
		MOVL(none.As32(), g.labels.Offset(4*r))
	}
	XORQ(g.at, g.at)
	DECQ(g.end)
	start := label("group")
	Label(start)
	g.compute()
	ADDQ(Imm(uint64(g.rows())), g.at)
	CMPQ(g.at, g.end)
	JLE(LabelRef(start))
}

func (g *softmaxGroup) prepareMasks() {
	left, twice := GP64(), GP64()
	MOVQ(g.cols, left)
	SUBQ(Imm(uint64((g.n-1)*g.lanes)), left)
	LEAQ(Mem{Base: left, Index: left, Scale: 1}, twice)
	mask := func(of uint32, count reg.GPVirtual, shift uint64) reg.OpmaskVirtual {
		ones, m := GP64(), K()
		MOVQ(U32(of), ones)
		BZHIQ(count, ones, ones)
		SHLQ(Imm(shift), ones)
		KMOVD(ones.As32(), m)
		return m
	}
	for i := range uint64(g.per) {
		g.part = append(g.part, mask(0xffff, left, 8*i))
		g.upper = append(g.upper, mask(0xaaaaaaaa, twice, 16*i))
	}
	ADDQ(Imm(16), left)
	g.pair = mask(0xffffffff, left, 0)
}

// find puts the number of the row at a place of the list into i, the last one's if the list ends before.
func (g *softmaxGroup) find(i reg.GPVirtual) {
	listed, have := g.load("List"), label("have")
	CMPQ(i, g.end)
	CMOVQGT(g.end, i)
	TESTQ(listed, listed)
	JZ(LabelRef(have))
	MOVL(Mem{Base: listed, Index: i, Scale: 4}, i.As32())
	Label(have)
}

// ask asks for rows of so many bytes in all further on in the list, as if they followed each other.
func (g *softmaxGroup) ask(bytes int) {
	i := GP64()
	LEAQ(Mem{Base: g.at, Index: g.far, Scale: 1}, i)
	g.find(i)
	p := g.place("X", i)
	for at := 0; at < bytes; at += 64 {
		PREFETCHT0(Mem{Base: p, Disp: at})
	}
}

// place is where row i of a block begins.
func (g *softmaxGroup) place(block string, i reg.GPVirtual) reg.GPVirtual {
	p := GP64()
	MOVQ(i, p)
	IMULQ(g.field(block+".Stride"), p)
	ADDQ(g.field(block+".Data"), p)
	return p
}

func (g *softmaxGroup) compute() {
	k := g.kernel
	for i := range g.per {
		g.mine = append(g.mine[:i], XMM())
		VBROADCASTSS(bits(0), g.mine[i])
	}
	k.either("X", func() { g.loadRows(4) }, func() { g.loadRows(2) })
	top := g.across(func(a, b, dst Op) { VMAXPS(a, b, dst) })
	g.lessTop(top)
	k.byType("X", g.exps)
	total := g.across(func(a, b, dst Op) { VADDPS(a, b, dst) })
	g.store(top, total)
	k.ifPointer("Dst.Data", func(reg.GPVirtual) {
		factor := k.reg()
		VBROADCASTSS(k.field("Scale"), factor.AsY())
		VDIVPS(total.AsY(), factor.AsY(), factor.AsY())
		g.gradients(total, factor)
		k.either("Dst", g.storeFloats, g.storeHalves)
	})
}

// loadRows loads the rows, -Inf where there is no column, and the labels' numbers; it asks for rows further on.
func (g *softmaxGroup) loadRows(size int) {
	k, floor, words := g.kernel, g.all(bits(0xff800000)), g.regs(2)
	if size == 2 {
		VMOVDQU32(toUpper, words[0])
		VMOVDQU32(toUpper.Offset(64), words[1])
	}
	g.ask(4 * g.n * k.lanes * size)
	for r := range g.rows() {
		line, part, i, class := g.x[r/g.per], r%g.per, GP64(), GP64()
		LEAQ(Mem{Base: g.at, Disp: r}, i)
		g.find(i)
		MOVL(i.As32(), g.numbers.Offset(4*r))
		p := g.place("X", i)
		if part == 0 {
			VMOVAPS(floor, line[g.n-1])
		}
		if size == 4 {
			g.loadFloats(p, line, part)
		} else {
			g.loadHalves(p, line, part, words)
		}
		k.ifPointer("Labels", func(labels reg.GPVirtual) {
			MOVL(Mem{Base: labels, Index: i, Scale: 4}, class.As32())
			MOVL(class.As32(), g.labels.Offset(4*r))
			mine, at, lane := g.mine[r/4], Mem{Base: p, Index: class, Scale: uint8(size)}, uint64(r%4)
			if size == 4 {
				VPINSRD(Imm(lane), at, mine, mine)
			} else {
				VPINSRW(Imm(2*lane+1), at, mine, mine)
			}
		})
	}
}

// The second row of a line is loaded and stored from half a vector before its place: lanes without a mask are
// not touched.

func (g *softmaxGroup) loadFloats(p reg.GPVirtual, line []vec, part int) {
	for c := range g.n - 1 {
		VMOVUPS(Mem{Base: p, Disp: 64 * c}, line[c])
	}
	VMOVUPS(Mem{Base: p, Disp: 64*(g.n-1) - 32*part}, g.part[part], line[g.n-1])
}

func (g *softmaxGroup) loadHalves(p reg.GPVirtual, line []vec, part int, words []vec) {
	last, t := g.n-1, g.reg()
	for c := 0; c+1 < last; c += 2 {
		VPERMW_Z(Mem{Base: p, Disp: 32 * c}, words[0], g.kernel.upper, line[c])
		VPERMW_Z(Mem{Base: p, Disp: 32 * c}, words[1], g.kernel.upper, line[c+1])
	}
	if g.n%2 == 0 {
		VMOVDQU16_Z(Mem{Base: p, Disp: 32 * (last - 1)}, g.pair, t)
		VPERMW_Z(t, words[0], g.kernel.upper, line[last-1])
		VPERMW(t, words[1], g.upper[0], line[last])
		return
	}
	VMOVDQU16_Z(Mem{Base: p, Disp: 32*last - 16*part}, g.part[part], t.AsY())
	VPERMW(t, words[0], g.upper[part], line[last])
}

// across folds each row to one number, in the order of rows, by the same steps as fold.
func (g *softmaxGroup) across(op func(a, b, dst Op)) vec {
	k, m := g.kernel, make([]vec, len(g.x))
	for q, line := range g.x {
		m[q] = line[0]
		for c := 1; c < g.n; c++ {
			more := k.reg()
			op(line[c], m[q], more)
			m[q] = more
		}
	}
	join := func(shuffle func(ops ...Op), low, high uint64, a, b vec) vec {
		l, h := k.reg(), k.reg()
		shuffle(Imm(low), b, a, l)
		shuffle(Imm(high), b, a, h)
		op(h, l, l)
		return l
	}
	swap := func(v vec, order uint64) {
		t := k.reg()
		VPERMILPS(Imm(order), v, t)
		op(t, v, v)
	}
	var all vec
	if g.per == 1 {
		low, high := join(VSHUFF32X4, 0x44, 0xee, m[0], m[1]), join(VSHUFF32X4, 0x44, 0xee, m[2], m[3])
		all = join(VSHUFF32X4, 0x88, 0xdd, low, high)
		swap(all, 0x4e)
	} else {
		low, high := join(VSHUFF32X4, 0x88, 0xdd, m[0], m[1]), join(VSHUFF32X4, 0x88, 0xdd, m[2], m[3])
		all = join(VSHUFPS, 0x44, 0xee, low, high)
	}
	swap(all, 0xb1)
	order := k.reg()
	VMOVDQU32(groupTables[g.per].order, order)
	VPERMPS(all, order, all)
	return all
}

// spreadRows puts the numbers of a line's rows into their lanes.
func (g *softmaxGroup) spreadRows(v vec, line int) vec {
	w := g.reg()
	VMOVDQU32(groupTables[g.per].spread.Offset(64*line), w)
	VPERMPS(v, w, w)
	return w
}

// lessTop subtracts their maxima from the rows, and counts rows whose first largest number is the label's.
func (g *softmaxGroup) lessTop(top vec) {
	k, right := g.kernel, GP64()
	XORQ(right, right)
	for q := len(g.x) - 1; q >= 0; q-- {
		all := g.spreadRows(top, q)
		k.ifPointer("Labels", func(reg.GPVirtual) {
			hits := g.hits(q, all)
			for part := g.per - 1; part >= 0; part-- {
				first, is := GP64(), GP64()
				MOVQ(hits, first)
				SHRQ(Imm(uint64(8*part)), first)
				TZCNTQ(first, first) // another row's bits are no label
				XORQ(is, is)
				CMPL(first.As32(), g.labels.Offset(4*(q*g.per+part)))
				SETEQ(is.As8())
				LEAQ(Mem{Base: is, Index: right, Scale: 2}, right)
			}
		})
		for _, x := range g.x[q] {
			VSUBPS(all, x, x)
		}
	}
	ANDQ(g.valid(), right)
	POPCNTQ(right, right)
	ADDQ(right, k.field("Correct"))
}

// hits are the columns of a line that are as large as the largest.
func (g *softmaxGroup) hits(q int, all vec) reg.GPVirtual {
	hits := GP64()
	for c, x := range g.x[q] {
		more := GP64()
		KMOVW(g.compare(equal, x, all).k, more.As32())
		if c == 0 {
			MOVQ(more, hits)
			continue
		}
		SHLQ(Imm(uint64(c*g.lanes)), more)
		ORQ(more, hits)
	}
	return hits
}

// valid has a bit for each row that is not behind the list's end.
func (g *softmaxGroup) valid() reg.GPVirtual {
	count, most := GP64(), GP64()
	MOVQ(g.end, count)
	SUBQ(g.at, count)
	INCQ(count)
	MOVQ(U32(g.rows()), most)
	CMPQ(count, most)
	CMOVQGT(most, count)
	MOVQ(U32(0xff), most)
	BZHIQ(count, most, most)
	return most
}

// exps replaces the numbers by their exponentials, a few vectors at a time.
func (g *softmaxGroup) exps(c series) {
	var all []vec
	for _, line := range g.x {
		all = append(all, line...)
	}
	few := []int{0, 4, 4, 3}[g.n]
	for ; len(all) > 0; all = all[few:] {
		for i, e := range g.exp(all[:few], c) {
			if e != all[i] {
				VMOVAPS(e, all[i])
			}
		}
	}
}

// store stores the rows' sums and gaps.
func (g *softmaxGroup) store(top, total vec) {
	k, real := g.kernel, K()
	KMOVW(g.valid().As32(), real)
	VMOVUPS(total.AsY(), real, Mem{Base: k.load("Sum"), Index: g.at, Scale: 4})
	k.ifPointer("Labels", func(reg.GPVirtual) {
		mine := g.mine[0].AsY()
		if g.per == 2 {
			VINSERTI32X4(Imm(1), g.mine[1], mine, mine)
		}
		VSUBPS(mine, top.AsY(), mine)
		VMOVUPS(mine, real, Mem{Base: k.load("Gap"), Index: g.at, Scale: 4})
	})
}

// gradients makes them of the exponentials.
func (g *softmaxGroup) gradients(total, factor vec) {
	k := g.kernel
	for q, line := range g.x {
		whole, times, wanted := g.spreadRows(total, q), g.spreadRows(factor, q), k.reg()
		VPBROADCASTD(g.labels.Offset(4*q*g.per), wanted)
		if g.per == 2 {
			VPBROADCASTD(g.labels.Offset(4*(2*q+1)), g.part[1], wanted)
		}
		for c, e := range line {
			m := K()
			VPCMPEQD(groupTables[g.per].columns.Offset(c*64), wanted, m)
			VSUBPS(whole, e, m, e)
			VMULPS(times, e, e)
		}
	}
}

// target is where the group's row r goes.
func (g *softmaxGroup) target(r int) reg.GPVirtual {
	i := GP64()
	MOVL(g.numbers.Offset(4*r), i.As32())
	return g.place("Dst", i)
}

func (g *softmaxGroup) storeFloats() {
	for r := range g.rows() {
		line, part, p := g.x[r/g.per], r%g.per, g.target(r)
		for c := range g.n - 1 {
			VMOVUPS(line[c], Mem{Base: p, Disp: 64 * c})
		}
		VMOVUPS(line[g.n-1], g.part[part], Mem{Base: p, Disp: 64*(g.n-1) - 32*part})
	}
}

// storeHalves rounds and stores, two vectors at once: of an odd number, the last ones of two lines.
func (g *softmaxGroup) storeHalves() {
	var ends []reg.Register
	if g.n%2 == 1 {
		ends = g.roundEnds()
	}
	for r := range g.rows() {
		line, part, p := g.x[r/g.per], r%g.per, g.target(r)
		for c, h := range g.roundPairs(line[:g.n&^1]) {
			if to := (Mem{Base: p, Disp: 64 * c}); 2*c+2 == g.n {
				VMOVDQU16(h, g.pair, to)
			} else {
				VMOVDQU16(h, to)
			}
		}
		if ends != nil {
			VMOVDQU16(ends[r/g.per], g.part[part], Mem{Base: p, Disp: 32*(g.n-1) - 16*part})
		}
	}
}

func (g *softmaxGroup) roundEnds() (ends []reg.Register) {
	var last []vec
	for _, line := range g.x {
		last = append(last, line[g.n-1])
	}
	for _, h := range g.roundPairs(last) {
		high := YMM()
		VEXTRACTI64X4(Imm(1), h, high)
		ends = append(ends, h.AsY(), high)
	}
	return ends
}

// groupTables are, for one and two rows a line: where the rows' numbers are after across, to which
// lanes of four lines they go, and the columns of lanes.
var groupTables [3]struct{ order, spread, columns Mem }

func makeGroupTables() {
	table := func(name string, n int, number func(i int) int) Mem {
		m := GLOBL("element"+name, 16|8)
		for i := range n {
			DATA(i*4, U32(number(i)))
		}
		return m
	}
	one, two := &groupTables[1], &groupTables[2]
	one.order = table("Order", 16, func(i int) int { return i % 4 * 4 })
	two.order = table("Order2", 16, func(i int) int { return i%4*4 + i%8/4*2 })
	one.spread = table("Spread", 64, func(i int) int { return i / 16 })
	two.spread = table("Spread2", 64, func(i int) int { return i / 8 })
	one.columns = table("Numbers", 48, func(i int) int { return i })
	two.columns = table("Numbers2", 16, func(i int) int { return i % 8 })
}
