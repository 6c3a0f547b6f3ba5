package nn

import "starling/tensor"

// linear is y = dropout(act(x·W + b)). x [n, in], W [in, out], y [n, out].
type linear struct {
	rowwise
	output
	w *Param

	x Input
}

// newLinear names its parameters prefix+"weight" and prefix+"bias".
func newLinear(b *builder, prefix string, in, out int, o output) *linear {
	l := &linear{output: o}
	l.w = b.weight(prefix+"weight", in, out, fanIn(in))
	l.bias = b.vector(prefix+"bias", out, fanIn(in))
	return l
}

func (l *linear) Forward(p *Pass, x Input) tensor.Matrix { return forward(l, p, x, 0) }

func (l *linear) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(l, p, dy, wantDX, dy.Rows)
}

func (l *linear) begin(p *Pass, x Input) tensor.Matrix {
	n := x.Rows
	switch {
	case x.Sparse != nil:
		n = x.Sparse.Rows
	case x.Split != nil:
		n = x.Split.(SplitRows).Sources()
	}
	l.x, l.y = x, p.Dev.Scratch(p.rowType(), n, l.w.Value.Cols)
	return l.y
}

func (l *linear) finish(p *Pass, lo, hi int) {
	l.x.times(p.Dev, l.y.Slice(lo, hi), l.w.Value, lo, hi, false, l.after(p, lo, hi))
}

func (l *linear) end(*Pass) {}

func (l *linear) makeDX(p *Pass) tensor.Matrix { return l.bufferDX(p, l.dy.Rows, l.w.Value.Rows) }

func (l *linear) finishGrad(p *Pass, lo, hi int) { l.grad(p, lo, hi) }

func (l *linear) sendGrad(p *Pass, lo, hi int) {
	if dx := l.makeDX(p); !dx.IsZero() {
		p.Dev.MatMul(dx.Slice(lo, hi), l.dy.Slice(lo, hi), l.w.Value, tensor.MatMul{TransB: true, ZerosA: l.zeros(p)})
	}
}

func (l *linear) finishWeightGrad(p *Pass, lo, hi int) {
	l.gradBias(p, lo, hi)
	l.x.gradWeight(p.Dev, l.w.Grad, l.dy, lo, hi, l.zeros(p))
}

func (l *linear) endGrad(*Pass) {}
