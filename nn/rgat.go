package nn

import "starling/tensor"

// rgat is graph attention by relation, summed, as PyG's HeteroConv of GATConv(add_self_loops=False), for H heads of
// width C:
//
//	z = x·W_r;   e_ij = leaky(s_r·z_j + d_r·z_i);   α = softmax over j in N_r(i) of e_ij
//	y_i = act( Σr ( Σj drop(α_ij)·z_j + b_r ) )          over the relations r that lead to the type of i
//
// x [n, in], W_r [in, H·C], s_r and d_r [H, C], y [n, H·C]. Relations are gone through one by one: only sums and the
// softmax's sums are kept of each, z is made again backwards. Of a target only its scores d_r·(x_i·W_r) are needed, so W_r
// and d_r are folded first.
type rgat struct {
	output
	untransformed
	types    *TypedConfig
	need     []bool // by type; other rows are not computed
	heads    int
	slope    float64
	attDrop  float64
	weight   []*Param // by relation, as all of these
	src, dst []*Param
	shift    []*Param

	att, stat []tensor.Matrix // by relation, of the rows of its target
}

func newRGAT(b *builder, c *TypedConfig, in, out, heads int, attDrop float64, o output, need []bool) *rgat {
	l := &rgat{output: o, untransformed: untransformed{in: in}, types: c, need: need, heads: heads, slope: 0.2, attDrop: attDrop}
	prefix, wide := b.prefix, out/heads
	shape := []int{1, heads, wide}
	for r := range c.Relations {
		b.prefix = prefix + "convs." + c.key(r) + "."
		l.src = append(l.src, b.add("att_src", shape, false, 1, out, glorot(heads, wide)))
		l.dst = append(l.dst, b.add("att_dst", shape, false, 1, out, glorot(heads, wide)))
		l.shift = append(l.shift, b.vector("bias", out, zeros))
		l.weight = append(l.weight, b.weight("lin.weight", in, out, glorot(in, out)))
	}
	b.prefix = prefix
	return l
}

func (l *rgat) out() int { return l.weight[0].Value.Cols }

func (l *rgat) Forward(p *Pass, x Input) tensor.Matrix { return forward(l, p, x, l.sourceRows(p)) }

func (l *rgat) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, wantDX, l.sent)
}

func (l *rgat) begin(p *Pass, x Input) tensor.Matrix {
	dst := l.take(p, l.layer, x)
	l.att, l.stat = make([]tensor.Matrix, len(l.weight)), make([]tensor.Matrix, len(l.weight))
	l.y = p.Dev.Scratch(p.rowType(), dst, l.out())
	return l.y
}

func (l *rgat) gather(p *Pass) { p.Agg.Edgewise(l) }

// related is what a relation's attention works on: z and the scores of sources, those of targets, and W_r·d_r.
type related struct {
	z, left, right, folded tensor.Matrix
}

// scores makes them for the sources and targets of a relation.
func (l *rgat) scores(e *RelationEdges, r int) (s related) {
	dev := l.p.Dev
	x := l.msg.Slice(e.From.Lo, e.From.Hi)
	s.z = dev.Scratch(l.p.rowType(), x.Rows, l.out())
	s.left = dev.Scratch(dev.Type(), x.Rows, l.heads)
	s.right = dev.Scratch(dev.Type(), e.To.Hi-e.To.Lo, l.heads)
	s.folded = dev.Scratch(dev.Type(), l.in, l.heads)
	w := l.weight[r].Value
	dev.MatMul(s.z, x, w, tensor.MatMul{})
	dev.HeadDot(s.z, tensor.HeadDot{Score: s.left, A: l.src[r].Value})
	dev.HeadDot(w, tensor.HeadDot{Score: s.folded, A: l.dst[r].Value})
	dev.MatMul(s.right, l.msg.Slice(e.To.Lo, e.To.Hi), s.folded, tensor.MatMul{})
	return s
}

func (s *related) free(p *Pass) { freeAll(p, &s.z, &s.left, &s.right, &s.folded) }

// attention is for rows lo to hi.
func (l *rgat) attention(e *Edges, rel *RelationEdges, r, lo, hi int) tensor.Attention {
	return relationAttention(l.p, l.layer, l.heads, l.slope, l.attDrop, e, rel, r, lo, hi)
}

func (l *rgat) EdgeForward(e *Edges, lo, hi int) {
	dev := l.p.Dev
	done := map[int]bool{} // types whose rows hold a sum
	for r := range l.weight {
		rel := e.Related.Relation(r)
		from, to := max(lo, rel.To.Lo), min(hi, rel.To.Hi)
		if from >= to || !l.need[rel.To.Type] {
			continue
		}
		l.keep(r, rel)
		s := l.scores(rel, r)
		a, b := from-rel.To.Lo, to-rel.To.Lo
		att := l.att[r].Slice(a, b)
		dev.Attend(att, l.stat[r].Slice(a, b), rel.In.Slice(a, b), s.z, s.left, s.right.Slice(a, b),
			l.attention(e, rel, r, from, to))
		s.free(l.p)
		l.addTo(rel, from, to, att, !done[rel.To.Type])
		done[rel.To.Type] = true
	}
}

// keep allocates what the backward pass needs of a relation.
func (l *rgat) keep(r int, e *RelationEdges) {
	if l.att[r].IsZero() {
		n := e.To.Hi - e.To.Lo
		l.att[r] = l.p.Dev.Scratch(l.p.rowType(), n, l.out())
		l.stat[r] = l.p.Dev.Scratch(l.p.Dev.Type(), n, 2*l.heads)
	}
}

// addTo adds a relation's sums to the rows of its target's type, of which the first ones are written.
func (l *rgat) addTo(e *RelationEdges, lo, hi int, att tensor.Matrix, first bool) {
	eachType(l.p, lo, hi, func(t, from, to int) {
		if t != e.To.Type {
			return
		}
		y, part := l.y.Slice(from, to), att.Slice(from-lo, to-lo)
		if first {
			l.p.Dev.Copy(y, part)
			return
		}
		l.p.Dev.Combine(y, 1, y, 1, part)
	})
}

func (l *rgat) finish(p *Pass, lo, hi int) {
	eachType(p, lo, hi, func(t, lo, hi int) {
		y, after := l.y.Slice(lo, hi), l.after(p, lo, hi)
		list := l.types.into(t)
		if len(list) == 0 || !l.need[t] {
			p.Dev.Zero(y)
			return
		}
		after.Bias = p.Dev.New(p.Dev.Type(), 1, l.out())
		for _, r := range list {
			p.Dev.Combine(after.Bias, 1, after.Bias, 1, l.shift[r].Value)
		}
		p.Dev.Activate(y, y, after)
		p.Dev.Free(after.Bias)
	})
}

func (l *rgat) end(p *Pass) {
	if !p.Train {
		l.freePass(p)
	}
}

func (l *rgat) freePass(p *Pass) {
	l.freeMessages(p)
	for r := range l.att {
		freeAll(p, &l.att[r], &l.stat[r])
	}
}

func (l *rgat) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.sent, l.in) }

func (l *rgat) makeSentGrads(p *Pass) { l.dmsg = p.Dev.New(p.rowType(), l.msg.Rows, l.in) }

func (l *rgat) finishGrad(p *Pass, lo, hi int) { l.grad(p, lo, hi) }

func (l *rgat) finishWeightGrad(p *Pass, lo, hi int) {
	eachType(p, lo, hi, func(t, lo, hi int) {
		for _, r := range l.types.into(t) {
			p.Dev.ColumnSum(l.shift[r].Grad, l.dy.Slice(lo, hi), true)
		}
	})
}

func (l *rgat) gatherGrad(p *Pass) { p.Agg.EdgewiseGrad(l) }

func (l *rgat) EdgeBackward(e *Edges) {
	for r := range l.weight {
		if rel := e.Related.Relation(r); !l.att[r].IsZero() && rel.From.Lo < rel.From.Hi {
			l.relationGrad(e, rel, r)
		}
	}
}

// relationGrad goes back through a relation.
func (l *rgat) relationGrad(e *Edges, rel *RelationEdges, r int) {
	dev, to, from := l.p.Dev, rel.To, rel.From
	s := l.scores(rel, r)
	dz := dev.Scratch(l.p.rowType(), s.z.Rows, s.z.Cols)
	dleft, dright := dev.Scratch(dev.Type(), s.left.Rows, l.heads), dev.Scratch(dev.Type(), s.right.Rows, l.heads)
	dev.AttendGrad(dz, dleft, dright, rel.In, rel.Out, s.z, s.left, s.right, l.stat[r], l.att[r], l.dy.Slice(to.Lo, to.Hi),
		l.attention(e, rel, r, to.Lo, to.Hi))
	dev.HeadDotGrad(dz, s.z, tensor.HeadDot{Score: dleft, A: l.src[r].Value, DA: l.src[r].Grad})
	w := l.weight[r]
	dev.MatMul(w.Grad, l.msg.Slice(from.Lo, from.Hi), dz, tensor.MatMul{TransA: true, Add: true})
	dev.MatMul(l.dmsg.Slice(from.Lo, from.Hi), dz, w.Value, tensor.MatMul{TransB: true, Add: true})

	dfolded := dev.Scratch(dev.Type(), l.in, l.heads)
	dev.MatMul(dfolded, l.msg.Slice(to.Lo, to.Hi), dright, tensor.MatMul{TransA: true})
	dev.HeadDotGrad(w.Grad, w.Value, tensor.HeadDot{Score: dfolded, A: l.dst[r].Value, DA: l.dst[r].Grad})
	dev.MatMul(l.dmsg.Slice(to.Lo, to.Hi), dright, s.folded, tensor.MatMul{TransB: true, Add: true})
	freeAll(l.p, &dz, &dleft, &dright, &dfolded)
	s.free(l.p)
}

func (l *rgat) rootGrad(*Pass, int, int) {}

func (l *rgat) sendGrad(p *Pass, lo, hi int) {
	if dx := l.makeDX(p); !dx.IsZero() {
		p.Dev.Copy(dx.Slice(lo, hi), l.dmsg.Slice(lo, hi))
	}
}

func (l *rgat) sendWeightGrad(*Pass, int, int) {}

func (l *rgat) endGrad(p *Pass) {
	l.freePass(p)
	l.forget(p)
}
