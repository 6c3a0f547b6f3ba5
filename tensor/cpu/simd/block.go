package simd

import (
	"unsafe"

	"starling/tensor/bfloat"
)

// Block is rows of float32 or bfloat16 numbers somewhere in memory. Kernels
// compute in float32 whatever the storage: whether a block is bfloat16 is a branch
// inside their loops, which predicts perfectly, instead of a loop for each
// combination of types.
type Block struct {
	Data   unsafe.Pointer
	Stride int // bytes from one row to the next
	BF16   bool
	// NonTemporal says that whole lines are stored by non-temporal stores: of what will not be read soon,
	// and is not read now, that saves fetching them first, a third of a copy's traffic.
	// REQUIRES: Data and Stride are multiples of 64.
	NonTemporal bool
}

// At is the number in row i, column j.
func (b *Block) At(i, j int) float32 {
	p := unsafe.Add(b.Data, i*b.Stride)
	if b.BF16 {
		return bfloat.Widen(*(*uint16)(unsafe.Add(p, j*2)))
	}
	return *(*float32)(unsafe.Add(p, j*4))
}

// Set stores x in row i, column j, rounding to the block's type.
func (b *Block) Set(i, j int, x float32) {
	p := unsafe.Add(b.Data, i*b.Stride)
	if b.BF16 {
		*(*uint16)(unsafe.Add(p, j*2)) = bfloat.Round(x)
	} else {
		*(*float32)(unsafe.Add(p, j*4)) = x
	}
}

// Rows is the block from row i on.
func (b Block) Rows(i int) Block {
	if b.Data != nil {
		b.Data = unsafe.Add(b.Data, i*b.Stride)
	}
	return b
}

// at is element j of a vector that starts at p.
func at[T any](p *T, j int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), j*int(unsafe.Sizeof(*p))))
}
