package ref

import "starling/tensor"

// The handles and options of package tensor, by their own names.
type (
	Matrix    = tensor.Matrix
	Index     = tensor.Index
	Sparse    = tensor.Sparse
	DType     = tensor.DType
	MatMul    = tensor.MatMul
	Epilogue  = tensor.Epilogue
	Act       = tensor.Act
	Dropout   = tensor.Dropout
	Aggregate = tensor.Aggregate
	HeadDot   = tensor.HeadDot
	Attention = tensor.Attention
	EdgeInput = tensor.EdgeInput
	Adam      = tensor.Adam
	SGD       = tensor.SGD
	Packing   = tensor.Packing
)

const (
	F32       = tensor.F32
	BF16      = tensor.BF16
	F64       = tensor.F64
	U32       = tensor.U32
	NoAct     = tensor.NoAct
	ReLU      = tensor.ReLU
	ELU       = tensor.ELU
	LeakyReLU = tensor.LeakyReLU
)
