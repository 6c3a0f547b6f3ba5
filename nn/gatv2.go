package nn

import "starling/tensor"

// gatv2 is the dynamic attention of Brody, Alon and Yahav ("How Attentive are Graph
// Attention Networks?", ICLR 2022, eq. 7), as PyG's GATv2Conv, for H heads of width C:
//
//	l = x·L + l0;   r = x·R + r0;   e_ij = a · leaky(l_j + r_i);   α = softmax over j of e_ij
//	y_i = concat (or mean) over heads of Σj drop(α_ij)·l_j  + b
//
// over N(i) and i itself; with features f of edges, e_ij = a · leaky(l_j + r_i + f_ij·E),
// and a loop has the mean of its vertex's. Unlike GAT's, the ranking of a vertex's neighbours depends on
// the vertex. x [n, in], L and R [in, H·C], a [H, C], y [n, H·C], or [n, C] for the
// mean. α is kept for the backward pass: one number per edge and head.
type gatv2 struct {
	attended
	heads, out       int
	slope            float64
	attDrop          float64
	left, leftBias   *Param
	right, rightBias *Param
	a                *Param
	edge             *Param // of edges' features, or nil

	p           *Pass
	x           Input
	sent        int
	z, r, alpha tensor.Matrix
	dz, dr      tensor.Matrix
}

// newGATv2 has heads of width c each.
func newGATv2(b *builder, in, c, heads int, concat bool, attDrop float64, edgeDim int, o output) *gatv2 {
	l := &gatv2{attended: attended{output: o}, heads: heads, slope: 0.2, attDrop: attDrop}
	wide := heads * c
	l.a = b.add("att", []int{1, heads, c}, false, 1, wide, glorot(heads, c))
	l.out = wide
	if !concat {
		l.out = c
		l.mean = averaging(b.dev, heads, c)
	}
	l.bias = b.vector("bias", l.out, zeros)
	l.left, l.leftBias = b.weight("lin_l.weight", in, wide, glorot(in, wide)), b.vector("lin_l.bias", wide, zeros)
	if edgeDim > 0 {
		l.edge = b.weight("lin_edge.weight", edgeDim, wide, glorot(edgeDim, wide))
	}
	l.right, l.rightBias = b.weight("lin_r.weight", in, wide, glorot(in, wide)), b.vector("lin_r.bias", wide, zeros)
	return l
}

func (l *gatv2) Forward(p *Pass, x Input) tensor.Matrix { return forward(l, p, x, l.sourceRows(p)) }

func (l *gatv2) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, wantDX, l.sent)
}

func (l *gatv2) Width() int                 { return l.left.Value.Cols }
func (l *gatv2) Over() Form                 { return Form{Looped: true, Featured: l.edge != nil} }
func (l *gatv2) Sent() []tensor.Matrix      { return []tensor.Matrix{l.z} }
func (l *gatv2) SentGrads() []tensor.Matrix { return []tensor.Matrix{l.dz} }

// attention is for rows lo to hi.
func (l *gatv2) attention(e *Edges, lo, hi int) tensor.Attention {
	return tensor.Attention{Heads: l.heads, Slope: l.slope,
		Dropout: l.p.dropout(l.layer, drawAttention, l.attDrop).Slice(lo, hi), SrcIDs: e.ids(l.p)}
}

// edges is what features of edges add to sums of rows.
func (l *gatv2) edges(e *Edges) tensor.EdgeInput {
	if l.edge == nil {
		return tensor.EdgeInput{}
	}
	return tensor.EdgeInput{Features: e.Features, Weight: l.edge.Value, DWeight: l.edge.Grad}
}

func (l *gatv2) EdgeForward(e *Edges, lo, hi int) {
	if l.p.Train && l.alpha.IsZero() {
		l.alpha = l.p.Dev.Scratch(l.p.Dev.Type(), int(e.In.Entries()), l.heads)
	}
	l.p.Dev.DynamicAttend(l.att.Slice(lo, hi), l.alpha, e.In.Slice(lo, hi), l.z, l.r.Slice(lo, hi), l.a.Value,
		l.attention(e, lo, hi), l.edges(e))
}

func (l *gatv2) EdgeBackward(e *Edges) {
	l.p.Dev.DynamicAttendGrad(l.dz, l.dr, l.a.Grad, e.In, e.Out, l.z, l.r, l.a.Value, l.alpha, l.att, l.g,
		l.attention(e, 0, l.r.Rows), l.edges(e))
}

func (l *gatv2) begin(p *Pass, x Input) tensor.Matrix {
	dst, src := p.Agg.Rows(l.layer)
	l.p, l.x, l.sent = p, x, src
	wide := l.left.Value.Cols
	l.z = p.Dev.Scratch(p.rowType(), p.Agg.MessageRows(l.layer), wide)
	l.r = p.Dev.Scratch(p.rowType(), dst, wide)
	l.att = p.Dev.Scratch(p.rowType(), dst, wide)
	l.y = p.Dev.Scratch(p.rowType(), dst, l.out)
	return l.y
}

func (l *gatv2) send(p *Pass, lo, hi int) {
	l.x.times(p.Dev, l.z.Slice(lo, hi), l.left.Value, lo, hi, false, tensor.Epilogue{Bias: l.leftBias.Value})
	if own := min(hi, l.r.Rows); lo < own || l.x.Split != nil {
		l.x.ownTimes(p.Dev, l.r.Slice(lo, own), l.right.Value, lo, own, false, tensor.Epilogue{Bias: l.rightBias.Value})
	}
}

func (l *gatv2) gather(p *Pass) { p.Agg.Edgewise(l) }

func (l *gatv2) end(p *Pass) {
	if !p.Train {
		freeAll(p, &l.z, &l.r, &l.alpha, &l.att)
	}
}

func (l *gatv2) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.sent, l.left.Value.Rows) }

func (l *gatv2) makeSentGrads(p *Pass) {
	l.dz = l.sentGrad(p, l.z)
	l.dr = p.Dev.Scratch(p.rowType(), l.r.Rows, l.r.Cols)
}

func (l *gatv2) gatherGrad(p *Pass) {
	p.Agg.EdgewiseGrad(l)
	if !p.InRanges {
		l.freeEdgewise(p)
	}
}

func (l *gatv2) freeEdgewise(p *Pass) {
	l.attended.freeEdgewise(p, l.dz)
	freeAll(p, &l.z, &l.r, &l.alpha)
}

func (l *gatv2) sendGrad(p *Pass, lo, hi int) {
	dx := l.makeDX(p)
	if dx.IsZero() {
		return
	}
	p.Dev.MatMul(dx.Slice(lo, hi), l.dz.Slice(lo, hi), l.left.Value, tensor.MatMul{TransB: true})
	if own := min(hi, l.dr.Rows); lo < own {
		p.Dev.MatMul(dx.Slice(lo, own), l.dr.Slice(lo, own), l.right.Value, tensor.MatMul{TransB: true, Add: true})
	}
}

func (l *gatv2) sendWeightGrad(p *Pass, lo, hi int) {
	l.x.gradWeight(p.Dev, l.left.Grad, l.dz.Slice(0, l.sent), lo, hi, 0)
	p.Dev.ColumnSum(l.leftBias.Grad, l.dz.Slice(lo, hi), true)
	if own := min(hi, l.dr.Rows); lo < own || l.x.Split != nil {
		l.x.ownGradWeight(p.Dev, l.right.Grad, l.dr, lo, own, 0)
		p.Dev.ColumnSum(l.rightBias.Grad, l.dr.Slice(lo, own), true)
	}
}

func (l *gatv2) endGrad(p *Pass) {
	l.freeEdgewise(p)
	freeAll(p, &l.dz, &l.dr)
	l.x, l.p = Input{}, nil
}
