package nn

import "starling/tensor"

// gine is GIN with features of edges (Hu et al., "Strategies for Pre-training Graph
// Neural Networks", ICLR 2020), as PyG's GINEConv with an MLP of two linear maps:
//
//	y_i = relu( ((1+ε) x_i + Σj relu(x_j + f_ij·E + e)) · W0 + b0 ) · W1 + b1
//
// x [n, in], f [edges, d], E [d, in], W0 [in, hidden], W1 [hidden, out]. ε is fixed at 0
// or trained. The rows f·E are made anew for every edge: they would need a matrix of
// edges x in.
type gine struct {
	sum *gineSum // up to the first ReLU
	mlp *linear
}

func newGINE(b *builder, in, hidden, out, edgeDim int, trainEps bool, o output) *gine {
	first := &gineSum{output: output{layer: o.layer, act: tensor.ReLU}}
	if trainEps {
		first.eps = b.vector("eps", 1, zeros)
	}
	first.w = b.weight("nn.0.weight", in, hidden, fanIn(in))
	first.bias = b.vector("nn.0.bias", hidden, fanIn(in))
	mlp := newLinear(b, "nn.2.", hidden, out, o)
	first.edge, first.edgeBias = b.weight("lin.weight", edgeDim, in, fanIn(edgeDim)), b.vector("lin.bias", in,
		fanIn(edgeDim))
	return &gine{sum: first, mlp: mlp}
}

func (g *gine) Forward(p *Pass, x Input) tensor.Matrix {
	hidden := forward(g.sum, p, x, g.sum.sourceRows(p))
	y := g.mlp.Forward(p, madeBy(g.sum, p, hidden))
	if !p.Train {
		p.Dev.Free(hidden)
	}
	return y
}

func (g *gine) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(g.sum, p, g.mlp.Backward(p, dy, true), wantDX, g.sum.sent)
}

// gineSum is the layer's first half.
type gineSum struct {
	output
	w              *Param
	eps            *Param // or nil: 0
	edge, edgeBias *Param

	p        *Pass
	x        Input
	sent     int
	own      float64 // 1 + ε
	msg, sum tensor.Matrix
	unit     tensor.Matrix // turns sparse rows into dense ones

	dmsg, dsum tensor.Matrix
}

func (l *gineSum) Width() int                 { return l.w.Value.Rows }
func (l *gineSum) Over() Form                 { return Form{Featured: true} }
func (l *gineSum) Sent() []tensor.Matrix      { return []tensor.Matrix{l.msg} }
func (l *gineSum) SentGrads() []tensor.Matrix { return []tensor.Matrix{l.dmsg} }

func (l *gineSum) edges(e *Edges) tensor.EdgeInput {
	return tensor.EdgeInput{Features: e.Features, Weight: l.edge.Value, Bias: l.edgeBias.Value, DWeight: l.edge.Grad,
		DBias: l.edgeBias.Grad}
}

func (l *gineSum) EdgeForward(e *Edges, lo, hi int) {
	sum := l.sum.Slice(lo, hi)
	if e.Counts == nil {
		l.p.Dev.EdgeSum(sum, e.In.Slice(lo, hi), l.msg, l.edges(e))
		return
	}
	drawn := l.p.Dev.Scratch(l.p.rowType(), e.In.Rows, sum.Cols)
	l.p.Dev.EdgeSum(drawn, e.In, l.msg, l.edges(e))
	l.p.Dev.Aggregate(sum, e.Counts.Slice(lo, hi), drawn, tensor.Aggregate{})
	l.p.Dev.Free(drawn)
}

func (l *gineSum) EdgeBackward(e *Edges) {
	dsum := l.dsum
	if e.Counts != nil {
		dsum = l.p.Dev.Scratch(l.p.rowType(), l.dsum.Rows, l.dsum.Cols)
		defer l.p.Dev.Free(dsum)
		l.p.Dev.Aggregate(dsum, e.Counts, l.dsum, tensor.Aggregate{})
	}
	l.p.Dev.EdgeSumGrad(l.dmsg, e.In, e.Out, l.msg, dsum, l.edges(e))
}

func (l *gineSum) begin(p *Pass, x Input) tensor.Matrix {
	dst, src := p.Agg.Rows(l.layer)
	l.p, l.x, l.sent, l.own = p, x, src, 1
	if l.eps != nil {
		eps := make([]float64, 1)
		p.Dev.Download(eps, l.eps.Value)
		l.own += eps[0]
	}
	in := l.w.Value.Rows
	l.msg = p.Dev.Scratch(p.rowType(), p.Agg.MessageRows(l.layer), in)
	l.sum = p.Dev.Scratch(p.rowType(), dst, in)
	l.y = p.Dev.Scratch(p.rowType(), dst, l.w.Value.Cols)
	return l.y
}

func (l *gineSum) send(p *Pass, lo, hi int) {
	if l.x.Sparse == nil {
		p.Dev.Copy(l.msg.Slice(lo, hi), l.x.Slice(lo, hi))
		return
	}
	if l.unit.IsZero() {
		l.unit = averaging(p.Dev, 1, l.w.Value.Rows)
	}
	l.x.times(p.Dev, l.msg.Slice(lo, hi), l.unit, lo, hi, false, tensor.Epilogue{})
}

func (l *gineSum) gather(p *Pass) { p.Agg.Edgewise(l) }

func (l *gineSum) finish(p *Pass, lo, hi int) {
	sum := l.sum.Slice(lo, hi)
	p.Dev.Combine(sum, 1, sum, l.own, l.msg.Slice(lo, hi))
	p.Dev.MatMul(l.y.Slice(lo, hi), sum, l.w.Value, tensor.MatMul{Epilogue: l.after(p, lo, hi)})
}

func (l *gineSum) end(p *Pass) {
	if !p.Train {
		freeAll(p, &l.msg, &l.sum)
	}
}

func (l *gineSum) beginGrad(p *Pass, dy tensor.Matrix, wantDX bool) {
	l.output.beginGrad(p, dy, wantDX)
	l.dsum = p.Dev.Scratch(p.rowType(), dy.Rows, l.sum.Cols)
}

func (l *gineSum) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.sent, l.w.Value.Rows) }

func (l *gineSum) makeSentGrads(p *Pass) {
	if !p.InRanges {
		freeAll(p, &l.sum)
		l.freeDY(p)
	}
	l.dmsg = p.Dev.Scratch(p.rowType(), l.msg.Rows, l.msg.Cols)
}

func (l *gineSum) finishGrad(p *Pass, lo, hi int) {
	l.grad(p, lo, hi)
	p.Dev.MatMul(l.dsum.Slice(lo, hi), l.dy.Slice(lo, hi), l.w.Value, tensor.MatMul{TransB: true})
}

func (l *gineSum) finishWeightGrad(p *Pass, lo, hi int) {
	l.gradBias(p, lo, hi)
	rows(l.sum).gradWeight(p.Dev, l.w.Grad, l.dy, lo, hi, l.zeros(p))
	if l.eps != nil {
		addDot(p.Dev, l.eps.Grad, l.dsum.Slice(lo, hi), l.msg.Slice(lo, hi))
	}
}

func (l *gineSum) gatherGrad(p *Pass) {
	p.Agg.EdgewiseGrad(l)
	if !p.InRanges {
		freeAll(p, &l.msg)
	}
}

func (l *gineSum) rootGrad(*Pass, int, int) {}

func (l *gineSum) sendGrad(p *Pass, lo, hi int) {
	dx := l.makeDX(p)
	if dx.IsZero() {
		return
	}
	p.Dev.Copy(dx.Slice(lo, hi), l.dmsg.Slice(lo, hi))
	if own := min(hi, l.dsum.Rows); lo < own {
		dx := dx.Slice(lo, own)
		p.Dev.Combine(dx, 1, dx, l.own, l.dsum.Slice(lo, own))
	}
}

func (l *gineSum) sendWeightGrad(*Pass, int, int) {}

func (l *gineSum) endGrad(p *Pass) {
	freeAll(p, &l.msg, &l.sum, &l.dmsg, &l.dsum)
	l.x, l.p = Input{}, nil
}
