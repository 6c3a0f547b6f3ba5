package nn

import "starling/tensor"

const (
	normEps      = 1e-5
	normMomentum = 0.1
)

// newNorm is the norm of the given kind, or nil for "none". Parameters are named
// prefix+"weight" and so on.
func newNorm(b *builder, kind, prefix string, width int, o output) Module {
	switch kind {
	case "batch":
		n := &batchNorm{output: o}
		n.gamma = b.vector(prefix+"weight", width, ones)
		n.beta = b.vector(prefix+"bias", width, zeros)
		one := make([]float64, width)
		for i := range one {
			one[i] = 1
		}
		n.mean = b.buffer(prefix+"running_mean", make([]float64, width))
		n.variance = b.buffer(prefix+"running_var", one)
		return n
	case "layer":
		n := &layerNorm{output: o}
		n.gamma = b.vector(prefix+"weight", width, ones)
		n.beta = b.vector(prefix+"bias", width, zeros)
		return n
	}
	return nil
}

// batchNorm is batch normalization (Ioffe and Szegedy, ICML 2015) over all
// vertices of all workers, followed by activation and dropout:
//
//	y = γ·(x - mean)/sqrt(var + ε) + β       x, y [n, width]
//
// Evaluation uses running statistics.
type batchNorm struct {
	output
	gamma, beta    *Param
	mean, variance *Buffer

	x, mv, sums tensor.Matrix
}

func (n *batchNorm) Forward(p *Pass, x Input) tensor.Matrix { return forward(n, p, x, x.Rows) }

func (n *batchNorm) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(n, p, dy, wantDX, dy.Rows)
}

func (n *batchNorm) begin(p *Pass, x Input) tensor.Matrix {
	n.x = x.Matrix
	n.y = p.Dev.Scratch(p.rowType(), x.Rows, x.Cols)
	n.mv = p.Dev.Scratch(tensor.F64, 2, x.Cols)
	return n.y
}

func (n *batchNorm) send(*Pass, int, int) {}

func (n *batchNorm) gather(p *Pass) { n.moments(p) }

func (n *batchNorm) finish(p *Pass, lo, hi int) {
	p.Dev.BatchNorm(n.y.Slice(lo, hi), n.x.Slice(lo, hi), n.mv, n.gamma.Value, n.beta.Value, normEps,
		n.after(p, lo, hi))
}

func (n *batchNorm) end(p *Pass) {
	if !p.Train {
		p.Dev.Free(n.mv)
	}
}

func (n *batchNorm) moments(p *Pass) {
	running := p.Dev.Scratch(tensor.F64, 2, n.x.Cols)
	defer p.Dev.Free(running)
	p.Dev.Copy(running.Slice(0, 1), n.mean.Value)
	p.Dev.Copy(running.Slice(1, 2), n.variance.Value)
	if !p.Train {
		p.Dev.Copy(n.mv, running)
		return
	}
	sums := p.Dev.Scratch(tensor.F64, 2, n.x.Cols)
	p.Dev.ColumnSums(sums, n.x.Slice(0, p.own(n.x.Rows)))
	p.Agg.AllReduce(sums)
	p.Dev.Moments(n.mv, running, sums, p.count(n.x.Rows), normMomentum)
	p.Dev.Copy(n.mean.Value, running.Slice(0, 1))
	p.Dev.Copy(n.variance.Value, running.Slice(1, 2))
	p.Dev.Free(sums)
}

func (n *batchNorm) makeDX(p *Pass) tensor.Matrix { return n.inPlaceDX(p) }

func (n *batchNorm) finishGrad(p *Pass, lo, hi int) { n.grad(p, lo, hi) }

func (n *batchNorm) finishWeightGrad(*Pass, int, int) {}

func (n *batchNorm) makeSentGrads(p *Pass) { n.sums = p.Dev.Scratch(tensor.F64, 2, n.dy.Cols) }

func (n *batchNorm) gatherGrad(p *Pass) {
	p.Dev.BatchNormSums(n.sums, n.dy, n.x, n.mv, normEps)
	// The parameters' gradients are this worker's share; all gradients are added up later.
	addTo(p.Dev, n.beta.Grad, n.sums.Slice(0, 1))
	addTo(p.Dev, n.gamma.Grad, n.sums.Slice(1, 2))
	p.Agg.AllReduce(n.sums)
}

func (n *batchNorm) rootGrad(*Pass, int, int) {}

func (n *batchNorm) sendGrad(p *Pass, lo, hi int) {
	if n.makeDX(p).IsZero() {
		return
	}
	own := min(max(p.own(n.dy.Rows), lo), hi)
	n.gradRows(p, n.sums, lo, own)
	if own < hi { // the moments were made of own rows, so copies take no part in their gradient
		none := p.Dev.New(tensor.F64, 2, n.dy.Cols)
		n.gradRows(p, none, own, hi)
		p.Dev.Free(none)
	}
}

// gradRows is the gradient of rows lo to hi of x.
func (n *batchNorm) gradRows(p *Pass, sums tensor.Matrix, lo, hi int) {
	if lo < hi {
		p.Dev.BatchNormGrad(n.dx.Slice(lo, hi), n.dy.Slice(lo, hi), n.x.Slice(lo, hi), n.mv, sums, n.gamma.Value,
			p.count(n.x.Rows), normEps)
	}
}

func (n *batchNorm) sendWeightGrad(*Pass, int, int) {}

func (n *batchNorm) endGrad(p *Pass) {
	p.Dev.Free(n.sums)
	p.Dev.Free(n.mv)
}

// addDot adds the sum of products of corresponding numbers to a 1 x 1 gradient.
func addDot(dev tensor.Device, grad, x, y tensor.Matrix) {
	d := dev.Scratch(tensor.F64, 1, 1)
	dev.Dot(d, x, y)
	addTo(dev, grad, d)
	dev.Free(d)
}

// addTo adds a small matrix of another type.
func addTo(dev tensor.Device, dst, src tensor.Matrix) {
	t := dev.Scratch(dst.Type(), src.Rows, src.Cols)
	dev.Copy(t, src)
	dev.Combine(dst, 1, dst, 1, t)
	dev.Free(t)
}

// layerNorm is layer normalization (Ba, Kiros and Hinton 2016) of each row,
// followed by activation and dropout:
//
//	y_i = γ·(x_i - mean_i)/sqrt(var_i + ε) + β       x, y [n, width]
type layerNorm struct {
	rowwise
	output
	gamma, beta *Param

	x, stat tensor.Matrix
	grads   later
}

func (n *layerNorm) Forward(p *Pass, x Input) tensor.Matrix { return forward(n, p, x, 0) }

func (n *layerNorm) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(n, p, dy, wantDX, dy.Rows)
}

func (n *layerNorm) begin(p *Pass, x Input) tensor.Matrix {
	n.x = x.Matrix
	n.y = p.Dev.Scratch(p.rowType(), x.Rows, x.Cols)
	n.stat = p.Dev.Scratch(p.Dev.Type(), x.Rows, 2)
	return n.y
}

func (n *layerNorm) finish(p *Pass, lo, hi int) {
	p.Dev.LayerNorm(n.y.Slice(lo, hi), n.stat.Slice(lo, hi), n.x.Slice(lo, hi), n.gamma.Value, n.beta.Value, normEps,
		n.after(p, lo, hi))
}

func (n *layerNorm) end(p *Pass) {
	if !p.Train {
		p.Dev.Free(n.stat)
	}
}

func (n *layerNorm) makeDX(p *Pass) tensor.Matrix { return n.inPlaceDX(p) }

func (n *layerNorm) finishGrad(p *Pass, lo, hi int) { n.grad(p, lo, hi) }

func (n *layerNorm) finishWeightGrad(*Pass, int, int) {}

func (n *layerNorm) sendGrad(p *Pass, lo, hi int) {
	grads := n.grads.of(p, lo, n.gamma, n.beta)
	p.Dev.LayerNormGrad(n.makeDX(p).Slice(lo, hi), grads[0], grads[1], n.dy.Slice(lo, hi), n.x.Slice(lo, hi),
		n.stat.Slice(lo, hi), n.gamma.Value)
}

func (n *layerNorm) sendWeightGrad(p *Pass, lo, hi int) {
	n.grads.weightGrad(p, lo, hi, n.gamma, n.beta)
}

func (n *layerNorm) endGrad(p *Pass) { p.Dev.Free(n.stat) }
