package nn

import "starling/tensor"

// linear is y = dropout(act(x·W + b)). x [n, in], W [in, out], y [n, out].
type linear struct {
	output
	w *Param

	x Input
	y tensor.Matrix
}

// newLinear names its parameters prefix+"weight" and prefix+"bias".
func newLinear(b *builder, prefix string, in, out int, o output) *linear {
	l := &linear{output: o}
	l.w = b.weight(prefix+"weight", in, out, fanIn(in))
	l.bias = b.vector(prefix+"bias", out, fanIn(in))
	return l
}

func (l *linear) Forward(p *Pass, x Input) tensor.Matrix {
	n := x.Rows
	if x.Sparse != nil {
		n = x.Sparse.Rows
	}
	l.x, l.y = x, p.Dev.Scratch(p.rowType(), n, l.w.Value.Cols)
	x.times(p.Dev, l.y, l.w.Value, 0, n, false, l.after(p, n))
	return l.y
}

func (l *linear) Backward(p *Pass, dy tensor.Matrix, wantDX bool) (dx tensor.Matrix) {
	l.grad(p, dy, l.y)
	l.x.gradWeight(p.Dev, l.w.Grad, dy)
	if wantDX {
		dx = p.Dev.Scratch(p.rowType(), dy.Rows, l.w.Value.Rows)
		p.Dev.MatMul(dx, dy, l.w.Value, tensor.MatMul{TransB: true})
	}
	return dx
}
