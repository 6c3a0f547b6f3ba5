package nn

import "starling/tensor"

// attended is how an attention layer ends: its heads beside each other or their mean,
// then bias, activation and dropout.
type attended struct {
	output
	mean tensor.Matrix // H·C x C, averages the heads; none to concatenate
	att  tensor.Matrix // the heads' sums
	g    tensor.Matrix // the gradient before the heads' mean
}

func (l *attended) finish(p *Pass, lo, hi int) {
	y, att, after := l.y.Slice(lo, hi), l.att.Slice(lo, hi), l.after(p, lo, hi)
	if l.mean.IsZero() {
		p.Dev.Activate(y, att, after)
	} else {
		p.Dev.MatMul(y, att, l.mean, tensor.MatMul{Epilogue: after})
	}
}

func (l *attended) beginGrad(p *Pass, dy tensor.Matrix, wantDX bool) {
	l.output.beginGrad(p, dy, wantDX)
	l.g = dy
	if !l.mean.IsZero() {
		l.g = p.Dev.Scratch(p.rowType(), dy.Rows, l.att.Cols)
	}
}

func (l *attended) finishGrad(p *Pass, lo, hi int) {
	l.grad(p, lo, hi)
	if !l.mean.IsZero() {
		p.Dev.MatMul(l.g.Slice(lo, hi), l.dy.Slice(lo, hi), l.mean, tensor.MatMul{TransB: true})
	}
}

func (l *attended) finishWeightGrad(p *Pass, lo, hi int) { l.gradBias(p, lo, hi) }

func (l *attended) rootGrad(*Pass, int, int) {}

// sentGrad is a buffer for the gradient of messages z. Kernels have done with the heads' sums
// when they write it, so that it takes their place where there are as many rows.
func (l *attended) sentGrad(p *Pass, z tensor.Matrix) tensor.Matrix {
	if !p.InRanges && l.att.Rows == z.Rows {
		return l.att
	}
	return p.Dev.Scratch(p.rowType(), z.Rows, z.Cols)
}

// freeEdgewise gives back what only the backward pass across edges needed.
func (l *attended) freeEdgewise(p *Pass, dz tensor.Matrix) {
	if !l.mean.IsZero() {
		freeAll(p, &l.g)
	}
	if !tensor.Same(l.att, dz) {
		freeAll(p, &l.att)
	}
	l.g, l.att = tensor.Matrix{}, tensor.Matrix{}
	l.freeDY(p)
}
