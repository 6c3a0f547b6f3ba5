package tensor

import (
	"fmt"
	"unsafe"

	"starling/tensor/bfloat"
)

// What is in this file is for devices. A test holds everybody else to it: no package
// outside tensor/... makes a Buffer or looks into one.

// Buffer is memory of a device that handles point into. Its address may be one that only
// the device can use. A device that has memory of its own to give back puts a cleanup on the
// Buffer: handles keep it alive, and what FromHost made is never freed by its user.
type Buffer struct {
	addr  unsafe.Pointer
	bytes int
	host  bool
	owner any
}

// NewBuffer is memory at an address. host tells whether the host can read and write there;
// owner is whatever the device wants to find again.
func NewBuffer(addr unsafe.Pointer, bytes int, host bool, owner any) *Buffer {
	return &Buffer{addr, bytes, host, owner}
}

// HostBuffer is the memory of a slice, which it keeps alive.
func HostBuffer[T any](s []T) *Buffer {
	if cap(s) == 0 {
		return empty
	}
	return NewBuffer(unsafe.Pointer(unsafe.SliceData(s)), len(s)*int(unsafe.Sizeof(s[0])), true, nil)
}

// empty is the buffer of matrices without numbers.
var empty = NewBuffer(unsafe.Pointer(new([64]byte)), 0, true, nil)

// Bytes is the size of the buffer.
func (b *Buffer) Bytes() int { return b.bytes }

// Owner is what NewBuffer was given.
func (b *Buffer) Owner() any { return b.owner }

// Addr is where the buffer begins, for the device.
func (b *Buffer) Addr() unsafe.Pointer { return b.addr }

// Host reports whether the host can read and write it.
func (b *Buffer) Host() bool { return b.host }

// MakeMatrix is a handle to numbers from a byte of a buffer on.
func MakeMatrix(b *Buffer, off int, t DType, rows, cols, stride int) Matrix {
	if n := rows * cols; n > 0 && off+((rows-1)*stride+cols)*t.Size() > b.bytes {
		panic(fmt.Sprintf("tensor: %dx%d %v from byte %d on of a buffer of %d", rows, cols, t, off, b.bytes))
	}
	return Matrix{Rows: rows, Cols: cols, buf: b, off: off, stride: stride, dtype: t}
}

// Unbacked is a matrix without memory, of a device that failed.
func Unbacked(t DType, rows, cols int) Matrix {
	return MakeMatrix(&Buffer{addr: empty.addr, bytes: rows * cols * t.Size(), owner: unbacked}, 0, t, rows, cols, cols)
}

// unbacked owns the buffers that have no memory.
var unbacked = new(byte)

// Unbacked reports whether a matrix has no memory because its device failed.
func (m Matrix) Unbacked() bool { return m.buf != nil && m.buf.owner == any(unbacked) }

// FromSlice is a matrix of a slice's numbers, which it keeps alive.
func FromSlice[T float32 | float64 | uint16 | uint32 | int64](rows, cols int, s []T) Matrix {
	return MakeMatrix(HostBuffer(s), 0, typeOf[T](), rows, cols, cols)
}

// FromAny is FromSlice of a slice that a caller gave to FromHost.
func FromAny(rows, cols int, host any) Matrix {
	switch h := host.(type) {
	case []float32:
		return FromSlice(rows, cols, h)
	case []uint16:
		return FromSlice(rows, cols, h)
	case []uint32:
		return FromSlice(rows, cols, h)
	case []int64:
		return FromSlice(rows, cols, h)
	}
	panic(fmt.Sprintf("tensor: FromHost of a %T", host))
}

func typeOf[T any]() DType {
	switch any(*new(T)).(type) {
	case float32:
		return F32
	case uint16:
		return BF16
	case uint32:
		return U32
	case int64:
		return I64
	}
	return F64
}

// BufferOf is the buffer of a matrix, and Offset the byte of it where the matrix begins.
func BufferOf(m Matrix) *Buffer { return m.buf }

func Offset(m Matrix) int { return m.off }

// WithBuffer is m in another buffer, at the same place.
func WithBuffer(m Matrix, b *Buffer) Matrix {
	m.buf = b
	return m
}

// Address is where the first number of a matrix is, for the device.
func Address(m Matrix) unsafe.Pointer { return unsafe.Add(m.buf.addr, m.off) }

// Numbers are the numbers of a matrix in host memory, from the first to the last: row i begins at
// i·Stride. It is nil of none.
func Numbers[T any](m Matrix) []T {
	if m.buf == nil {
		return nil
	}
	n := 0
	if m.Rows > 0 && m.Cols > 0 {
		n = (m.Rows-1)*m.stride + m.Cols
	}
	return unsafe.Slice((*T)(Address(m)), n)
}

// Row is row i of a matrix in host memory.
func Row[T any](m Matrix, i int) []T {
	if uint(i) >= uint(m.Rows) {
		panic(fmt.Sprintf("tensor: row %d of a matrix of %d", i, m.Rows))
	}
	size := int(unsafe.Sizeof(*new(T)))
	return unsafe.Slice((*T)(unsafe.Add(m.buf.addr, m.off+i*m.stride*size)), m.Cols)
}

// Memory is the bytes of a matrix without gaps in host memory.
func Memory(m Matrix) []byte {
	if !m.Contiguous() {
		panic(fmt.Sprintf("tensor: the bytes of a %v with gaps between its rows", m))
	}
	if m.Rows*m.Cols == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(Address(m)), m.Bytes())
}

// Entries are the entries of an index in host memory; nil without an index.
func Entries(x Index) []uint32 { return Numbers[uint32](x.m) }

// Parts are what a sparse matrix is made of, on its device.
type Parts struct {
	Ptr   Matrix // I64
	Index Index
	Value Matrix
	Perm  Index
}

// PartsOf are the parts of s.
func PartsOf(s *Sparse) Parts { return Parts{s.ptr, s.index, s.value, s.perm} }

// MakeIndex is an index of a U32 matrix, one entry per row.
func MakeIndex(m Matrix) Index { return Index{m} }

// RowID is the vertex id of row i of a dropout whose ids are in host memory.
func RowID(d Dropout, i int) uint32 {
	if !d.IDs.IsZero() {
		return Row[uint32](d.IDs.m, i)[0]
	}
	return d.First + uint32(i)
}

// RowDraws are the draws of row i of such a dropout.
func RowDraws(d Dropout, i int) Draws { return d.Draws().Of(RowID(d, i)) }

// CopyIn fills a matrix in host memory with the numbers of a host slice, rounding to its
// type. It is Upload, for devices.
func CopyIn(dst Matrix, host any) {
	switch h := host.(type) {
	case []float64:
		upload(dst, h)
	case []float32:
		upload(dst, h)
	case []uint16:
		copyRows(dst, h, BF16, true)
	case []uint32:
		copyRows(dst, h, U32, true)
	case []int64:
		copyRows(dst, h, I64, true)
	default:
		panic(fmt.Sprintf("tensor: upload of a %T", host))
	}
}

// CopyOut reads a matrix in host memory into a host slice, row by row. It is Download, for
// devices.
func CopyOut(host any, m Matrix) {
	switch h := host.(type) {
	case []float64:
		download(h, m)
	case []float32:
		download(h, m)
	case []uint16:
		copyRows(m, h, BF16, false)
	case []uint32:
		copyRows(m, h, U32, false)
	case []int64:
		copyRows(m, h, I64, false)
	default:
		panic(fmt.Sprintf("tensor: download to a %T", host))
	}
}

// copyRows moves numbers that are not converted.
func copyRows[T uint16 | uint32 | int64](m Matrix, host []T, t DType, in bool) {
	Need(m.dtype == t, "%v beside a host slice of %v", m, t)
	for i := range m.Rows {
		h, row := host[i*m.Cols:(i+1)*m.Cols], Row[T](m, i)
		if in {
			copy(row, h)
		} else {
			copy(h, row)
		}
	}
}

func upload[T float32 | float64](dst Matrix, host []T) {
	for i := range dst.Rows {
		h := host[i*dst.Cols : (i+1)*dst.Cols]
		switch dst.dtype {
		case F32:
			row := Row[float32](dst, i)
			for j, x := range h {
				row[j] = float32(x)
			}
		case BF16:
			row := Row[uint16](dst, i)
			for j, x := range h {
				row[j] = bfloat.Round(float32(x))
			}
		case F64:
			row := Row[float64](dst, i)
			for j, x := range h {
				row[j] = float64(x)
			}
		default:
			panic(fmt.Sprintf("tensor: upload of numbers to %v", dst))
		}
	}
}

func download[T float32 | float64](host []T, m Matrix) {
	for i := range m.Rows {
		h := host[i*m.Cols : (i+1)*m.Cols]
		switch m.dtype {
		case F32:
			for j, x := range Row[float32](m, i) {
				h[j] = T(x)
			}
		case BF16:
			for j, x := range Row[uint16](m, i) {
				h[j] = T(bfloat.Widen(x))
			}
		case F64:
			for j, x := range Row[float64](m, i) {
				h[j] = T(x)
			}
		default:
			panic(fmt.Sprintf("tensor: download of numbers from %v", m))
		}
	}
}
