package nn

import "starling/tensor"

// gat is the graph attention layer of Veličković et al. (ICLR 2018, eqs. 1-6), as
// PyG's GATConv, for H heads of width C:
//
//	z = x·W;   e_ij = leaky(a_src·z_j + a_dst·z_i);   α = softmax over j of e_ij
//	y_i = concat (or mean) over heads of Σj drop(α_ij)·z_j  + b
//
// over N(i) and i itself; with features f of edges, a_edge·(f_ij·E) is added to scores
// before leaky, and a loop has the mean of its vertex's. x [n, in], W [in, H·C], a_src and a_dst [H, C],
// y [n, H·C], or [n, C] for the mean.
type gat struct {
	attended
	heads, out int
	slope      float64
	attDrop    float64
	w          *Param
	src, dst   *Param
	edge, fold *Param // of edges' features and their scores, or nil

	p                    *Pass
	x                    Input
	sent                 int // rows of messages that are our own
	z, left, right, stat tensor.Matrix
	scored               tensor.Matrix // scores of edges' features

	dz, dleft, dright tensor.Matrix
	scores            later
}

// newGAT has heads of width c each.
func newGAT(b *builder, in, c, heads int, concat bool, attDrop float64, edgeDim int, o output) *gat {
	l := &gat{attended: attended{output: o}, heads: heads, slope: 0.2, attDrop: attDrop}
	head := []int{1, heads, c}
	l.src = b.add("att_src", head, false, 1, heads*c, glorot(heads, c))
	l.dst = b.add("att_dst", head, false, 1, heads*c, glorot(heads, c))
	l.out = heads * c
	if !concat {
		l.out = c
		l.mean = averaging(b.dev, heads, c)
	}
	l.bias = b.vector("bias", l.out, zeros)
	l.w = b.weight("lin.weight", in, heads*c, glorot(in, heads*c))
	if edgeDim > 0 {
		l.fold = b.add("att_edge", head, false, 1, heads*c, glorot(heads, c))
		l.edge = b.weight("lin_edge.weight", edgeDim, heads*c, glorot(edgeDim, heads*c))
	}
	return l
}

// averaging is the matrix that turns heads side by side into their mean.
func averaging(dev tensor.Device, heads, c int) tensor.Matrix {
	v := make([]float64, heads*c*c)
	for i := range heads * c {
		v[i*c+i%c] = 1 / float64(heads)
	}
	m := dev.New(dev.Type(), heads*c, c)
	dev.Upload(m, v)
	return m
}

func (l *gat) Forward(p *Pass, x Input) tensor.Matrix { return forward(l, p, x, l.sourceRows(p)) }

func (l *gat) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, wantDX, l.sent)
}

// attention is for rows lo to hi.
func (l *gat) attention(e *Edges, lo, hi int) tensor.Attention {
	return tensor.Attention{Heads: l.heads, Slope: l.slope,
		Dropout: l.p.dropout(l.layer, drawAttention, l.attDrop).Slice(lo, hi), SrcIDs: e.ids(l.p), Edge: l.scored}
}

func (l *gat) Width() int                 { return l.w.Value.Cols }
func (l *gat) Over() Form                 { return Form{Looped: true, Featured: l.edge != nil} }
func (l *gat) Sent() []tensor.Matrix      { return []tensor.Matrix{l.z, l.left} }
func (l *gat) SentGrads() []tensor.Matrix { return []tensor.Matrix{l.dz, l.dleft} }

// scoreEdges makes what features of edges add to scores. Only their products with
// a_edge are needed, so E and a_edge are folded first: one number per edge and head.
func (l *gat) scoreEdges(e *Edges) {
	if l.edge == nil || !l.scored.IsZero() {
		return
	}
	dev := l.p.Dev
	folded := dev.Scratch(dev.Type(), l.edge.Value.Rows, l.heads)
	dev.HeadDot(l.edge.Value, tensor.HeadDot{Score: folded, A: l.fold.Value})
	l.scored = dev.Scratch(dev.Type(), e.Features.Rows, l.heads)
	dev.MatMul(l.scored, e.Features, folded, tensor.MatMul{})
	dev.Free(folded)
}

// learnEdges goes back through scoreEdges.
func (l *gat) learnEdges(e *Edges, dscored tensor.Matrix) {
	dev := l.p.Dev
	dfolded := dev.Scratch(dev.Type(), l.edge.Value.Rows, l.heads)
	dev.MatMul(dfolded, e.Features, dscored, tensor.MatMul{TransA: true})
	dev.HeadDotGrad(l.edge.Grad, l.edge.Value, tensor.HeadDot{Score: dfolded, A: l.fold.Value, DA: l.fold.Grad})
	dev.Free(dfolded)
}

func (l *gat) EdgeForward(e *Edges, lo, hi int) {
	l.scoreEdges(e)
	l.p.Dev.Attend(l.att.Slice(lo, hi), l.stat.Slice(lo, hi), e.In.Slice(lo, hi), l.z, l.left, l.right.Slice(lo, hi),
		l.attention(e, lo, hi))
}

func (l *gat) EdgeBackward(e *Edges) {
	op := l.attention(e, 0, l.right.Rows)
	if l.edge != nil {
		op.DEdge = l.p.Dev.Scratch(l.p.Dev.Type(), l.scored.Rows, l.heads)
		defer l.p.Dev.Free(op.DEdge)
	}
	l.p.Dev.AttendGrad(l.dz, l.dleft, l.dright, e.In, e.Out, l.z, l.left, l.right, l.stat, l.att, l.g, op)
	if l.edge != nil {
		l.learnEdges(e, op.DEdge)
	}
}

func (l *gat) begin(p *Pass, x Input) tensor.Matrix {
	dst, src := p.Agg.Rows(l.layer)
	rows := p.Agg.MessageRows(l.layer)
	wide, t := l.w.Value.Cols, p.Dev.Type()
	l.p, l.x, l.sent = p, x, src
	l.z = p.Dev.Scratch(p.rowType(), rows, wide)
	l.left = p.Dev.Scratch(t, rows, l.heads)
	l.right = p.Dev.Scratch(t, dst, l.heads)
	l.stat = p.Dev.Scratch(t, dst, 2*l.heads)
	l.att = p.Dev.Scratch(p.rowType(), dst, wide)
	l.y = p.Dev.Scratch(p.rowType(), dst, l.out)
	return l.y
}

func (l *gat) send(p *Pass, lo, hi int) {
	z := l.z.Slice(lo, hi)
	l.x.times(p.Dev, z, l.w.Value, lo, hi, false, tensor.Epilogue{})
	p.Dev.HeadDot(z, tensor.HeadDot{Score: l.left.Slice(lo, hi), A: l.src.Value},
		tensor.HeadDot{Score: owned(l.right, lo, hi), A: l.dst.Value})
}

// owned is rows lo to hi of m as far as it has them: sources that are no destination have no score as one.
func owned(m tensor.Matrix, lo, hi int) tensor.Matrix {
	return m.Slice(min(lo, m.Rows), min(hi, m.Rows))
}

func (l *gat) gather(p *Pass) { p.Agg.Edgewise(l) }

func (l *gat) end(p *Pass) {
	if !p.Train {
		freeAll(p, &l.z, &l.left, &l.right, &l.stat, &l.scored, &l.att)
	}
}

func (l *gat) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.sent, l.w.Value.Rows) }

func (l *gat) makeSentGrads(p *Pass) {
	l.dz = l.sentGrad(p, l.z)
	l.dleft = p.Dev.Scratch(p.Dev.Type(), l.left.Rows, l.heads)
	l.dright = p.Dev.Scratch(p.Dev.Type(), l.right.Rows, l.heads)
}

func (l *gat) gatherGrad(p *Pass) {
	p.Agg.EdgewiseGrad(l)
	if !p.InRanges {
		l.freeEdgewise(p)
	}
}

func (l *gat) freeEdgewise(p *Pass) {
	l.attended.freeEdgewise(p, l.dz)
	freeAll(p, &l.left, &l.right, &l.stat, &l.scored)
}

func (l *gat) sendGrad(p *Pass, lo, hi int) {
	grads := l.scores.of(p, lo, l.src, l.dst)
	p.Dev.HeadDotGrad(l.dz.Slice(lo, hi), l.z.Slice(lo, hi),
		tensor.HeadDot{Score: l.dleft.Slice(lo, hi), A: l.src.Value, DA: grads[0]},
		tensor.HeadDot{Score: owned(l.dright, lo, hi), A: l.dst.Value, DA: grads[1]})
	if !p.InRanges { // dx takes the place
		freeAll(p, &l.z)
	}
	if dx := l.makeDX(p); !dx.IsZero() {
		p.Dev.MatMul(dx.Slice(lo, hi), l.dz.Slice(lo, hi), l.w.Value, tensor.MatMul{TransB: true})
	}
}

func (l *gat) sendWeightGrad(p *Pass, lo, hi int) {
	l.scores.weightGrad(p, lo, hi, l.src, l.dst)
	l.x.gradWeight(p.Dev, l.w.Grad, l.dz.Slice(0, l.sent), lo, hi, 0)
}

func (l *gat) endGrad(p *Pass) {
	l.freeEdgewise(p)
	freeAll(p, &l.z, &l.dz, &l.dleft, &l.dright)
	l.x, l.p = Input{}, nil
}
