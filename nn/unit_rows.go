package nn

import (
	"math"

	"starling/tensor"
)

// unitEps keeps the length of a row of zeros from being one.
const unitEps = 1e-12

// unitRows brings rows to length 1 (Lv et al., KDD 2021, eq. 15):
//
//	y_i = x_i / sqrt(Σc x_ic² + ε)        x, y [n, width]
//
// A row beside its negative has mean 0 and variance Σc x_ic²/width, so that layer norm of both is that, but for a factor.
type unitRows struct {
	rowwise
	output
	gamma, beta tensor.Matrix // [1, 2·width], constants

	x, stat tensor.Matrix
}

func newUnitRows(b *builder, width int, o output) *unitRows {
	n := &unitRows{output: o, gamma: b.dev.New(b.dev.Type(), 1, 2*width), beta: b.dev.New(b.dev.Type(), 1, 2*width)}
	factors := make([]float64, 2*width)
	for i := range factors {
		factors[i] = 1 / math.Sqrt(float64(width))
	}
	b.dev.Upload(n.gamma, factors)
	return n
}

func (n *unitRows) Forward(p *Pass, x Input) tensor.Matrix { return forward(n, p, x, 0) }

func (n *unitRows) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(n, p, dy, wantDX, dy.Rows)
}

func (n *unitRows) begin(p *Pass, x Input) tensor.Matrix {
	n.x = x.Matrix
	n.y = p.Dev.Scratch(p.rowType(), x.Rows, x.Cols)
	n.stat = p.Dev.Scratch(p.Dev.Type(), x.Rows, 2)
	return n.y
}

func (n *unitRows) eps() float64 { return unitEps / float64(n.x.Cols) }

// beside is rows lo to hi of x and their negatives.
func (n *unitRows) beside(p *Pass, lo, hi int) (both, left, right tensor.Matrix) {
	x := n.x.Slice(lo, hi)
	both = p.Dev.Scratch(p.rowType(), x.Rows, 2*x.Cols)
	left, right = both.Columns(0, x.Cols), both.Columns(x.Cols, 2*x.Cols)
	p.Dev.Copy(left, x)
	p.Dev.Combine(right, -1, x, 0, tensor.Matrix{})
	return both, left, right
}

func (n *unitRows) finish(p *Pass, lo, hi int) {
	both, _, _ := n.beside(p, lo, hi)
	y := p.Dev.Scratch(p.rowType(), both.Rows, both.Cols)
	p.Dev.LayerNorm(y, n.stat.Slice(lo, hi), both, n.gamma, n.beta, n.eps(), tensor.Epilogue{})
	p.Dev.Copy(n.y.Slice(lo, hi), y.Columns(0, n.y.Cols))
	freeAll(p, &both, &y)
}

func (n *unitRows) end(p *Pass) {
	if !p.Train {
		p.Dev.Free(n.stat)
	}
}

func (n *unitRows) makeDX(p *Pass) tensor.Matrix { return n.bufferDX(p, n.dy.Rows, n.dy.Cols) }

func (n *unitRows) finishGrad(*Pass, int, int) {}

func (n *unitRows) finishWeightGrad(*Pass, int, int) {}

func (n *unitRows) sendGrad(p *Pass, lo, hi int) {
	both, _, _ := n.beside(p, lo, hi)
	rows, cols, t := both.Rows, both.Cols, p.Dev.Type()
	d := p.Dev.New(p.rowType(), rows, cols)
	p.Dev.Copy(d.Columns(0, cols/2), n.dy.Slice(lo, hi))
	unused := p.Dev.New(t, 2, cols)
	p.Dev.LayerNormGrad(d, unused.Slice(0, 1), unused.Slice(1, 2), d, both, n.stat.Slice(lo, hi), n.gamma)
	p.Dev.Combine(n.makeDX(p).Slice(lo, hi), 1, d.Columns(0, cols/2), -1, d.Columns(cols/2, cols))
	freeAll(p, &both, &d, &unused)
}

func (n *unitRows) endGrad(p *Pass) { p.Dev.Free(n.stat) }
