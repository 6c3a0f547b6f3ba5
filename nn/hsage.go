package nn

import "starling/tensor"

// hsageWeights are the weights of GraphSAGE by relation, summed, as PyG's HeteroConv of SAGEConv:
//
//	y_i = Σr ( (mean over j in N_r(i) of x_j)·L_r + l_r + x_i·R_r )
//
// over the relations r that lead to the type of i. What a vertex's own row meets, and what is added, are sums over these
// relations: made once a pass, each serves all of a type's rows.
type hsageWeights struct {
	types             *TypedConfig
	in, out           int
	left, shift, self []*Param // by relation

	made, roots, biases tensor.Matrix // roots [types·in, out], biases [types, out]
}

func newHSAGE(b *builder, c *TypedConfig, in, out int) *hsageWeights {
	w := &hsageWeights{types: c, in: in, out: out}
	prefix := b.prefix
	for r := range c.Relations {
		b.prefix = prefix + "convs." + c.key(r) + "."
		w.left = append(w.left, b.weight("lin_l.weight", in, out, fanIn(in)))
		w.shift = append(w.shift, b.vector("lin_l.bias", out, fanIn(in)))
		w.self = append(w.self, b.weight("lin_r.weight", in, out, fanIn(in)))
	}
	b.prefix = prefix
	return w
}

func (w *hsageWeights) weights(p *Pass) tensor.Matrix {
	t := p.Dev.Type()
	w.made = p.Dev.Scratch(t, len(w.left)*w.in, w.out)
	w.roots = p.Dev.New(t, len(w.types.Types)*w.in, w.out)
	w.biases = p.Dev.New(t, len(w.types.Types), w.out)
	for r, rel := range w.types.Relations {
		p.Dev.Copy(w.made.Slice(r*w.in, (r+1)*w.in), w.left[r].Value)
		root, bias := w.rootOf(rel.Target), w.biases.Slice(rel.Target, rel.Target+1)
		p.Dev.Combine(root, 1, root, 1, w.self[r].Value)
		p.Dev.Combine(bias, 1, bias, 1, w.shift[r].Value)
	}
	return w.made
}

func (w *hsageWeights) rootOf(t int) tensor.Matrix { return w.roots.Slice(t*w.in, (t+1)*w.in) }

func (w *hsageWeights) learn(p *Pass, dw tensor.Matrix) {
	for r, param := range w.left {
		p.Dev.Combine(param.Grad, 1, param.Grad, 1, dw.Slice(r*w.in, (r+1)*w.in))
	}
}

func (w *hsageWeights) root(_ *Pass, t int) tensor.Matrix {
	if len(w.types.into(t)) == 0 {
		return tensor.Matrix{}
	}
	return w.rootOf(t)
}

func (w *hsageWeights) bias(_ *Pass, t int) tensor.Matrix {
	if len(w.types.into(t)) == 0 {
		return tensor.Matrix{}
	}
	return w.biases.Slice(t, t+1)
}

// learnRoot gives every relation that leads to the type the same gradient: they were added up.
func (w *hsageWeights) learnRoot(p *Pass, t int, x, dy tensor.Matrix, zeros float32) {
	list := w.types.into(t)
	if len(list) == 0 {
		return
	}
	d := p.Dev.Scratch(p.Dev.Type(), w.in, w.out)
	p.Dev.MatMul(d, x, dy, tensor.MatMul{TransA: true, ZerosB: zeros})
	for _, r := range list {
		p.Dev.Combine(w.self[r].Grad, 1, w.self[r].Grad, 1, d)
	}
	p.Dev.Free(d)
}

func (w *hsageWeights) learnBias(p *Pass, t int, dy tensor.Matrix) {
	for _, r := range w.types.into(t) {
		p.Dev.ColumnSum(w.shift[r].Grad, dy, true)
	}
}

func (w *hsageWeights) release(p *Pass) { freeAll(p, &w.made, &w.roots, &w.biases) }
