package nn

import "starling/tensor"

// residual is the block of ResGCN+ and ResSAGE+ (Li et al., "DeeperGCN", 2020,
// §3: pre-activation), PyG's DeepGCNLayer("res+"):
//
//	y = x + conv(dropout(relu(norm(x))))        x, y [n, hidden]
//
// The path straight through is what lets 28 and 56 layers learn.
type residual struct {
	norm, conv Module // conv keeps the gradient of y
}

func (r *residual) Forward(p *Pass, x Input) tensor.Matrix {
	h := r.norm.Forward(p, x)
	y := r.conv.Forward(p, madeBy(r.norm, p, h))
	p.Dev.Combine(y, 1, y, 1, x.Slice(0, y.Rows))
	if !p.Train {
		p.Dev.Free(h)
	}
	return y
}

// Backward uses that conv has no activation and so leaves dy as it is.
func (r *residual) Backward(p *Pass, dy tensor.Matrix, _ bool) tensor.Matrix {
	dx := r.norm.Backward(p, r.conv.Backward(p, dy, true), true)
	own := dx.Slice(0, dy.Rows)
	p.Dev.Combine(own, 1, own, 1, dy)
	p.Dev.Free(dy)
	return dx
}
