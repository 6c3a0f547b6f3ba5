package nn

import "starling/tensor"

// rgcnWeights are the weights of R-GCN (Schlichtkrull et al., ESWC 2018, eqs. 2-4), as PyG's RGCNConv(aggr="mean"): a weight for
// each relation, one root weight and one bias for all vertices. With bases B_k, W_r = Σk c_rk·B_k; with blocks, W_r is
// zero but for square blocks on its diagonal.
type rgcnWeights struct {
	relations, in, out int
	weight, comp       *Param // comp is of bases, or nil
	blocks             int    // 0: none
	rootWeight         *Param
	biases             *Param

	made tensor.Matrix
}

func newRGCN(b *builder, c *TypedConfig, in, out int) *rgcnWeights {
	w := &rgcnWeights{relations: len(c.Relations), in: in, out: out}
	switch n := w.relations; {
	case c.Bases > 0:
		w.weight = b.add("weight", []int{c.Bases, in, out}, false, c.Bases, in*out, glorot(in, out))
		w.comp = b.add("comp", []int{n, c.Bases}, false, n, c.Bases, glorot(n, c.Bases))
	case c.Blocks > 0:
		w.blocks = c.Blocks
		i, k := in/c.Blocks, out/c.Blocks
		w.weight = b.add("weight", []int{n, c.Blocks, i, k}, false, n*in, k, glorot(i, k))
	default:
		w.weight = b.add("weight", []int{n, in, out}, false, n*in, out, glorot(in, out))
	}
	w.rootWeight = b.add("root", []int{in, out}, false, in, out, glorot(in, out))
	w.biases = b.vector("bias", out, zeros)
	return w
}

func (w *rgcnWeights) weights(p *Pass) tensor.Matrix {
	if w.comp == nil && w.blocks == 0 {
		return w.weight.Value
	}
	w.made = p.Dev.Scratch(p.Dev.Type(), w.relations*w.in, w.out)
	if w.comp != nil {
		p.Dev.MatMul(w.made.Reshape(w.relations, w.in*w.out), w.comp.Value, w.weight.Value, tensor.MatMul{})
		return w.made
	}
	p.Dev.Zero(w.made)
	w.eachBlock(w.made, w.weight.Value, func(full, block tensor.Matrix) { p.Dev.Copy(full, block) })
	return w.made
}

// eachBlock calls f with each block of a matrix of all relations and its place among the parameter's rows.
func (w *rgcnWeights) eachBlock(full, param tensor.Matrix, f func(full, block tensor.Matrix)) {
	i, k := w.in/w.blocks, w.out/w.blocks
	for at := 0; at < w.relations*w.blocks; at++ {
		column := at % w.blocks * k
		f(full.Slice(at*i, (at+1)*i).Columns(column, column+k), param.Slice(at*i, (at+1)*i))
	}
}

func (w *rgcnWeights) learn(p *Pass, dw tensor.Matrix) {
	switch {
	case w.comp != nil:
		wide := dw.Reshape(w.relations, w.in*w.out)
		p.Dev.MatMul(w.comp.Grad, wide, w.weight.Value, tensor.MatMul{TransB: true, Add: true})
		p.Dev.MatMul(w.weight.Grad, w.comp.Value, wide, tensor.MatMul{TransA: true, Add: true})
	case w.blocks > 0:
		w.eachBlock(dw, w.weight.Grad, func(full, block tensor.Matrix) { p.Dev.Combine(block, 1, block, 1, full) })
	default:
		p.Dev.Combine(w.weight.Grad, 1, w.weight.Grad, 1, dw)
	}
}

func (w *rgcnWeights) root(*Pass, int) tensor.Matrix { return w.rootWeight.Value }
func (w *rgcnWeights) bias(*Pass, int) tensor.Matrix { return w.biases.Value }

func (w *rgcnWeights) learnRoot(p *Pass, _ int, x, dy tensor.Matrix, zeros float32) {
	p.Dev.MatMul(w.rootWeight.Grad, x, dy, tensor.MatMul{TransA: true, Add: true, ZerosB: zeros})
}

func (w *rgcnWeights) learnBias(p *Pass, _ int, dy tensor.Matrix) {
	p.Dev.ColumnSum(w.biases.Grad, dy, true)
}

func (w *rgcnWeights) release(p *Pass) { freeAll(p, &w.made) }
