package nn

import "starling/tensor"

// gin is the graph isomorphism layer of Xu et al. (ICLR 2019, eq. 4.1), as PyG's
// GINConv with an MLP of two linear maps:
//
//	y_i = relu( ((1+ε) x_i + sum over j in N(i) of x_j) · W0 + b0 ) · W1 + b1
//
// x [n, in], W0 [in, hidden], W1 [hidden, out]. ε is fixed at 0 or trained.
type gin struct {
	sum *sumConv // up to the ReLU
	mlp *linear
}

func newGIN(b *builder, in, hidden, out int, trainEps bool, o output) *gin {
	first := &sumConv{output: output{layer: o.layer, act: tensor.ReLU}, reduce: Reduction{Kind: Sum, Self: 1}}
	if trainEps {
		first.eps = b.vector("eps", 1, zeros)
	}
	first.w = b.weight("nn.0.weight", in, hidden, fanIn(in))
	first.bias = b.vector("nn.0.bias", hidden, fanIn(in))
	return &gin{sum: first, mlp: newLinear(b, "nn.2.", hidden, out, o)}
}

func (g *gin) Forward(p *Pass, x Input) tensor.Matrix {
	hidden := g.sum.Forward(p, x)
	y := g.mlp.Forward(p, madeBy(g.sum, p, hidden))
	if !p.Train {
		p.Dev.Free(hidden)
	}
	return y
}

func (g *gin) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return g.sum.Backward(p, g.mlp.Backward(p, dy, true), wantDX)
}
