package nn

// newGCN is the graph convolution of Kipf and Welling (ICLR 2017, eq. 2):
//
//	y = D^-1/2 (A+I) D^-1/2 x W + b
//
// with D the in-degrees of A+I. Loops in A are replaced by the one of I.
// x [n, in], W [in, out], y [n, out].
func newGCN(b *builder, in, out int, o output) *sumConv {
	c := &sumConv{output: o, reduce: Reduction{Kind: Symmetric}}
	c.bias = b.vector("bias", out, zeros)
	c.w = b.weight("lin.weight", in, out, glorot(in, out))
	return c
}
