package cuda

import "starling/tensor"

// attentionArgs is AttentionArgs of kernels/attention.cu.
type attentionArgs struct {
	rows                                           rowArgs
	dst, z, left, right, stat, delta, ddst, dscore mat
	heads, width                                   int64
	slope                                          float64
	drop                                           drop
	srcIDs, perm                                   uintptr
	edge, dedge, alpha                             mat
	partScore                                      uintptr
}

func attentionOf(z Matrix, op Attention) attentionArgs {
	return attentionArgs{z: of(z), heads: int64(op.Heads), width: int64(z.Cols / op.Heads), slope: op.Slope,
		drop: dropOf(op.Dropout), srcIDs: atIndex(op.SrcIDs), edge: of(op.Edge)}
}

func (d *Device) Attend(dst, stat Matrix, adj *Sparse, z, left, right Matrix, op Attention) {
	tensor.NeedShape("Attend: dst", dst, adj.Rows, z.Cols, F32, BF16)
	if adj.Rows == 0 {
		return
	}
	defer d.enter()()
	a := attentionOf(z, op)
	a.left, a.right, a.stat = of(left), of(right), of(stat)
	d.statistics(adj, a)
	d.attend(dst, adj, z, a)
}

// statistics are maximum and sum of every row; with alpha, its scores become coefficients.
func (d *Device) statistics(adj *Sparse, a attentionArgs) {
	var p *plan
	a.rows, p = d.rowsOf(adj)
	launch(d, "attention", "attend_stat", warps(adj.Rows), oneBlock, &a)
	if p != nil {
		a.rows.segs, a.rows.n = at(p.wholes), int64(p.nLong)
		launch(d, "attention", "attend_stat_long", size3{X: p.nLong}, oneBlock, &a)
	}
}

// attend is the sum of rows by their coefficients.
func (d *Device) attend(dst Matrix, adj *Sparse, z Matrix, a attentionArgs) {
	if z.Cols == 0 {
		return
	}
	a.dst = of(dst)
	l := layoutFor(z.Type(), int(a.width), z, dst)
	name := kernelOf("attend", z.Type(), l)
	d.overRows(adj, z.Cols, func(r rowArgs) {
		a.rows = r
		launch(d, "attention", name, l.grid(int(r.n*a.heads), int(a.width)), oneBlock, &a)
	}, d.joinTo(dst, false))
}

func (d *Device) JoinAttend(dst, stat Matrix, adj *Sparse, part, partStat Matrix) {
	tensor.NeedShape("JoinAttend: dst", dst, adj.Rows, part.Cols, F32, BF16)
	if dst.Rows*dst.Cols == 0 {
		return
	}
	defer d.enter()()
	heads := stat.Cols / 2
	a := attentionArgs{dst: of(dst), stat: of(stat), z: of(part), delta: of(partStat), heads: int64(heads),
		width: int64(dst.Cols / heads)}
	a.rows.ptr = at(tensor.PartsOf(adj).Ptr)
	launch(d, "attention", "attend_join", blocks(8*dst.Rows*heads), oneBlock, &a)
}

// deltas are the softmax's backward terms of each row and head.
func (d *Device) deltas(dst, ddst Matrix, a attentionArgs) Matrix {
	delta := d.scratch(F32, dst.Rows, int(a.heads))
	a.dst, a.ddst, a.delta = of(dst), of(ddst), of(delta)
	name := "attend_delta" + headVector(int(a.width), dst, ddst)
	launch(d, "attention", name, blocks(8*dst.Rows*int(a.heads)), oneBlock, &a)
	return delta
}

func (d *Device) AttendGrad(dz, dleft, dright Matrix, adj, adjT *Sparse, z, left, right, stat, dst, ddst Matrix,
	op Attention) {
	tensor.NeedShape("AttendGrad: dz", dz, adjT.Rows, z.Cols, F32, BF16)
	tensor.NeedShape("AttendGrad: ddst", ddst, adj.Rows, z.Cols, z.Type())
	defer d.enter()()
	a := attentionOf(z, op)
	a.left, a.right, a.stat, a.ddst = of(left), of(right), of(stat), of(ddst)
	a.perm, a.dedge = atIndex(tensor.PartsOf(adjT).Perm), of(op.DEdge)
	delta := d.deltas(dst, ddst, a)
	a.delta = of(delta)
	l := layoutFor(z.Type(), int(a.width), z, ddst, dz)
	a.dscore = of(dright)
	d.gradRows(adj, a, l, "attend_grad_target", z.Type(), Matrix{}, dright)
	a.dst, a.dscore = of(dz), of(dleft)
	d.gradRows(adjT, a, l, "attend_grad_source", z.Type(), dz, dleft)
	d.release(delta)
}

// gradRows runs a backward kernel over rows, whose results are a sum of rows (or none) and of scores.
func (d *Device) gradRows(s *Sparse, a attentionArgs, l layout, name string, t DType, sum, score Matrix) {
	if s.Rows == 0 {
		return
	}
	var scores Matrix
	if p := d.planOf(s); p != nil {
		scores = d.scratch(F32, p.n, int(a.heads))
		a.partScore = at(scores)
	}
	d.overRows(s, int(a.heads*a.width), func(r rowArgs) {
		a.rows = r
		launch(d, "attention", kernelOf(name, t, l), l.grid(int(r.n*a.heads), int(a.width)), oneBlock, &a)
	}, func(p *plan, part uintptr) {
		if !sum.IsZero() {
			d.joinTo(sum, false)(p, part)
		}
		d.joinTo(score, false)(p, at(scores))
	})
	d.release(scores)
}

// headVector is the end of a kernel's name: how many numbers of a head it takes at once.
func headVector(width int, ms ...Matrix) string {
	if width%4 == 0 && aligned(4, ms...) {
		return "_4"
	}
	return "_1"
}

// headArgs is HeadArgs of kernels/attention.cu.
type headArgs struct {
	z               mat
	score           [mostDots]mat
	vector          [mostDots]uintptr
	n, heads, width int64
}

// mostDots is how many vectors one kernel takes.
const mostDots = 3

func headsOf(z Matrix, dots []tensor.HeadDot) *headArgs {
	heads := dots[0].Score.Cols
	a := &headArgs{z: of(z), n: int64(len(dots)), heads: int64(heads), width: int64(z.Cols / heads)}
	for i, x := range dots {
		tensor.Need(x.Score.Cols == heads, "HeadDot: %d heads beside %d", x.Score.Cols, heads)
		a.score[i], a.vector[i] = of(x.Score), vector("HeadDot: a vector", x.A, z.Cols)
	}
	return a
}

// byDots calls f with at most as many vectors as a kernel takes.
func byDots(dots []tensor.HeadDot, f func([]tensor.HeadDot)) {
	for len(dots) > 0 {
		n := min(mostDots, len(dots))
		f(dots[:n])
		dots = dots[n:]
	}
}

func (d *Device) HeadDot(z Matrix, dots ...tensor.HeadDot) {
	if z.Rows*z.Cols == 0 {
		return
	}
	defer d.enter()()
	byDots(dots, func(few []tensor.HeadDot) {
		a := headsOf(z, few)
		launch(d, "attention", "head_dot"+headVector(int(a.width), z), blocks(8*z.Rows*int(a.heads)), oneBlock, a)
	})
}

func (d *Device) HeadDotGrad(dz, z Matrix, dots ...tensor.HeadDot) {
	if z.Rows*z.Cols == 0 {
		return
	}
	defer d.enter()()
	if !dz.IsZero() {
		byDots(dots, func(few []tensor.HeadDot) {
			launch(d, "attention", "head_dot_grad", blocks(z.Rows*z.Cols), oneBlock, headsOf(dz, few))
		})
	}
	for _, x := range dots {
		if x.Score.Rows > 0 {
			a := columnArgs{x: of(z.Slice(0, x.Score.Rows)), score: of(x.Score), width: int64(z.Cols / x.Score.Cols)}
			d.columnSums("head_sums", 1, a, true, x.DA)
		}
	}
}
