package nn

import (
	"starling/tensor"
)

// Decoders are the names Config.Decoder may have, beside none at all.
var Decoders = []string{"dot", "mlp"}

// Decoder scores pairs of vertices by the rows z [vertices, width] that a model
// gives them; a pair is likelier an edge the higher it scores. Both kinds are
// symmetric: s(u,v) = s(v,u).
//
//	dot   s(u,v) = z_u · z_v                                  (Kipf and Welling 2016)
//	mlp   s(u,v) = w₂ · ReLU(W₁(z_u ⊙ z_v) + b₁) + b₂         W₁ [width, width], w₂ [width]
//
// Rows and scores are of the device's own type.
type Decoder struct {
	ones   tensor.Matrix // [width, 1]: a sum over columns is a product with it
	hidden *linear       // nil: dot
	last   *linear

	// Kept from Score to Backward.
	left, right   tensor.Index
	l, r, product tensor.Matrix
}

// newDecoder is nil for a model that has none.
func newDecoder(b *builder, c *Config) *Decoder {
	if c.Decoder == "" {
		return nil
	}
	d := &Decoder{ones: b.dev.New(b.dev.Type(), c.Out, 1)}
	one := make([]float64, c.Out)
	for i := range one {
		one[i] = 1
	}
	b.dev.Upload(d.ones, one)
	if c.Decoder == "mlp" {
		b.prefix, b.layer = "decoder.", c.Layers
		d.hidden = newLinear(b, "lins.0.", c.Out, c.Out, output{act: tensor.ReLU})
		d.last = newLinear(b, "lins.1.", c.Out, 1, output{keepY: true, keepDY: true})
	}
	return d
}

// Score is the scores [pairs, 1] of the pairs of rows left[i] and right[i] of z,
// which the caller frees. With p.Train it keeps what Backward needs, which must follow.
func (d *Decoder) Score(p *Pass, z tensor.Matrix, left, right tensor.Index) tensor.Matrix {
	p = d.pass(p)
	n, dev := left.Len(), p.Dev
	d.left, d.right = left, right
	d.l, d.r = dev.Scratch(z.Type(), n, z.Cols), dev.Scratch(z.Type(), n, z.Cols)
	dev.GatherRows(d.l, z, left)
	dev.GatherRows(d.r, z, right)
	d.product = dev.Scratch(z.Type(), n, z.Cols)
	dev.Multiply(d.product, d.l, d.r)
	var scores tensor.Matrix
	if d.hidden == nil {
		scores = dev.Scratch(z.Type(), n, 1)
		dev.MatMul(scores, d.product, d.ones, tensor.MatMul{})
	} else {
		hidden := d.hidden.Forward(p, rows(d.product))
		scores = d.last.Forward(p, madeBy(d.hidden, p, hidden))
		if !p.Train {
			dev.Free(hidden)
		}
	}
	if !p.Train {
		d.free(dev)
	}
	return scores
}

// Backward adds the gradients for dscores to those of the decoder's parameters and
// of the rows, dz.
func (d *Decoder) Backward(p *Pass, dz, dscores tensor.Matrix) {
	p = d.pass(p)
	dev := p.Dev
	var dproduct tensor.Matrix
	if d.hidden == nil {
		dproduct = dev.Scratch(dz.Type(), dscores.Rows, dz.Cols)
		dev.MatMul(dproduct, dscores, d.ones, tensor.MatMul{TransB: true})
	} else {
		dproduct = d.hidden.Backward(p, d.last.Backward(p, dscores, true), true)
	}
	// The left rows give way to the gradient of the right ones.
	dev.Multiply(d.l, dproduct, d.l)
	dev.Multiply(dproduct, dproduct, d.r)
	dev.ScatterAdd(dz, dproduct, d.left)
	dev.ScatterAdd(dz, d.l, d.right)
	dev.Free(dproduct)
	d.free(dev)
}

// pass is p for rows of pairs instead of vertices.
func (d *Decoder) pass(p *Pass) *Pass {
	return &Pass{Dev: p.Dev, Train: p.Train, Key: p.Key, Rows: p.Dev.Type()}
}

func (d *Decoder) free(dev tensor.Device) {
	for _, m := range []*tensor.Matrix{&d.l, &d.r, &d.product} {
		if !m.IsZero() {
			dev.Free(*m)
		}
		*m = tensor.Matrix{}
	}
}
