package tensor

// Device is what layers, losses and optimisers compute with. An operation's
// matrices all belong to the device it is called on. Where dst is named first it
// is overwritten unless the operation says it adds. dst may be the same view as
// an input only where its comment says so ("in place"); views that overlap in part are
// never allowed. Sizes that do not fit are a bug of the caller and panic; Err has what
// fails on the device.
//
// Operations take effect in the order of their calls, but one may still be running when its
// call returns. What an operation computes stays on the device, single numbers too. The host
// waits where memory of its own is written: in Download and Pack, and in Sync. Host slices
// that an operation reads may be reused when it returns, but for those of FromHost. One
// goroutine at a time calls a device.
//
// Numbers of a device: parameters, their gradients and the optimiser's state are
// of the device's own Type (float32, or float64 on the reference device). Rows
// of vertices (features, activations and their gradients) may be of that type or
// bfloat16. Sums over rows (of columns, of losses) are always float64.
type Device interface {
	Allocator
	Operations
}

// Operations are what a device computes. Who intercepts them sees each as a Call.
type Operations interface {
	Dense
	Graphs
	Edgewise
	Elements
	Norms
	Losses
	Optimisers
	Packer
}

// GPUChunk is Chunk of a GPU: each of its operations has work for all multiprocessors.
const GPUChunk = 1 << 27

// Allocator makes, fills and frees matrices.
type Allocator interface {
	// Type is the type of parameters: F32 or F64.
	Type() DType
	// RowType is the type rows of vertices get when the user asked for t: BF16 stays
	// BF16 on the CPU; the reference device keeps F64 whatever is asked.
	RowType(t DType) DType
	// Chunk is about how many numbers to go through at a time, where rows are made and used up piece by piece: few
	// enough for a processor's caches, or enough to fill a GPU.
	Chunk() int

	// New is a matrix of zeros.
	New(t DType, rows, cols int) Matrix
	// Scratch is a matrix of any content, for results that are overwritten at once.
	Scratch(t DType, rows, cols int) Matrix
	// Free gives the memory of a matrix made by New, Scratch or Staging back for reuse. A
	// view must not be freed, nor a matrix used after.
	Free(Matrix)

	// FromHost is a matrix of a host slice ([]float32, []uint16 for bfloat16, []uint32 or
	// []int64), without a copy where the device can see host memory: the slice must stay as
	// it is while the matrix is in use. This is how mapped features larger than memory are
	// used. The matrix is not freed: its memory goes back when no handle is left.
	FromHost(rows, cols int, host any) Matrix
	// Upload fills dst with the numbers of a host slice ([]float64 or []float32, rounded to
	// dst's type; []uint16, []uint32 and []int64 if they are of its type). Download reads m,
	// row by row, and waits for all that was called before.
	Upload(dst Matrix, host any)
	Download(host any, m Matrix)
	// Staging is host memory of any content for what goes over a wire; Free the matrix
	// after use.
	Staging(bytes int) (Matrix, []byte)

	// Usage is the bytes of matrices made by New, Scratch and Staging, and by FromHost where
	// that copies: now, and at most.
	Usage() (inUse, peak int64)
	// Sync waits until all operations called before are done.
	Sync()
	// Err is why the device failed: no memory, or an error of its driver. What failed stays failed: operations then do
	// nothing, matrices have no memory, and Download and Pack leave the host's as it is. Who reads numbers asks for
	// it after.
	Err() error
	// Close frees all memory and stops the device's threads.
	Close()
}

// HostReader is a device that can read rows of the host's memory where its own is too small for them: HostRows is a
// matrix of a host slice, in a type, which operations read and none writes. It is not freed.
type HostReader interface {
	HostRows(t DType, rows, cols int, host any) Matrix
}

// Returner is a device whose FromHost copies. Return gives the memory of such a matrix, or of one of New or Scratch,
// back at once, where nothing will read it again.
type Returner interface {
	Return(Matrix)
}

// Feeder is a device that copies and gathers what the next step reads while it computes this one. Ahead calls f, which
// makes matrices (FromHost, Upload, Scratch, GatherRows): operations that are called after it must not use them before
// Join. What was called before Ahead is done before them.
type Feeder interface {
	Ahead(f func()) Fed
	NewParcel() Parcel
}

// Fed is what was made ahead. Join has the operations that are called after it wait for that; Free gives back what
// FromHost made, when the step is over.
type Fed interface {
	Join()
	Free()
}

// Parcel has copies of host slices where the device can read them while others compute. Pack copies them in place of
// those before; FromHost of the same slices, ahead, is then quick. Any goroutine may call it, one at a time.
type Parcel interface {
	Pack(slices ...any)
}

// Dense is matrix multiplication.
type Dense interface {
	// MatMul: dst = epilogue(op(a)·op(b)), or with Add dst = epilogue(dst + op(a)·op(b)).
	// The shapes that matter: tall times small (a: vertices x in, b: in x out, with
	// or without TransB) and, with TransA, tall-transposed times tall
	// (a: vertices x in, b: vertices x out, dst: in x out).
	MatMul(dst, a, b Matrix, op MatMul)
	// ColumnSum: dst (1 x cols) = or += the sum over rows of src.
	ColumnSum(dst, src Matrix, add bool)
}

// MatMul says which product is meant and what follows it.
type MatMul struct {
	TransA, TransB bool
	Add            bool // add to what dst holds
	// ZerosA and ZerosB are the shares of zeros that a and b are expected to have, from how
	// they were made: 0 where nothing is known. They are for speed only.
	ZerosA, ZerosB float32
	Epilogue       Epilogue
}

// Epilogue is what is done to a row right after it was computed: dst =
// dropout(act(x + bias)). Kernels that produce rows do it while the row is in
// cache, which saves a pass over memory.
type Epilogue struct {
	Bias    Matrix // 1 x cols, or none
	Act     Act
	Dropout Dropout
}

// Empty reports whether there is nothing to do.
func (e Epilogue) Empty() bool { return e.Bias.IsZero() && e.Act == NoAct && e.Dropout.P == 0 }

// Slice is the same for rows lo to hi of the matrix it was made for.
func (e Epilogue) Slice(lo, hi int) Epilogue {
	e.Dropout = e.Dropout.Slice(lo, hi)
	return e
}

// Act is an activation function.
type Act uint8

const (
	NoAct Act = iota
	ReLU
	ELU       // alpha 1
	LeakyReLU // slope 0.01
)

func (a Act) String() string { return [...]string{"none", "relu", "elu", "leaky_relu"}[a] }

// Dropout zeroes each number with probability P, rounded to a multiple of 1/65536, and
// scales the others by 1/(1-P). The draw for (row, column) is a function of Key, the row's
// vertex id and the column: see dropout.go. P = 0 is no dropout.
type Dropout struct {
	P   float32
	Key uint64
	// IDs are the vertex ids of the rows; without them row i has id First + i.
	IDs   Index
	First uint32
}

// Slice is the same dropout for rows lo to hi of the matrix it was made for.
func (d Dropout) Slice(lo, hi int) Dropout {
	d.IDs = d.IDs.Slice(lo, hi)
	d.First += uint32(lo)
	return d
}

// Graphs is sparse times dense, with a graph's edges as the sparse matrix.
type Graphs interface {
	// Aggregate: dst_i = rowScale_i · ( sum over entries (i,j) of value_ij · colScale_j · src_j
	//                                  + self · colScale_i · src_i )
	// with each factor one where it is left out; with Add it is added to dst. src
	// has adj.Cols rows, dst adj.Rows. A sparse feature matrix times weights is this
	// operation too (adj = features, src = weights).
	Aggregate(dst Matrix, adj *Sparse, src Matrix, op Aggregate)
	// AggregateMax: dst_i = the largest src_j over entries (i,j), column by column,
	// and zero where row i has none. arg (rows·cols entries) gets the j of each
	// maximum, the first of equals, or ^0 where there is none.
	AggregateMax(dst Matrix, arg Index, adj *Sparse, src Matrix)
	// AggregateMaxGrad: dsrc_j = sum over i with arg_ic = j of ddst_ic. adjT is the
	// transpose of adj.
	AggregateMaxGrad(dsrc Matrix, adjT *Sparse, ddst Matrix, arg Index)

	// HeadDot: for every one of dots, score_ih = z_ih · a_h, where z is rows x
	// (heads·width). It goes through z once.
	HeadDot(z Matrix, dots ...HeadDot)
	// HeadDotGrad: for every one of dots, whose Score is the gradient now,
	// dz_ih += score_ih · a_h; da_h += sum over i of score_ih · z_ih. dz may be none.
	HeadDotGrad(dz, z Matrix, dots ...HeadDot)
	// Attend: the attention layer's aggregation, all heads at once.
	//   e_ij = leaky(left_j + right_i);  α_ij = softmax over row i of e_ij
	//   dst_i = sum over j of drop(α_ij) · z_j       (per head)
	// stat (rows x 2·heads) keeps row maximum and reciprocal sum for the backward pass.
	// A row with no entry is zero.
	Attend(dst, stat Matrix, adj *Sparse, z, left, right Matrix, op Attention)
	// AttendGrad: from ddst: dz (overwritten), dleft, dright (overwritten). adjT is adj's
	// Transpose. dst is what Attend computed; dz may be in its place. Where α_ij is exactly 1
	// (a row of one entry, saturated scores) the gradient of e_ij is exactly zero: it is the
	// difference of two equal terms, which are summed in different orders.
	AttendGrad(dz, dleft, dright Matrix, adj, adjT *Sparse, z, left, right, stat, dst, ddst Matrix, op Attention)

	// JoinAttend makes one softmax of two over different entries of the same rows: dst and stat of those before, part and
	// partStat of adj's, as Attend leaves them. With m and s the maximum and the sum of exponentials of each,
	//   dst_i = (s·exp(m - m')·dst_i + s_part·exp(m_part - m')·part_i) / (their sum),  m' = max(m, m_part)
	// per head. A row without entries in adj stays; one whose stat is zero had none before.
	JoinAttend(dst, stat Matrix, adj *Sparse, part, partStat Matrix)

	// GatherRows: dst_k = src_rows[k]. ScatterAdd: dst_rows[k] += src_k, in order of k.
	GatherRows(dst, src Matrix, rows Index)
	ScatterAdd(dst, src Matrix, rows Index)
	// DropoutValues: dst (entries x 1) = the values of s (or ones) after dropout keyed by
	// (row id, column); with transposed set, s is a transpose and its columns are the
	// vertices, so that both orientations of a feature matrix draw alike.
	DropoutValues(dst Matrix, s *Sparse, d Dropout, transposed bool)
}

// Aggregate are the factors of an aggregation.
type Aggregate struct {
	RowScale, ColScale Matrix // n x 1, device type, or none
	// SelfScale is ColScale where the entries' values have it in them already: it is of Self only.
	SelfScale Matrix
	Self      float64
	// First is the row of src that is row 0 of dst itself, where adj is a slice.
	First int
	Add   bool
}

// HeadDot is a vector whose heads are multiplied with those of rows.
type HeadDot struct {
	// Score (rows x heads) may have fewer rows than there are: it is of the first ones.
	Score Matrix
	A     Matrix // 1 x (heads·width)
	DA    Matrix // as A, its gradient; none in the forward pass
}

// Attention are the settings of an attention layer.
type Attention struct {
	Heads int
	Slope float64 // of the leaky ReLU on scores
	// Dropout of attention coefficients: IDs are the vertex ids of the rows (destinations);
	// the draw is keyed by destination, source and head.
	Dropout Dropout
	// SrcIDs are the vertex ids of sources, without them source j has id j. Edges
	// given twice draw alike.
	SrcIDs Index
	// Edge (entries x heads), if given, is added to scores before the leaky ReLU; Attend's
	// backward pass then puts the gradient in DEdge.
	Edge, DEdge Matrix
}

// Elements works on each number by itself.
type Elements interface {
	Zero(m Matrix)
	// Copy converts between types; dst and src have the same shape.
	Copy(dst, src Matrix)
	// Combine: dst = a·x + b·y; in place of x or y. y may be none.
	Combine(dst Matrix, a float64, x Matrix, b float64, y Matrix)
	// Multiply: dst = x·y, number by number; in place of x or y.
	Multiply(dst, x, y Matrix)
	// Activate: dst = dropout(act(src + bias)); in place.
	Activate(dst, src Matrix, op Epilogue)
	// ActivateGrad: dx = the gradient before Activate, from dy after it and the
	// result y; in place of dy. dbias, if given, gets the column sums of dx added.
	ActivateGrad(dx, dy, y Matrix, op Epilogue, dbias Matrix)
	// GELU: dst = src·Φ(src), Φ the normal distribution's; in place. GELUGrad: dx = dy·(Φ(x) + x·φ(x)), from x before it;
	// in place of dy or x.
	GELU(dst, src Matrix)
	GELUGrad(dx, dy, x Matrix)
	// Dot: dst (1 x 1, F64) = the sum of products of corresponding numbers.
	Dot(dst, x, y Matrix)
}

// Norms are batch and layer norm. Batch norm is in steps, so that between them
// the sums of several workers can be added. eps is above zero: without it, equal numbers are
// divided by their deviation of none, which is NaN, as it is in torch.
type Norms interface {
	// ColumnSums: sums (2 x cols, F64) = sum of x, sum of x².
	ColumnSums(sums, x Matrix)
	// Moments: mv (2 x cols, F64) = mean and biased variance from sums over count rows.
	// running (likewise), if given, moves by momentum towards the mean and the unbiased
	// variance.
	Moments(mv, running, sums Matrix, count int64, momentum float64)
	// BatchNorm: y = epilogue(gamma·(x-mean)/sqrt(var+eps) + beta); in place. Its bias must be none.
	BatchNorm(y, x, mv, gamma, beta Matrix, eps float64, op Epilogue)
	// BatchNormSums: gs (2 x cols, F64) = sum of dy, sum of dy·xhat.
	BatchNormSums(gs, dy, x, mv Matrix, eps float64)
	// BatchNormGrad: dx = gamma/sqrt(var+eps) · (dy - gs0/count - xhat·gs1/count); in place of dy.
	BatchNormGrad(dx, dy, x, mv, gs, gamma Matrix, count int64, eps float64)

	// LayerNorm: y = epilogue(gamma·(x-mean)/sqrt(var+eps) + beta) over each row; in place
	// not allowed. stat (rows x 2, device type) keeps mean and reciprocal deviation.
	LayerNorm(y, stat, x, gamma, beta Matrix, eps float64, op Epilogue)
	// LayerNormGrad: dx overwritten (in place of dy), dgamma and dbeta added to.
	LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma Matrix)
}

// Losses compare predictions with what was known.
type Losses interface {
	// Loss: sums (1 x 2, F64) = the loss over the given rows, times scale, and, of
	// cross-entropy, how many of them are right: their largest logit (the first of equals)
	// is the label. The gradient goes into those rows of dlogits, and other rows are set to
	// zero. dlogits may be none (evaluation), or logits itself.
	Loss(sums, dlogits, logits Matrix, op Loss)
	// CountMarks: counts (1 x 3, F64) = over rows, the logits above 0, the targets above ½,
	// and where both are.
	CountMarks(counts, logits, targets Matrix, rows Index)
	// Softmax of each row; in place.
	Softmax(dst, src Matrix)
	// Argmax: the column of the largest number of each row, the first of equals.
	Argmax(dst Index, src Matrix)
}

// LossKind is one of the losses.
type LossKind uint8

const (
	// CrossEntropy: -log softmax(logits_r)[label_r].
	CrossEntropy LossKind = iota
	// BCE: binary cross-entropy with logits against targets in [0,1], of the shape of logits.
	BCE
	// SquaredError: the square of logits less targets, of the same shape.
	SquaredError
)

func (k LossKind) String() string { return [...]string{"CrossEntropy", "BCE", "SquaredError"}[k] }

// Loss says which loss over which rows.
type Loss struct {
	Kind    LossKind
	Labels  Index  // of cross-entropy: one entry per row of logits
	Targets Matrix // of the others
	Rows    Index  // distinct; none: all rows
	Scale   float64
}

// Optimisers update a parameter from its gradient.
type Optimisers interface {
	// Adam with decoupled (AdamW) or L2 weight decay. step counts from 1.
	Adam(p, g, m, v Matrix, op Adam)
	// SGD with momentum: buf = momentum·buf + g + decay·p (buf = g + decay·p at step 1); p -= lr·buf.
	SGD(p, g, buf Matrix, op SGD)
}

// Adam are the settings of one Adam step.
type Adam struct {
	LR, Beta1, Beta2, Eps, Decay float64
	Decoupled                    bool
	Step                         int
}

// SGD are the settings of one step of gradient descent.
type SGD struct {
	LR, Momentum, Decay float64
	Nesterov            bool
	Step                int
}
