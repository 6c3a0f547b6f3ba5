package nn

import (
	"math"

	"starling/tensor"
)

// hgt is the layer of the Heterogeneous Graph Transformer (Hu, Dong, Wang and Sun, WWW 2020, §3), as PyG's HGTConv, for H
// heads of width D = out/H, with weights k, q and v by type t, and A, B and p by relation r and head:
//
//	k_j, q_j, v_j = x_j·[K_t Q_t V_t] + [k_t q_t v_t]
//	e_ij = q_i · (k_j·A_r) · p_r/√D;   α = softmax over all j and r that lead to i of e_ij
//	y_i = s_t·( gelu( Σj drop(α_ij)·(v_j·B_r) )·O_t + o_t ) + (1 - s_t)·x_i,   s_t the sigmoid of skip_t
//
// x [n, in], K, Q, V [in, out], A and B [D, D], O [out, out], y [n, out]; without x_i and s_t where in is not out. A type
// that nothing leads to has rows of zeros. K_t and A_r are folded, with p_r/√D, as are V_t and B_r: a relation's keys and
// values are one product of its sources, made again backwards.
type hgt struct {
	output
	untransformed
	joinedAttention
	types *TypedConfig
	need  []bool // by type; other rows are not computed
	wide  int    // of y

	kqv, kqvBias     []*Param // by type: keys, queries and values side by side
	post, postBias   []*Param // by type
	skips            []*Param // by type
	keyRel, valueRel *Param   // [H·R·D, D]: by head, then relation
	prior            []*Param // by relation

	spread, ones, eye tensor.Matrix // [H, out] of 1/√D where a column is of a head, [out, 1], [out, out]
	gates             []*gate       // of a pass, by type
}

func newHGT(b *builder, c *TypedConfig, in, out, heads int, attDrop float64, o output, need []bool) *hgt {
	l := &hgt{output: o, untransformed: untransformed{in: in}, types: c, need: need, wide: out,
		joinedAttention: joinedAttention{heads: heads, slope: 1, attDrop: attDrop}, gates: make([]*gate, len(c.Types))}
	prefix, d := b.prefix, out/heads
	for t := range c.Types {
		name := c.Types[t].Name
		l.kqv = append(l.kqv, b.weight("kqv_lin.lins."+name+".weight", in, 3*out, fanIn(in)))
		l.kqvBias = append(l.kqvBias, b.vector("kqv_lin.lins."+name+".bias", 3*out, fanIn(in)))
		l.post = append(l.post, b.weight("out_lin.lins."+name+".weight", out, out, fanIn(out)))
		l.postBias = append(l.postBias, b.vector("out_lin.lins."+name+".bias", out, fanIn(out)))
		l.skips = append(l.skips, b.vector("skip."+name, 1, ones))
	}
	n := heads * len(c.Relations)
	l.keyRel = b.add("k_rel.weight", []int{n, d, d}, false, n*d, d, fanIn(d))
	l.valueRel = b.add("v_rel.weight", []int{n, d, d}, false, n*d, d, fanIn(d))
	for r := range c.Relations {
		l.prior = append(l.prior, b.add("p_rel."+c.Joined(r), []int{1, heads}, false, 1, heads, ones))
	}
	b.prefix = prefix
	l.constants(b.dev)
	return l
}

// Joined is the name of a relation in PyG's HGTConv.
func (c *TypedConfig) Joined(r int) string {
	rel := &c.Relations[r]
	return c.Types[rel.Source].Name + "__" + rel.Name + "__" + c.Types[rel.Target].Name
}

func (l *hgt) constants(dev tensor.Device) {
	spread, column, eye := make([]float64, l.heads*l.wide), make([]float64, l.wide), make([]float64, l.wide*l.wide)
	d := l.wide / l.heads
	for c := range l.wide {
		spread[c/d*l.wide+c], column[c], eye[c*l.wide+c] = 1/math.Sqrt(float64(d)), 1, 1
	}
	make := func(rows, cols int, v []float64) tensor.Matrix {
		m := dev.New(dev.Type(), rows, cols)
		dev.Upload(m, v)
		return m
	}
	l.spread, l.ones, l.eye = make(l.heads, l.wide, spread), make(l.wide, 1, column), make(l.wide, l.wide, eye)
}

func (l *hgt) Forward(p *Pass, x Input) tensor.Matrix { return forward(l, p, x, l.sourceRows(p)) }

func (l *hgt) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, wantDX, l.sent)
}

func (l *hgt) begin(p *Pass, x Input) tensor.Matrix {
	dst := l.take(p, l.layer, x)
	clear(l.gates)
	l.joinedAttention.begin(p, dst, l.wide)
	l.y = p.Dev.Scratch(p.rowType(), dst, l.wide)
	return l.y
}

func (l *hgt) gather(p *Pass) { p.Agg.Edgewise(l) }

// computed reports whether rows of a type are.
func (l *hgt) computed(t int) bool { return l.need[t] && len(l.types.into(t)) > 0 }

// eachComputed calls f with the rows of types that are computed among lo to hi.
func (l *hgt) eachComputed(lo, hi int, f func(t, lo, hi int)) {
	eachType(l.p, lo, hi, func(t, lo, hi int) {
		if l.computed(t) {
			f(t, lo, hi)
		}
	})
}

// part is the columns of keys (0), queries (1) or values (2) of a matrix that has all three.
func (l *hgt) part(m tensor.Matrix, which int) tensor.Matrix {
	return m.Columns(which*l.wide, (which+1)*l.wide)
}

// queries makes the queries of rows lo to hi.
func (l *hgt) queries(lo, hi int) tensor.Matrix {
	q := l.p.Dev.Scratch(l.p.rowType(), hi-lo, l.wide)
	l.eachComputed(lo, hi, func(t, from, to int) {
		l.p.Dev.MatMul(q.Slice(from-lo, to-lo), l.msg.Slice(from, to), l.part(l.kqv[t].Value, 1),
			tensor.MatMul{Epilogue: tensor.Epilogue{Bias: l.part(l.kqvBias[t].Value, 1)}})
	})
	return q
}

// keyed is what a relation's attention works on: keys and values of its sources, side by side, and scores of its edges.
type keyed struct {
	folded                   *folded
	kv, score                tensor.Matrix
	noLeft, noRight          tensor.Matrix // scores are of edges alone
	key, value, dkey, dvalue tensor.Matrix // views
}

// keys makes them for the targets among rows from to to, whose queries are given.
func (l *hgt) keys(rel *RelationEdges, r, from, to int, queries tensor.Matrix) *keyed {
	dev, rows := l.p.Dev, rel.From.Hi-rel.From.Lo
	s := &keyed{folded: l.fold(r)}
	s.kv = dev.Scratch(l.p.rowType(), rows, 2*l.wide)
	dev.MatMul(s.kv, l.msg.Slice(rel.From.Lo, rel.From.Hi), s.folded.w,
		tensor.MatMul{Epilogue: tensor.Epilogue{Bias: s.folded.bias}})
	s.key, s.value = l.part(s.kv, 0), l.part(s.kv, 1)
	s.score = dev.Scratch(dev.Type(), int(rel.In.Entries()), l.heads)
	dev.EdgeDot(s.score, rel.In.Slice(from-rel.To.Lo, to-rel.To.Lo), queries, s.key)
	s.noLeft, s.noRight = dev.New(dev.Type(), rows, l.heads), dev.New(dev.Type(), to-from, l.heads)
	return s
}

func (s *keyed) free(p *Pass) {
	s.folded.free(p)
	freeAll(p, &s.kv, &s.score, &s.noLeft, &s.noRight)
}

func (l *hgt) EdgeForward(e *Edges, lo, hi int) {
	l.clear(l.p, lo, hi)
	q := l.queries(lo, hi)
	for r := range l.prior {
		rel := e.Related.Relation(r)
		from, to, ok := rel.targets(l.need, lo, hi)
		if !ok {
			continue
		}
		s := l.keys(rel, r, from, to, q.Slice(from-lo, to-lo))
		op := l.of(l.p, l.layer, e, rel, r, from, to)
		op.Edge = s.score
		l.join(l.p, rel, from, to, s.value, s.noLeft, s.noRight, op)
		s.free(l.p)
	}
	freeAll(l.p, &q)
}

func (l *hgt) finish(p *Pass, lo, hi int) {
	eachType(p, lo, hi, func(t, lo, hi int) {
		y, after := l.y.Slice(lo, hi), l.after(p, lo, hi)
		if !l.computed(t) {
			p.Dev.Zero(y)
			return
		}
		g := l.gelu(lo, hi)
		gate := l.gate(t)
		after.Bias = gate.bias
		if gate.past.IsZero() {
			p.Dev.MatMul(y, g, gate.w, tensor.MatMul{Epilogue: after})
		} else {
			p.Dev.MatMul(y, g, gate.w, tensor.MatMul{})
			p.Dev.MatMul(y, l.x.Slice(lo, hi), gate.past, tensor.MatMul{Add: true, Epilogue: after})
		}
		freeAll(p, &g)
	})
}

func (l *hgt) gelu(lo, hi int) tensor.Matrix {
	g := l.p.Dev.Scratch(l.p.rowType(), hi-lo, l.wide)
	l.p.Dev.GELU(g, l.att.Slice(lo, hi))
	return g
}

func (l *hgt) end(p *Pass) {
	if !p.Train {
		l.freePass(p)
	}
}

func (l *hgt) freePass(p *Pass) {
	l.freeMessages(p)
	l.joinedAttention.free(p)
	for t, g := range l.gates {
		if g != nil {
			freeAll(p, &g.shares, &g.w, &g.bias, &g.past)
			l.gates[t] = nil
		}
	}
}

func (l *hgt) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.sent, l.in) }

func (l *hgt) makeSentGrads(p *Pass) { l.dmsg = p.Dev.New(p.rowType(), l.msg.Rows, l.in) }

func (l *hgt) finishGrad(p *Pass, lo, hi int) { l.grad(p, lo, hi) }

func (l *hgt) finishWeightGrad(p *Pass, lo, hi int) {
	l.eachComputed(lo, hi, func(t, lo, hi int) { l.gateGrad(t, l.x.Slice(lo, hi), l.dy.Slice(lo, hi), lo, hi) })
}

func (l *hgt) gatherGrad(p *Pass) { p.Agg.EdgewiseGrad(l) }

func (l *hgt) EdgeBackward(e *Edges) {
	dev, n := l.p.Dev, l.dy.Rows
	datt := dev.Scratch(l.p.rowType(), n, l.wide)
	l.eachComputed(0, n, func(t, lo, hi int) {
		d := datt.Slice(lo, hi)
		dev.MatMul(d, l.dy.Slice(lo, hi), l.gate(t).w, tensor.MatMul{TransB: true})
		dev.GELUGrad(d, d, l.att.Slice(lo, hi))
	})
	q, dq := l.queries(0, n), dev.New(l.p.rowType(), n, l.wide)
	for r := range l.prior {
		if rel := e.Related.Relation(r); ok(rel.targets(l.need, 0, n)) {
			l.relationGrad(e, rel, r, q.Slice(rel.To.Lo, rel.To.Hi), dq.Slice(rel.To.Lo, rel.To.Hi), datt)
		}
	}
	l.eachComputed(0, n, func(t, lo, hi int) {
		x, d := l.msg.Slice(lo, hi), dq.Slice(lo, hi)
		dev.MatMul(l.part(l.kqv[t].Grad, 1), x, d, tensor.MatMul{TransA: true, Add: true})
		dev.ColumnSum(l.part(l.kqvBias[t].Grad, 1), d, true)
		dev.MatMul(l.dmsg.Slice(lo, hi), d, l.part(l.kqv[t].Value, 1), tensor.MatMul{TransB: true, Add: true})
	})
	freeAll(l.p, &datt, &q, &dq)
}

// ok is the last of what targets returns.
func ok(_, _ int, ok bool) bool { return ok }

// relationGrad goes back through a relation: dq is added to.
func (l *hgt) relationGrad(e *Edges, rel *RelationEdges, r int, q, dq, datt tensor.Matrix) {
	dev, to, rows := l.p.Dev, rel.To, rel.From.Hi-rel.From.Lo
	s := l.keys(rel, r, to.Lo, to.Hi, q)
	op := l.of(l.p, l.layer, e, rel, r, to.Lo, to.Hi)
	op.Edge, op.DEdge = s.score, dev.Scratch(dev.Type(), s.score.Rows, l.heads)
	dkv, dleft := dev.Scratch(l.p.rowType(), rows, 2*l.wide), dev.Scratch(dev.Type(), rows, l.heads)
	dright, part := dev.Scratch(dev.Type(), q.Rows, l.heads), dev.Scratch(l.p.rowType(), q.Rows, l.wide)
	dev.AttendGrad(l.part(dkv, 1), dleft, dright, rel.In, rel.Out, s.value, s.noLeft, s.noRight, l.stat.Slice(to.Lo, to.Hi),
		l.att.Slice(to.Lo, to.Hi), datt.Slice(to.Lo, to.Hi), op)
	dev.EdgeDotGrad(part, l.part(dkv, 0), rel.In, rel.Out, q, s.key, op.DEdge)
	dev.Combine(dq, 1, dq, 1, part)
	x, dx := l.msg.Slice(rel.From.Lo, rel.From.Hi), l.dmsg.Slice(rel.From.Lo, rel.From.Hi)
	dev.MatMul(dx, dkv, s.folded.w, tensor.MatMul{TransB: true, Add: true})
	l.unfold(r, s.folded, x, dkv)
	freeAll(l.p, &op.DEdge, &dkv, &dleft, &dright, &part)
	s.free(l.p)
}

func (l *hgt) rootGrad(*Pass, int, int) {}

func (l *hgt) sendGrad(p *Pass, lo, hi int) {
	dx := l.makeDX(p)
	if dx.IsZero() {
		return
	}
	p.Dev.Copy(dx.Slice(lo, hi), l.dmsg.Slice(lo, hi))
	l.eachComputed(lo, min(hi, l.dy.Rows), func(t, lo, hi int) {
		if past := l.gate(t).past; !past.IsZero() {
			p.Dev.MatMul(dx.Slice(lo, hi), l.dy.Slice(lo, hi), past, tensor.MatMul{TransB: true, Add: true})
		}
	})
}

func (l *hgt) sendWeightGrad(*Pass, int, int) {}

func (l *hgt) endGrad(p *Pass) {
	l.freePass(p)
	l.forget(p)
}
