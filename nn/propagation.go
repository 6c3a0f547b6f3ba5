package nn

import "starling/tensor"

// propagation is a sum over neighbours without weights, y = A·x under a reduction. Decoupled models end in as many of
// them as they have layers (SGC, APPNP without restarts; NeutronTP's decoupled training):
//
//	y = A·(A·( … (MLP(x)) ))
//
// Rows are as wide as the result, x [src, out], y [dst, out].
type propagation struct {
	output
	reduce Reduction
}

// Propagator is an Aggregator that can make the sums of several layers, one of the other's, at once: rows need not be
// whole between them. Chains is false where it would do so one by one.
type Propagator interface {
	Chains() bool
	// Chain: dst = Aⁿ·src, of n layers from one on; ChainGrad: dsrc = (Aᵀ)ⁿ·ddst.
	Chain(layer, n int, r Reduction, dst, src tensor.Matrix)
	ChainGrad(layer, n int, r Reduction, dsrc, ddst tensor.Matrix)
}

// decoupled is an MLP of as many layers as are asked for, then as many sums.
func (m *Model) decoupled(b *builder) {
	m.stack(b, "lins.", m.dense)
	for l := range m.Config.Layers {
		b.prefix, b.layer = "", l
		last := l == m.Config.Layers-1
		m.append(b, &propagation{output{layer: l, keepY: last}, Reduction{Kind: Symmetric}})
		m.convs++
	}
}

func (c *propagation) Forward(p *Pass, x Input) tensor.Matrix {
	dst, _ := p.Agg.Rows(c.layer)
	c.y = p.Dev.Scratch(p.rowType(), dst, x.Cols)
	p.Agg.Sum(c.layer, c.reduce, c.y, x.Matrix)
	return c.y
}

func (c *propagation) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	c.beginGrad(p, dy, wantDX)
	dx := c.bufferDX(p, c.sourceRows(p), dy.Cols)
	if wantDX {
		p.Agg.SumGrad(c.layer, c.reduce, dx, dy)
	}
	c.freeY(p)
	c.freeDY(p)
	return dx
}

// chained is how many modules from i on are sums of each other, which the aggregator makes at once; 0: none.
func (m *Model) chained(p *Pass, i int) (n int) {
	if on, ok := p.Agg.(Propagator); !ok || !on.Chains() {
		return 0
	}
	for _, mod := range m.modules[i:] {
		if _, ok := mod.(*propagation); !ok {
			break
		}
		n++
	}
	return n
}

// forwardChain runs n propagations from module i on at once.
func (m *Model) forwardChain(p *Pass, i, n int, x Input) tensor.Matrix {
	first, last := m.modules[i].(*propagation), m.modules[i+n-1].(*propagation)
	dst, _ := p.Agg.Rows(last.layer)
	last.y = p.Dev.Scratch(p.rowType(), dst, x.Cols)
	p.Agg.(Propagator).Chain(first.layer, n, first.reduce, last.y, x.Matrix)
	return last.y
}

// backwardChain goes back through the propagations up to module i, and returns the first of them.
func (m *Model) backwardChain(p *Pass, i int, dy tensor.Matrix) (first int, dx tensor.Matrix) {
	for first = i; first > 0 && m.chained(p, first-1) > 0; first-- {
	}
	from, last := m.modules[first].(*propagation), m.modules[i].(*propagation)
	last.beginGrad(p, dy, true)
	dx = last.bufferDX(p, from.sourceRows(p), dy.Cols)
	p.Agg.(Propagator).ChainGrad(from.layer, i-first+1, from.reduce, dx, dy)
	last.freeY(p)
	last.freeDY(p)
	return first, dx
}
