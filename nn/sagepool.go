package nn

import "starling/tensor"

// sagePool is GraphSAGE with the max-pooling aggregator (Hamilton, Ying and Leskovec,
// NeurIPS 2017, eq. 3), as PyG's SAGEConv(aggr="max", project=True) and DGL's
// SAGEConv("pool"):
//
//	m = relu(x·P + p);   y_i = (max over j in N(i) of m_j)·W + x_i·R + b
//
// column by column, zero for a vertex without neighbours. x [n, in], P [in, in], W and
// R [in, out], y [n, out].
type sagePool struct {
	output
	pool, poolBias *Param
	w, r           *Param

	p           *Pass
	x           Input
	sent        int
	msg, most   tensor.Matrix
	from        tensor.Matrix // space for the sources of maxima
	dmsg, dmost tensor.Matrix
	biases      later
}

func newSAGEPool(b *builder, in, out int, o output) *sagePool {
	l := &sagePool{output: o}
	l.pool = b.weight("lin.weight", in, in, fanIn(in))
	l.poolBias = b.vector("lin.bias", in, fanIn(in))
	l.w = b.weight("lin_l.weight", in, out, fanIn(in))
	l.bias = b.vector("lin_l.bias", out, fanIn(in))
	l.r = b.weight("lin_r.weight", in, out, fanIn(in))
	return l
}

func (l *sagePool) Forward(p *Pass, x Input) tensor.Matrix { return forward(l, p, x, l.sourceRows(p)) }

func (l *sagePool) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, wantDX, l.sent)
}

func (l *sagePool) Width() int                 { return l.pool.Value.Cols }
func (l *sagePool) Over() Form                 { return Form{} }
func (l *sagePool) Sent() []tensor.Matrix      { return []tensor.Matrix{l.msg} }
func (l *sagePool) SentGrads() []tensor.Matrix { return []tensor.Matrix{l.dmsg} }

func (l *sagePool) EdgeForward(e *Edges, lo, hi int) {
	l.p.Dev.AggregateMax(l.most.Slice(lo, hi), l.sources(lo, hi), e.In.Slice(lo, hi), l.msg)
}

func (l *sagePool) EdgeBackward(e *Edges) {
	l.p.Dev.AggregateMaxGrad(l.dmsg, e.Out, l.dmost, l.sources(0, l.most.Rows))
}

// sources are the sources of the maxima of rows lo to hi.
func (l *sagePool) sources(lo, hi int) tensor.Index {
	return tensor.IndexIn(l.from).Slice(lo*l.from.Cols, hi*l.from.Cols)
}

func (l *sagePool) begin(p *Pass, x Input) tensor.Matrix {
	dst, src := p.Agg.Rows(l.layer)
	l.p, l.x, l.sent = p, x, src
	in := l.pool.Value.Rows
	l.msg = p.Dev.Scratch(p.rowType(), p.Agg.MessageRows(l.layer), in)
	l.most = p.Dev.Scratch(p.rowType(), dst, in)
	l.from = p.Dev.Scratch(tensor.U32, dst, in)
	l.y = p.Dev.Scratch(p.rowType(), dst, l.w.Value.Cols)
	return l.y
}

func (l *sagePool) pooled() tensor.Epilogue {
	return tensor.Epilogue{Bias: l.poolBias.Value, Act: tensor.ReLU}
}

func (l *sagePool) send(p *Pass, lo, hi int) {
	l.x.times(p.Dev, l.msg.Slice(lo, hi), l.pool.Value, lo, hi, false, l.pooled())
}

func (l *sagePool) gather(p *Pass) { p.Agg.Edgewise(l) }

func (l *sagePool) finish(p *Pass, lo, hi int) {
	y := l.y.Slice(lo, hi)
	p.Dev.MatMul(y, l.most.Slice(lo, hi), l.w.Value, tensor.MatMul{})
	l.x.ownTimes(p.Dev, y, l.r.Value, lo, hi, true, l.after(p, lo, hi))
}

func (l *sagePool) end(p *Pass) {
	if !p.Train {
		l.release(p)
	}
}

func (l *sagePool) release(p *Pass) { freeAll(p, &l.msg, &l.most, &l.from) }

func (l *sagePool) beginGrad(p *Pass, dy tensor.Matrix, wantDX bool) {
	l.output.beginGrad(p, dy, wantDX)
	l.dmost = p.Dev.Scratch(p.rowType(), dy.Rows, l.most.Cols)
}

func (l *sagePool) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.sent, l.pool.Value.Rows) }

func (l *sagePool) makeSentGrads(p *Pass) {
	l.dmsg = p.Dev.Scratch(p.rowType(), l.msg.Rows, l.msg.Cols)
}

func (l *sagePool) finishGrad(p *Pass, lo, hi int) {
	l.grad(p, lo, hi)
	p.Dev.MatMul(l.dmost.Slice(lo, hi), l.dy.Slice(lo, hi), l.w.Value, tensor.MatMul{TransB: true})
}

func (l *sagePool) finishWeightGrad(p *Pass, lo, hi int) {
	l.gradBias(p, lo, hi)
	rows(l.most).gradWeight(p.Dev, l.w.Grad, l.dy, lo, hi, l.zeros(p))
	l.x.ownGradWeight(p.Dev, l.r.Grad, l.dy, lo, hi, l.zeros(p))
}

func (l *sagePool) gatherGrad(p *Pass) {
	p.Agg.EdgewiseGrad(l)
	if !p.InRanges {
		freeAll(p, &l.most, &l.from, &l.dmost)
	}
}

func (l *sagePool) rootGrad(*Pass, int, int) {}

func (l *sagePool) sendGrad(p *Pass, lo, hi int) {
	dmsg := l.dmsg.Slice(lo, hi)
	p.Dev.ActivateGrad(dmsg, dmsg, l.msg.Slice(lo, hi), l.pooled(), l.biases.of(p, lo, l.poolBias)[0])
	dx := l.makeDX(p)
	if dx.IsZero() {
		return
	}
	p.Dev.MatMul(dx.Slice(lo, hi), dmsg, l.pool.Value, tensor.MatMul{TransB: true})
	if own := min(hi, l.dy.Rows); lo < own {
		p.Dev.MatMul(dx.Slice(lo, own), l.dy.Slice(lo, own), l.r.Value, tensor.MatMul{TransB: true, Add: true})
	}
}

func (l *sagePool) sendWeightGrad(p *Pass, lo, hi int) {
	l.biases.weightGrad(p, lo, hi, l.poolBias)
	l.x.gradWeight(p.Dev, l.pool.Grad, l.dmsg.Slice(0, l.sent), lo, hi, 0)
}

func (l *sagePool) endGrad(p *Pass) {
	freeAll(p, &l.dmsg, &l.dmost)
	l.release(p)
	l.x, l.p = Input{}, nil
}

// freeAll gives matrices back, where there are any, and forgets them.
func freeAll(p *Pass, list ...*tensor.Matrix) {
	for _, m := range list {
		if !m.IsZero() {
			p.Dev.Free(*m)
		}
		*m = tensor.Matrix{}
	}
}
