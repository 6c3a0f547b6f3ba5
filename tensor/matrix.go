package tensor

import "fmt"

// DType says how the numbers of a matrix are stored.
type DType uint8

const (
	F32  DType = iota // IEEE single
	BF16              // upper half of a single, kept as uint16
	F64               // IEEE double: the reference device, and sums over rows
	U32               // row numbers: see Index
	I64               // where rows of a Sparse begin
)

// Size is the number of bytes one number takes.
func (t DType) Size() int { return [...]int{4, 2, 8, 4, 8}[t] }

func (t DType) String() string {
	return [...]string{"float32", "bfloat16", "float64", "uint32", "int64"}[t]
}

// Matrix is a handle to Rows x Cols numbers, row-major, in a buffer of a device. It is a
// small value: copy it freely. The zero Matrix means "none" wherever an operation says that
// an argument may be left out.
type Matrix struct {
	Rows, Cols int

	buf    *Buffer
	off    int // bytes from the start of the buffer to the first number
	stride int // numbers from one row to the next
	dtype  DType
}

// Type is the storage type.
func (m Matrix) Type() DType { return m.dtype }

// Stride is how many numbers lie between the starts of two rows.
func (m Matrix) Stride() int { return m.stride }

// IsZero reports whether m is the zero Matrix, that is, none at all.
func (m Matrix) IsZero() bool { return m.buf == nil }

// Bytes is what the numbers of m take, without gaps between rows.
func (m Matrix) Bytes() int64 { return int64(m.Rows) * int64(m.Cols) * int64(m.dtype.Size()) }

// Contiguous reports whether rows follow each other without gaps.
func (m Matrix) Contiguous() bool { return m.stride == m.Cols || m.Rows <= 1 || m.Cols == 0 }

// Slice is a view of rows lo to hi.
func (m Matrix) Slice(lo, hi int) Matrix {
	if lo < 0 || hi < lo || hi > m.Rows {
		panic(fmt.Sprintf("tensor: rows [%d,%d) of a matrix of %d", lo, hi, m.Rows))
	}
	return m.view(lo*m.stride, hi-lo, m.Cols)
}

// Columns is a view of columns lo to hi.
func (m Matrix) Columns(lo, hi int) Matrix {
	if lo < 0 || hi < lo || hi > m.Cols {
		panic(fmt.Sprintf("tensor: columns [%d,%d) of a matrix of %d", lo, hi, m.Cols))
	}
	return m.view(lo, m.Rows, hi-lo)
}

// Reshape is a view of the same numbers, row after row, in another shape. REQUIRES: no gaps.
func (m Matrix) Reshape(rows, cols int) Matrix {
	if rows*cols != m.Rows*m.Cols || !m.Contiguous() {
		panic(fmt.Sprintf("tensor: a %v (stride %d) cannot be %dx%d", m, m.stride, rows, cols))
	}
	m.Rows, m.Cols, m.stride = rows, cols, cols
	return m
}

func (m Matrix) view(numbers, rows, cols int) Matrix {
	if rows > 0 && cols > 0 { // else it may start past the end
		m.off += numbers * m.dtype.Size()
	}
	m.Rows, m.Cols = rows, cols
	return m
}

func (m Matrix) String() string { return fmt.Sprintf("%dx%d %v", m.Rows, m.Cols, m.dtype) }

// Same reports whether two matrices begin at the same number.
func Same(a, b Matrix) bool {
	return a.Rows*a.Cols > 0 && b.Rows*b.Cols > 0 && Address(a) == Address(b)
}

// Index is a list of vertex or row numbers on a device.
type Index struct{ m Matrix }

// Indices puts a list of row numbers on a device. The slice must stay as it is while the
// index is in use.
func Indices(dev Device, host []uint32) Index { return Index{dev.FromHost(len(host), 1, host)} }

// IndexIn is the numbers of a U32 matrix without gaps as an index, for operations that
// make one.
func IndexIn(m Matrix) Index {
	Need(m.dtype == U32, "IndexIn: %v holds no row numbers", m)
	return Index{m.Reshape(m.Rows*m.Cols, 1)}
}

// Len is the number of entries.
func (x Index) Len() int { return x.m.Rows }

// IsZero reports whether x is none at all (as opposed to a list of length 0).
func (x Index) IsZero() bool { return x.m.IsZero() }

// Matrix is the entries as a matrix, one per row: what Download reads.
func (x Index) Matrix() Matrix { return x.m }

// Slice is a view of entries lo to hi. A zero Index stays zero.
func (x Index) Slice(lo, hi int) Index {
	if x.IsZero() {
		return x
	}
	return Index{x.m.Slice(lo, hi)}
}
