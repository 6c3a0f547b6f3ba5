package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// perColumn is 1/Cols in the first lane.
func (k *kernel) perColumn() vec {
	one, n := XMM(), XMM()
	VMOVSS(num(1), one)
	VPXOR(n, n, n)
	VCVTSI2SSQ(k.cols, n, n)
	VDIVSS(n, one, one)
	return one
}

// mean stores the mean of a row of Src.
func (k *kernel) mean(row, stat reg.GPVirtual, share vec) {
	m := k.total(row, func(v, sum vec, _ bool) { VADDPS(v, sum, sum) })
	VMULSS(share, m, m)
	VMOVSS(m, Mem{Base: stat})
}

// deviation stores 1/deviation of a row of Src whose mean is stored.
func (k *kernel) deviation(row, stat reg.GPVirtual, share vec) {
	center := k.all(Mem{Base: stat})
	d := k.total(row, func(v, sum vec, rest bool) {
		VSUBPS(center, v, v)
		if rest {
			k.keep(k.tail(), v)
		}
		VFMADD231PS(v, v, sum)
	})
	VMULSS(share, d, d)
	VADDSS(k.field("Eps"), d, d)
	VSQRTSS(d, d, d)
	one := XMM()
	VMOVSS(num(1), one)
	VDIVSS(d, one, one)
	VMOVSS(one, Mem{Base: stat, Disp: 4})
}

// total adds up a term of each number of a row of Src.
func (k *kernel) total(row reg.GPVirtual, term func(v, sum vec, rest bool)) vec {
	sums := k.regs(k.wide)
	for _, s := range sums {
		VBROADCASTSS(bits(0), s)
	}
	k.columns(func(n int, rest bool) {
		for i, v := range k.readAsking("Src", row, nil, n, rest) {
			term(v, sums[i], rest)
		}
	})
	for _, s := range sums[1:] {
		VADDPS(s, sums[0], sums[0])
	}
	return k.sum(sums[0])
}

// layerGradKernel takes two rows at a time where there are registers for that: gamma and the sums of columns
// are then read once for both, and while one row waits for a sum over all lanes there is another.
func layerGradKernel(s set) {
	k := begin(s, "layerGrad", "LayerGrad")
	k.prepareTail()
	g := &layerGrad{kernel: k, dx: k.load("Dx.Data"), dy: k.load("Dy.Data"), x: k.load("X.Data"), stat: k.load("Stat")}
	g.share, k.left = k.perColumn(), k.load("Rows")
	groups := []int{1}
	if s.zmm {
		groups = []int{2, 1}
	}
	for _, n := range groups {
		again, end := label("group"), label("group")
		Label(again)
		CMPQ(k.left, Imm(uint64(n)))
		JLT(LabelRef(end))
		g.group(n)
		SUBQ(Imm(uint64(n)), k.left)
		JMP(LabelRef(again))
		Label(end)
	}
	k.end()
}

// layerGrad is layer norm's gradient at a row.
type layerGrad struct {
	*kernel
	dx, dy, x, stat reg.GPVirtual
	share           vec
}

// layerRow has what is the same in all columns of a row: xhat is (x - mean)·rdev, s0 and s1 are the
// sums of dy·gamma and of that times xhat. That xhat is not x·rdev - mean·rdev, an instruction less, is for
// rows of nearly equal numbers: their rdev is large, and what the two terms are rounded by more than xhat.
type layerRow struct {
	rdev, mean vec
	s0, s1     []vec
}

// group computes the next n rows.
func (g *layerGrad) group(n int) {
	k, rows := g.kernel, make([]layerRow, n)
	for i := range rows {
		rows[i] = g.row()
	}
	dy, x := k.below(n, "Dy", g.dy), k.below(n, "X", g.x)
	k.columnsBy(2, func(n int, rest bool) {
		a, b := make([][]vec, len(rows)), make([][]vec, len(rows))
		for i := range rows {
			a[i], b[i] = k.read("Dy", dy[i], n, rest), k.read("X", x[i], n, rest)
		}
		gamma, dgamma, dbeta := k.load("Gamma"), k.load("DGamma"), k.load("DBeta")
		for c := range n {
			scale, sg, sb := k.param(gamma, c, rest), k.reg(), k.reg()
			VMOVUPS(k.cell(dgamma, 4, c), sg)
			VMOVUPS(k.cell(dbeta, 4, c), sb)
			for i, r := range rows {
				dy, xhat := a[i][c], b[i][c]
				VSUBPS(r.mean, xhat, xhat)
				VMULPS(r.rdev, xhat, xhat)
				VFMADD231PS(dy, xhat, sg)
				VADDPS(dy, sb, sb)
				VMULPS(scale, dy, dy)
				VADDPS(dy, r.s0[c], r.s0[c])
				VFMADD231PS(dy, xhat, r.s1[c])
			}
			VMOVUPS(sg, k.cell(dgamma, 4, c))
			VMOVUPS(sb, k.cell(dbeta, 4, c))
		}
	})
	// dx = dy·gamma·rdev - ((x - mean)·(rdev²·m1) + rdev·m0)
	less, factor := make([]vec, n), make([]vec, n)
	for i, r := range rows {
		less[i], factor[i] = k.rowMean(r.s0, g.share), k.rowMean(r.s1, g.share)
		VMULPS(r.rdev, less[i], less[i])
		VMULPS(r.rdev, factor[i], factor[i])
		VMULPS(r.rdev, factor[i], factor[i])
	}
	dx := k.below(n, "Dx", g.dx)
	k.columnsBy(2, func(n int, rest bool) {
		gamma := k.load("Gamma")
		for i, r := range rows {
			a, b := k.readAsking("Dy", dy[i], nil, n, rest), k.readAsking("X", x[i], nil, n, rest)
			for c := range n {
				VSUBPS(r.mean, b[c], b[c])
				VFMADD213PS(less[i], factor[i], b[c])
				VMULPS(k.param(gamma, c, rest), a[c], a[c])
				VFMSUB213PS(b[c], r.rdev, a[c])
			}
			k.write("Dx", dx[i], a, rest)
		}
	})
	for range n {
		ADDQ(k.field("Dx.Stride"), g.dx)
		ADDQ(k.field("Dy.Stride"), g.dy)
		ADDQ(k.field("X.Stride"), g.x)
	}
}

// row reads what a row needs and goes on to the next one's.
func (g *layerGrad) row() layerRow {
	k := g.kernel
	r := layerRow{rdev: k.all(Mem{Base: g.stat, Disp: 4}), mean: k.all(Mem{Base: g.stat}), s0: k.zeros(2), s1: k.zeros(2)}
	ADDQ(k.field("StatStride"), g.stat)
	return r
}

// below is a row of a block and those that follow it, n in all.
func (k *kernel) below(n int, block string, first reg.GPVirtual) []reg.GPVirtual {
	rows := []reg.GPVirtual{first}
	for i := 1; i < n; i++ {
		p := GP64()
		MOVQ(rows[i-1], p)
		ADDQ(k.field(block+".Stride"), p)
		rows = append(rows, p)
	}
	return rows
}

// rowMean is the mean of a row, in all lanes, from two vectors of sums and 1/Cols.
func (k *kernel) rowMean(sums []vec, share vec) vec {
	VADDPS(sums[1], sums[0], sums[0])
	m := k.sum(sums[0])
	VMULSS(share, m, m)
	return k.spread(m)
}
