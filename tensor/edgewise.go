package tensor

// Edgewise are the operations of layers whose messages depend on both ends of an
// edge, or on the edge itself. adjT is the transpose of adj. Wide matrices (rows of
// vertices) are in the type of activations, the others in the device's. Values of
// entries are not looked at.
type Edgewise interface {
	// DynamicAttend is attention whose scores look at sums of rows (GATv2), all heads
	// at once; with edges, t_e = features_e · weight, else 0:
	//   e_ij = a · leaky(z_j + right_i + t_e);  α_ij = softmax over row i of e_ij
	//   dst_i = sum over j of drop(α_ij) · z_j       (per head)
	// alpha (entries x heads), if given, keeps α for the backward pass. z is Cols x
	// (heads·width), right Rows x (heads·width), a 1 x (heads·width). A row with no
	// entry is zero.
	DynamicAttend(dst, alpha Matrix, adj *Sparse, z, right, a Matrix, op Attention, edges EdgeInput)
	// DynamicAttendGrad: from ddst: dz, dright (overwritten), da and edges' DWeight
	// (added to). adjT is a Transpose with its permutation. alpha is overwritten; dz may be
	// in the place of dst.
	DynamicAttendGrad(dz, dright, da Matrix, adj, adjT *Sparse, z, right, a, alpha, dst, ddst Matrix,
		op Attention, edges EdgeInput)

	// EdgeDot: dst_eh = q_i · k_j for every entry e = (i,j) and head h, of which dst has a column each. q is Rows x
	// (heads·width), k Cols x (heads·width).
	EdgeDot(dst Matrix, adj *Sparse, q, k Matrix)
	// EdgeDotGrad: from ddst, the gradient of dst: dq_i = Σj ddst_eh · k_j, dk_j = Σi ddst_eh · q_i (both overwritten).
	// adjT is a Transpose with its permutation.
	EdgeDotGrad(dq, dk Matrix, adj, adjT *Sparse, q, k, ddst Matrix)

	// FilmMean: dst_i = mean over entries (i,j) of relu(γ_i · z_j + β_i), number by
	// number, or added to dst; zero where row i has none. film is Rows x 2·width: β,
	// then γ.
	FilmMean(dst Matrix, adj *Sparse, z, film Matrix, add bool)
	// FilmMeanGrad: from ddst: dz, dfilm (overwritten).
	FilmMeanGrad(dz, dfilm Matrix, adj, adjT *Sparse, z, film, ddst Matrix)

	// EdgeSum: dst_i = sum over entries e = (i,j) of relu(src_j + features_e · weight + bias).
	EdgeSum(dst Matrix, adj *Sparse, src Matrix, edges EdgeInput)
	// EdgeSumGrad: from ddst: dsrc (overwritten), DWeight and DBias (added to). adjT is a
	// Transpose with its permutation.
	EdgeSumGrad(dsrc Matrix, adj, adjT *Sparse, src, ddst Matrix, edges EdgeInput)
}

// EdgeInput are the features of entries and the linear map that they go through.
// Without features there is none.
type EdgeInput struct {
	Features Matrix // entries x d
	Weight   Matrix // d x width
	Bias     Matrix // 1 x width, or none
	// Gradients, of the backward pass.
	DWeight, DBias Matrix
}
