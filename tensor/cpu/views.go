package cpu

import (
	"unsafe"

	"starling/tensor"
)

// What kernels see of handles. Slices of another type than the matrix has are nil.

func f32Of(m Matrix) []float32 {
	if m.Type() != F32 {
		return nil
	}
	return tensor.Numbers[float32](m)
}

func b16Of(m Matrix) []uint16 {
	if m.Type() != BF16 {
		return nil
	}
	return tensor.Numbers[uint16](m)
}

func f64Of(m Matrix) []float64 {
	if m.Type() != F64 {
		return nil
	}
	return tensor.Numbers[float64](m)
}

// rowOf, row16Of and row64Of are row i of a matrix of float32, bfloat16 and float64.
func rowOf(m Matrix, i int) []float32   { return tensor.Row[float32](m, i) }
func row16Of(m Matrix, i int) []uint16  { return tensor.Row[uint16](m, i) }
func row64Of(m Matrix, i int) []float64 { return tensor.Row[float64](m, i) }

// baseOf is the address of the first number.
func baseOf(m Matrix) unsafe.Pointer { return tensor.Address(m) }

// bytesOf is the memory of a matrix without gaps.
func bytesOf(m Matrix) []byte { return tensor.Memory(m) }

func entriesOf(x Index) []uint32 { return tensor.Entries(x) }

// compressed is what a sparse matrix is made of. Kernels call that of a graph csr and that of
// its transpose csc.
type compressed struct {
	ptr         []int64
	index, perm []uint32
}

func compressedOf(s *Sparse) compressed {
	p := tensor.PartsOf(s)
	return compressed{tensor.Numbers[int64](p.Ptr), tensor.Entries(p.Index), tensor.Entries(p.Perm)}
}

// row is the columns of row i's entries.
func (c *compressed) row(i int) []uint32 { return c.index[c.ptr[i]:c.ptr[i+1]] }

// cast sees the first n numbers of raw, which our allocator aligns to a page.
func cast[T any](raw []byte, n int) []T {
	if n == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&raw[0])), n)
}

// part is rows x cols numbers without gaps inside a row of m, from a number of it on.
func part(m Matrix, row, from, rows, cols int) Matrix {
	return m.Slice(row, row+1).Columns(from, from+rows*cols).Reshape(rows, cols)
}
