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

// batchNorm is batch normalisation (Ioffe and Szegedy, ICML 2015) over all
// vertices of all workers, followed by activation and dropout:
//
//	y = γ·(x - mean)/sqrt(var + ε) + β       x, y [n, width]
//
// Evaluation uses running statistics.
type batchNorm struct {
	output
	gamma, beta    *Param
	mean, variance *Buffer

	x, y, mv tensor.Matrix
}

func (n *batchNorm) Forward(p *Pass, x Input) tensor.Matrix {
	n.x = x.Matrix
	n.y = p.Dev.Scratch(p.rowType(), x.Rows, x.Cols)
	n.mv = p.Dev.Scratch(tensor.F64, 2, x.Cols)
	n.moments(p)
	p.Dev.BatchNorm(n.y, n.x, n.mv, n.gamma.Value, n.beta.Value, normEps, n.after(p, x.Rows))
	if !p.Train {
		p.Dev.Free(n.mv)
	}
	return n.y
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
	p.Agg.AddUp(sums)
	p.Dev.Moments(n.mv, sums, p.Vertices)
	p.Dev.Running(running, n.mv, p.Vertices, normMomentum)
	p.Dev.Copy(n.mean.Value, running.Slice(0, 1))
	p.Dev.Copy(n.variance.Value, running.Slice(1, 2))
	p.Dev.Free(sums)
}

func (n *batchNorm) Backward(p *Pass, dy tensor.Matrix, wantDX bool) (dx tensor.Matrix) {
	n.grad(p, dy, n.y)
	own := p.Dev.Scratch(tensor.F64, 2, n.x.Cols)
	all := p.Dev.Scratch(tensor.F64, 2, n.x.Cols)
	p.Dev.BatchNormSums(own, dy, n.x, n.mv, normEps)
	// The parameters' gradients are this worker's share; all gradients are added up later.
	addTo(p.Dev, n.beta.Grad, own.Slice(0, 1))
	addTo(p.Dev, n.gamma.Grad, own.Slice(1, 2))
	p.Dev.Copy(all, own)
	p.Agg.AddUp(all)
	if wantDX {
		dx = p.Dev.Scratch(p.rowType(), dy.Rows, dy.Cols)
		n.gradRows(p, dx, dy, all, 0, p.own(dy.Rows))
		// The moments were made of own rows, so copies take no part in their gradient.
		p.Dev.Zero(all)
		n.gradRows(p, dx, dy, all, p.own(dy.Rows), dy.Rows)
	}
	p.Dev.Free(own)
	p.Dev.Free(all)
	p.Dev.Free(n.mv)
	return dx
}

// gradRows is the gradient of rows lo to hi of x.
func (n *batchNorm) gradRows(p *Pass, dx, dy, sums tensor.Matrix, lo, hi int) {
	if lo < hi {
		p.Dev.BatchNormGrad(dx.Slice(lo, hi), dy.Slice(lo, hi), n.x.Slice(lo, hi), n.mv, sums, n.gamma.Value, p.Vertices, normEps)
	}
}

// addTo adds a small matrix of another type.
func addTo(dev tensor.Device, dst, src tensor.Matrix) {
	t := dev.Scratch(dst.Type(), src.Rows, src.Cols)
	dev.Copy(t, src)
	dev.Combine(dst, 1, dst, 1, t)
	dev.Free(t)
}

// layerNorm is layer normalisation (Ba, Kiros and Hinton 2016) of each row,
// followed by activation and dropout:
//
//	y_i = γ·(x_i - mean_i)/sqrt(var_i + ε) + β       x, y [n, width]
type layerNorm struct {
	output
	gamma, beta *Param

	x, y, stat tensor.Matrix
}

func (n *layerNorm) Forward(p *Pass, x Input) tensor.Matrix {
	n.x = x.Matrix
	n.y = p.Dev.Scratch(p.rowType(), x.Rows, x.Cols)
	n.stat = p.Dev.Scratch(p.Dev.Type(), x.Rows, 2)
	p.Dev.LayerNorm(n.y, n.stat, n.x, n.gamma.Value, n.beta.Value, normEps, n.after(p, x.Rows))
	if !p.Train {
		p.Dev.Free(n.stat)
	}
	return n.y
}

func (n *layerNorm) Backward(p *Pass, dy tensor.Matrix, _ bool) tensor.Matrix {
	n.grad(p, dy, n.y)
	dx := p.Dev.Scratch(p.rowType(), dy.Rows, dy.Cols)
	p.Dev.LayerNormGrad(dx, n.gamma.Grad, n.beta.Grad, dy, n.x, n.stat, n.gamma.Value)
	p.Dev.Free(n.stat)
	return dx
}
