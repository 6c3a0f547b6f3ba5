package nn

import "starling/tensor"

// Multiplier is what makes the product of a layer's sums and its weights in one, where weights are
// divided over workers as vertices are (Plexus, SC 2025). Rows are this worker's own; weights are
// whole, and so are their gradients, of which each worker makes a part.
type Multiplier interface {
	// Multiply: y = A·x·W. constant says that x is the same in every pass.
	Multiply(layer int, r Reduction, y, x, w tensor.Matrix, constant, training bool)
	// MultiplyGrad goes back from the last training pass: dw += the worker's part of (A·x)ᵀ·dy, and
	// dx = Aᵀ·(dy·Wᵀ) unless dx is none.
	MultiplyGrad(layer int, r Reduction, dx, dw, dy, w tensor.Matrix)
}

// Product is what a layer has a Multiplier make.
type Product struct {
	Layer, In, Out int
	Constant       bool // of features that are the same in every pass
	WantDX         bool
}

// Product is the product of layer i of those that Traffic lists; ok is false where it makes sums alone.
func (m *Model) Product(i int, sparse, training bool) (p Product, ok bool) {
	for at, mod := range m.modules {
		if _, is := moduleTraffic(mod, false, false, false); !is {
			continue
		}
		if i--; i >= 0 {
			continue
		}
		if r, is := mod.(*residual); is {
			mod = r.conv
		}
		c, is := mod.(*sumConv)
		if !is || c.eps != nil || sparse && at == 0 {
			return p, false
		}
		return Product{Layer: c.layer, In: c.in(), Out: c.outWidth(), WantDX: at > 0,
			Constant: at == 0 && !(training && m.dropsInput())}, true
	}
	return p, false
}

// multiplies reports whether the layer's product is made by the pass's Multiplier.
func (c *sumConv) multiplies(p *Pass) bool {
	return p.Multiplier != nil && c.x.Sparse == nil && c.x.Split == nil && c.eps == nil
}
