package nn

// newSAGE is GraphSAGE with the mean aggregator (Hamilton, Ying and Leskovec,
// NeurIPS 2017, alg. 1), as PyG's SAGEConv:
//
//	y_i = mean over j in N(i) of x_j · W + x_i · R + b
//
// x [n, in], W and R [in, out], y [n, out].
func newSAGE(b *builder, in, out int, o output) *sumConv {
	c := &sumConv{output: o, reduce: Reduction{Kind: Mean}}
	c.w = b.weight("lin_l.weight", in, out, fanIn(in))
	c.bias = b.vector("lin_l.bias", out, fanIn(in))
	c.r = b.weight("lin_r.weight", in, out, fanIn(in))
	return c
}

// newSAGEGCN is GraphSAGE with the gcn aggregator (same paper, eq. 2), as DGL's
// SAGEConv("gcn"):
//
//	y_i = (sum over j in N(i) of x_j + x_i) / (|N(i)|+1) · W + b
func newSAGEGCN(b *builder, in, out int, o output) *sumConv {
	c := &sumConv{output: o, reduce: Reduction{Kind: MeanSelf}}
	c.w = b.weight("fc_neigh.weight", in, out, glorot(in, out))
	c.bias = b.vector("bias", out, zeros)
	return c
}
