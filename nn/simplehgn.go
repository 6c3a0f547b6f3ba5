package nn

import "starling/tensor"

// RelationWidth is how wide the learnt row of a relation is, as the authors have it.
const RelationWidth = 64

// simpleHGN is the layer of Simple-HGN (Lv et al., "Are we really making much progress?", KDD 2021, eqs. 8, 11 and 14),
// graph attention that knows an edge's relation r by a learnt row, for H heads of width C:
//
//	z = x·W;   e_ij = leaky(a_src·z_j + a_dst·z_i + a_rel·(h_r·E));   α = softmax over all j and r that lead to i of e_ij
//	y_i = act( Σj drop(α_ij)·z_j + x_i )        x_i·R where widths differ
//
// x [n, in], W [in, H·C], a_src and a_dst [H, C], h_r [1, k], E [k, H·k], a_rel [H, k], R [in, H·C], y [n, H·C]. All
// types share the weights. The paper's residual of coefficients (eq. 12) is left out, β = 0: it adds those of the
// same edge in the layer before, where a mini-batch may have drawn another.
type simpleHGN struct {
	output
	untransformed
	joinedAttention
	need []bool // by type; other rows are not computed

	w, src, dst            *Param
	row, rowWeight, rowAtt *Param // of relations
	residual               *Param // or nil
}

// newSimpleHGN has rows of relations of width k.
func newSimpleHGN(b *builder, c *TypedConfig, in, out, heads, k int, attDrop float64, o output,
	need []bool) *simpleHGN {
	l := &simpleHGN{output: o, untransformed: untransformed{in: in}, need: need,
		joinedAttention: joinedAttention{heads: heads, slope: 0.05, attDrop: attDrop}}
	wide := out / heads
	l.w = b.weight("lin.weight", in, out, glorot(in, out))
	l.src = b.add("att_src", []int{1, heads, wide}, false, 1, out, glorot(heads, wide))
	l.dst = b.add("att_dst", []int{1, heads, wide}, false, 1, out, glorot(heads, wide))
	n := len(c.Relations)
	l.row = b.add("edge_emb.weight", []int{n, k}, false, n, k, glorot(n, k))
	l.rowWeight = b.weight("lin_edge.weight", k, heads*k, glorot(k, heads*k))
	l.rowAtt = b.add("att_edge", []int{1, heads, k}, false, 1, heads*k, glorot(heads, k))
	if in != out {
		l.residual = b.weight("lin_res.weight", in, out, glorot(in, out))
	}
	return l
}

func (l *simpleHGN) out() int { return l.w.Value.Cols }

func (l *simpleHGN) Forward(p *Pass, x Input) tensor.Matrix { return forward(l, p, x, l.sourceRows(p)) }

func (l *simpleHGN) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, wantDX, l.sent)
}

func (l *simpleHGN) begin(p *Pass, x Input) tensor.Matrix {
	dst := l.take(p, l.layer, x)
	l.joinedAttention.begin(p, dst, l.out())
	l.y = p.Dev.Scratch(p.rowType(), dst, l.out())
	return l.y
}

func (l *simpleHGN) gather(p *Pass) { p.Agg.Edgewise(l) }

// relationScores are what relations add to the scores of their edges, [relations, heads], and h·E that they are made of.
func (l *simpleHGN) relationScores() (score, rows tensor.Matrix) {
	dev, n := l.p.Dev, l.row.Value.Rows
	rows, score = dev.Scratch(dev.Type(), n, l.rowWeight.Value.Cols), dev.Scratch(dev.Type(), n, l.heads)
	dev.MatMul(rows, l.row.Value, l.rowWeight.Value, tensor.MatMul{})
	dev.HeadDot(rows, tensor.HeadDot{Score: score, A: l.rowAtt.Value})
	return score, rows
}

// scores makes z and the scores of all rows; those as targets are of the first n.
func (l *simpleHGN) scores(n int) (s related) {
	dev := l.p.Dev
	s.z = dev.Scratch(l.p.rowType(), l.msg.Rows, l.out())
	s.left, s.right = dev.Scratch(dev.Type(), l.msg.Rows, l.heads), dev.Scratch(dev.Type(), n, l.heads)
	dev.MatMul(s.z, l.msg, l.w.Value, tensor.MatMul{})
	dev.HeadDot(s.z, tensor.HeadDot{Score: s.left, A: l.src.Value}, tensor.HeadDot{Score: s.right, A: l.dst.Value})
	return s
}

// rightOf are the scores of rows as targets of a relation's edges.
func (l *simpleHGN) rightOf(s *related, relation tensor.Matrix, r, lo, hi int) tensor.Matrix {
	right := l.p.Dev.Scratch(l.p.Dev.Type(), hi-lo, l.heads)
	l.p.Dev.Activate(right, s.right.Slice(lo, hi), tensor.Epilogue{Bias: relation.Slice(r, r+1)})
	return right
}

func (l *simpleHGN) EdgeForward(e *Edges, lo, hi int) {
	l.clear(l.p, lo, hi)
	s := l.scores(hi)
	relation, rows := l.relationScores()
	for r := range l.row.Value.Rows {
		rel := e.Related.Relation(r)
		from, to, ok := rel.targets(l.need, lo, hi)
		if !ok {
			continue
		}
		right := l.rightOf(&s, relation, r, from, to)
		l.join(l.p, rel, from, to, s.z.Slice(rel.From.Lo, rel.From.Hi), s.left.Slice(rel.From.Lo, rel.From.Hi), right,
			l.of(l.p, l.layer, e, rel, r, from, to))
		freeAll(l.p, &right)
	}
	freeAll(l.p, &relation, &rows)
	s.free(l.p)
}

func (l *simpleHGN) finish(p *Pass, lo, hi int) {
	eachType(p, lo, hi, func(t, lo, hi int) {
		y, after := l.y.Slice(lo, hi), l.after(p, lo, hi)
		switch {
		case !l.need[t]:
			p.Dev.Zero(y)
		case l.residual != nil:
			p.Dev.Copy(y, l.att.Slice(lo, hi))
			p.Dev.MatMul(y, l.x.Slice(lo, hi), l.residual.Value, tensor.MatMul{Add: true, Epilogue: after})
		default:
			p.Dev.Combine(y, 1, l.att.Slice(lo, hi), 1, l.x.Slice(lo, hi))
			p.Dev.Activate(y, y, after)
		}
	})
}

func (l *simpleHGN) end(p *Pass) {
	if !p.Train {
		l.freePass(p)
	}
}

func (l *simpleHGN) freePass(p *Pass) {
	l.freeMessages(p)
	l.joinedAttention.free(p)
}

func (l *simpleHGN) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.sent, l.in) }

func (l *simpleHGN) makeSentGrads(p *Pass) { l.dmsg = p.Dev.Scratch(p.rowType(), l.msg.Rows, l.in) }

func (l *simpleHGN) finishGrad(p *Pass, lo, hi int) { l.grad(p, lo, hi) }

func (l *simpleHGN) finishWeightGrad(p *Pass, lo, hi int) {
	l.eachNeeded(lo, hi, func(lo, hi int) {
		if l.residual != nil {
			p.Dev.MatMul(l.residual.Grad, l.x.Slice(lo, hi), l.dy.Slice(lo, hi), tensor.MatMul{TransA: true, Add: true})
		}
	})
}

// eachNeeded calls f with the rows of needed types among lo to hi.
func (l *simpleHGN) eachNeeded(lo, hi int, f func(lo, hi int)) {
	eachType(l.p, lo, hi, func(t, lo, hi int) {
		if l.need[t] {
			f(lo, hi)
		}
	})
}

func (l *simpleHGN) gatherGrad(p *Pass) { p.Agg.EdgewiseGrad(l) }

func (l *simpleHGN) EdgeBackward(e *Edges) {
	dev, n := l.p.Dev, l.dy.Rows
	s := l.scores(n)
	relation, rows := l.relationScores()
	d := related{z: dev.New(l.p.rowType(), s.z.Rows, s.z.Cols), left: dev.New(dev.Type(), s.left.Rows, l.heads),
		right: dev.New(dev.Type(), n, l.heads)}
	drelation := dev.New(dev.Type(), relation.Rows, l.heads)
	for r := range relation.Rows {
		rel := e.Related.Relation(r)
		if !ok(rel.targets(l.need, 0, n)) {
			continue
		}
		right := l.rightOf(&s, relation, r, rel.To.Lo, rel.To.Hi)
		l.relationGrad(e, rel, r, &s, &d, right, drelation.Slice(r, r+1))
		freeAll(l.p, &right)
	}
	dev.HeadDotGrad(d.z, s.z, tensor.HeadDot{Score: d.left, A: l.src.Value, DA: l.src.Grad},
		tensor.HeadDot{Score: d.right, A: l.dst.Value, DA: l.dst.Grad})
	dev.MatMul(l.w.Grad, l.msg, d.z, tensor.MatMul{TransA: true, Add: true})
	dev.MatMul(l.dmsg, d.z, l.w.Value, tensor.MatMul{TransB: true})
	l.relationScoresGrad(rows, drelation)
	freeAll(l.p, &relation, &rows, &drelation)
	s.free(l.p)
	d.free(l.p)
}

// relationGrad goes back through a relation: d is added to, drelation written.
func (l *simpleHGN) relationGrad(e *Edges, rel *RelationEdges, r int, s, d *related, right, drelation tensor.Matrix) {
	dev, to, from := l.p.Dev, rel.To, rel.From
	z, left := s.z.Slice(from.Lo, from.Hi), s.left.Slice(from.Lo, from.Hi)
	part := related{z: dev.Scratch(l.p.rowType(), z.Rows, z.Cols), left: dev.Scratch(dev.Type(), z.Rows, l.heads),
		right: dev.Scratch(dev.Type(), right.Rows, l.heads)}
	dev.AttendGrad(part.z, part.left, part.right, rel.In, rel.Out, z, left, right, l.stat.Slice(to.Lo, to.Hi),
		l.att.Slice(to.Lo, to.Hi), l.dy.Slice(to.Lo, to.Hi), l.of(l.p, l.layer, e, rel, r, to.Lo, to.Hi))
	add := func(dst, src tensor.Matrix) { dev.Combine(dst, 1, dst, 1, src) }
	add(d.z.Slice(from.Lo, from.Hi), part.z)
	add(d.left.Slice(from.Lo, from.Hi), part.left)
	add(d.right.Slice(to.Lo, to.Hi), part.right)
	dev.ColumnSum(drelation, part.right, false)
	part.free(l.p)
}

// relationScoresGrad goes back through relationScores.
func (l *simpleHGN) relationScoresGrad(rows, dscore tensor.Matrix) {
	dev := l.p.Dev
	drows := dev.New(dev.Type(), rows.Rows, rows.Cols)
	dev.HeadDotGrad(drows, rows, tensor.HeadDot{Score: dscore, A: l.rowAtt.Value, DA: l.rowAtt.Grad})
	dev.MatMul(l.rowWeight.Grad, l.row.Value, drows, tensor.MatMul{TransA: true, Add: true})
	dev.MatMul(l.row.Grad, drows, l.rowWeight.Value, tensor.MatMul{TransB: true, Add: true})
	dev.Free(drows)
}

func (l *simpleHGN) rootGrad(*Pass, int, int) {}

func (l *simpleHGN) sendGrad(p *Pass, lo, hi int) {
	dx := l.makeDX(p)
	if dx.IsZero() {
		return
	}
	p.Dev.Copy(dx.Slice(lo, hi), l.dmsg.Slice(lo, hi))
	l.eachNeeded(lo, min(hi, l.dy.Rows), func(lo, hi int) {
		d, dy := dx.Slice(lo, hi), l.dy.Slice(lo, hi)
		if l.residual != nil {
			p.Dev.MatMul(d, dy, l.residual.Value, tensor.MatMul{TransB: true, Add: true})
			return
		}
		p.Dev.Combine(d, 1, d, 1, dy)
	})
}

func (l *simpleHGN) sendWeightGrad(*Pass, int, int) {}

func (l *simpleHGN) endGrad(p *Pass) {
	l.freePass(p)
	l.forget(p)
}
