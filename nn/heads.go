package nn

import "starling/tensor"

// attended is how an attention layer ends: its heads beside each other or their mean,
// then bias, activation and dropout.
type attended struct {
	output
	mean   tensor.Matrix // H·C x C, averages the heads; none to concatenate
	att, y tensor.Matrix // the heads' sums, and what the layer gives
	dy, g  tensor.Matrix // the gradient of y, and before the heads' mean
}

func (l *attended) finish(p *Pass, lo, hi int) {
	y, att, after := l.y.Slice(lo, hi), l.att.Slice(lo, hi), l.after(p, lo, hi)
	if l.mean.IsZero() {
		p.Dev.Activate(y, att, after)
	} else {
		p.Dev.MatMul(y, att, l.mean, tensor.MatMul{After: after})
	}
}

// takeGrad takes the gradient of y, and makes room for the heads'.
func (l *attended) takeGrad(p *Pass, dy tensor.Matrix) {
	l.dy, l.g = dy, dy
	if !l.mean.IsZero() {
		l.g = p.Dev.Scratch(p.rowType(), dy.Rows, l.att.Cols)
	}
}

func (l *attended) finishGrad(p *Pass, lo, hi int) {
	l.grad(p, l.dy, l.y, lo, hi)
	if !l.mean.IsZero() {
		p.Dev.MatMul(l.g.Slice(lo, hi), l.dy.Slice(lo, hi), l.mean, tensor.MatMul{TransB: true})
	}
}

func (l *attended) finishLearn(p *Pass, lo, hi int) { l.gradBias(p, l.dy, lo, hi) }

func (l *attended) rootGrad(*Pass, int, int) {}

// endGrad forgets the gradients.
func (l *attended) endGrad(p *Pass) {
	if !l.mean.IsZero() {
		p.Dev.Free(l.g)
	}
	l.dy, l.g = tensor.Matrix{}, tensor.Matrix{}
}
