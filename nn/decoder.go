package nn

import (
	"starling/tensor"
)

// Decoders are the names Config.Decoder may have, beside none at all; RelationDecoders those of a typed model.
var (
	Decoders         = []string{"dot", "mlp"}
	RelationDecoders = []string{"dot", "distmult", "mlp"}
)

// Decoder scores pairs of vertices by the rows z [vertices, width] that a model
// gives them; a pair is likelier an edge the higher it scores. All kinds are
// symmetric: s(u,v) = s(v,u).
//
//	dot       s(u,v) = z_u · z_v                              (Kipf and Welling 2016)
//	distmult  s(u,v) = Σ z_u ⊙ m_r ⊙ z_v                      m_r [width] of the relation r (Yang et al. 2015)
//	mlp       s(u,v) = w₂ · ReLU(W₁(z_u ⊙ z_v) + b₁) + b₂     W₁ [width, width], w₂ [width]
//
// In a typed graph every relation that is scored has weights of its own. Rows and scores are of the device's own type.
type Decoder struct {
	ones tensor.Matrix // [width, 1]: a sum over columns is a product with it
	of   []scorer      // by scored relation; one without types
	scorer

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
	b.layer = c.Layers
	for i := range max(1, len(c.scored())) {
		b.prefix = "decoder."
		if len(c.scored()) > 1 {
			b.prefix += c.Typed.key(c.scored()[i]) + "."
		}
		d.of = append(d.of, newScorer(b, c))
	}
	d.Relation(0)
	return d
}

// scorer has the weights that score pairs; dot has none.
type scorer struct {
	vector       *Param // distmult's m
	hidden, last *linear
}

func newScorer(b *builder, c *Config) (s scorer) {
	switch c.Decoder {
	case "distmult":
		s.vector = b.vector("rel_emb", c.Out, glorot(1, c.Out))
	case "mlp":
		s.hidden = newLinear(b, "lins.0.", c.Out, c.Out, output{act: tensor.ReLU})
		s.last = newLinear(b, "lins.1.", c.Out, 1, output{keepY: true, keepDY: true})
	}
	return s
}

// scored are the relations whose edges a typed model scores.
func (c *Config) scored() []int {
	if c.Typed == nil {
		return nil
	}
	return c.Typed.Scored
}

// Relation says which of the scored relations the next pairs are of.
func (d *Decoder) Relation(i int) { d.scorer = d.of[i] }

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
	switch {
	case d.vector != nil:
		scores = dev.Scratch(z.Type(), n, 1)
		dev.MatMul(scores, d.product, d.vector.Value, tensor.MatMul{TransB: true})
	case d.hidden == nil:
		scores = dev.Scratch(z.Type(), n, 1)
		dev.MatMul(scores, d.product, d.ones, tensor.MatMul{})
	default:
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
	switch {
	case d.vector != nil:
		dproduct = dev.Scratch(dz.Type(), dscores.Rows, dz.Cols)
		dev.MatMul(dproduct, dscores, d.vector.Value, tensor.MatMul{})
		dev.MatMul(d.vector.Grad, dscores, d.product, tensor.MatMul{TransA: true, Add: true})
	case d.hidden == nil:
		dproduct = dev.Scratch(dz.Type(), dscores.Rows, dz.Cols)
		dev.MatMul(dproduct, dscores, d.ones, tensor.MatMul{TransB: true})
	default:
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
