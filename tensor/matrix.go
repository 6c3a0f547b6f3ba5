package tensor

import (
	"fmt"
	"unsafe"
)

// DType says how the numbers of a matrix are stored.
type DType uint8

const (
	F32  DType = iota // IEEE single
	BF16              // upper half of a single, kept as uint16
	F64               // IEEE double: the reference device, and sums over columns
)

// Size is the number of bytes one number takes.
func (t DType) Size() int { return [...]int{4, 2, 8}[t] }

func (t DType) String() string { return [...]string{"float32", "bfloat16", "float64"}[t] }

// Matrix is a handle to Rows x Cols numbers, row-major, somewhere on a device.
// It is a small value: copy it freely. The zero Matrix means "none" wherever an
// operation says that an argument may be left out.
type Matrix struct {
	Rows, Cols int

	dtype  DType
	stride int // numbers from one row to the next
	// Exactly one of these is set, by dtype. It starts at the view's first number.
	f32 []float32
	b16 []uint16
	f64 []float64
}

// Type is the storage type.
func (m Matrix) Type() DType { return m.dtype }

// IsZero reports whether m is the zero Matrix, that is, none at all.
func (m Matrix) IsZero() bool { return m.f32 == nil && m.b16 == nil && m.f64 == nil }

// Bytes is what the numbers of m take, without gaps between rows.
func (m Matrix) Bytes() int64 { return int64(m.Rows) * int64(m.Cols) * int64(m.dtype.Size()) }

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

// Reshape is the same numbers as rows x cols. REQUIRES: m has no gaps between rows.
func (m Matrix) Reshape(rows, cols int) Matrix {
	if !m.contiguous() || rows*cols != m.Rows*m.Cols {
		panic(fmt.Sprintf("tensor: %v does not reshape to %dx%d", m, rows, cols))
	}
	m.Rows, m.Cols, m.stride = rows, cols, cols
	return m
}

func (m Matrix) view(off, rows, cols int) Matrix {
	n := 0
	if rows > 0 && cols > 0 {
		n = (rows-1)*m.stride + cols
	} else {
		off = 0 // an empty view may start past the end
	}
	v := Matrix{Rows: rows, Cols: cols, dtype: m.dtype, stride: m.stride}
	switch m.dtype {
	case F32:
		v.f32 = m.f32[off : off+n]
	case BF16:
		v.b16 = m.b16[off : off+n]
	case F64:
		v.f64 = m.f64[off : off+n]
	}
	return v
}

func (m Matrix) String() string { return fmt.Sprintf("%dx%d %v", m.Rows, m.Cols, m.dtype) }

// row returns row i of a float32 matrix.
func (m Matrix) row(i int) []float32 { return m.f32[i*m.stride : i*m.stride+m.Cols] }

// row16 returns row i of a bfloat16 matrix.
func (m Matrix) row16(i int) []uint16 { return m.b16[i*m.stride : i*m.stride+m.Cols] }

// row64 returns row i of a float64 matrix.
func (m Matrix) row64(i int) []float64 { return m.f64[i*m.stride : i*m.stride+m.Cols] }

// contiguous reports whether rows follow each other without gaps.
func (m Matrix) contiguous() bool { return m.stride == m.Cols || m.Rows <= 1 || m.Cols == 0 }

// wrap makes a matrix of raw memory. REQUIRES: len(raw) >= rows*cols*t.Size().
func wrap(t DType, rows, cols int, raw []byte) Matrix {
	m := Matrix{Rows: rows, Cols: cols, dtype: t, stride: cols}
	n := rows * cols
	switch t {
	case F32:
		m.f32 = cast[float32](raw, n)
	case BF16:
		m.b16 = cast[uint16](raw, n)
	case F64:
		m.f64 = cast[float64](raw, n)
	}
	return m
}

// cast sees the first n numbers of raw, which our allocator aligns to a page.
func cast[T any](raw []byte, n int) []T {
	if n == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&raw[0])), n)
}

// Same reports whether two matrices begin at the same number.
func Same(a, b Matrix) bool {
	return a.Rows*a.Cols > 0 && b.Rows*b.Cols > 0 && a.base() == b.base()
}

// bytes is the memory of a matrix without gaps.
func (m Matrix) bytes() []byte {
	if !m.contiguous() {
		panic(fmt.Sprintf("tensor: the bytes of a %v with gaps between its rows", m))
	}
	if m.Rows*m.Cols == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(m.base()), m.Bytes())
}

// roomOf is a room where matrices are in host memory: one of them.
func roomOf(d Memory, bytes int) (Matrix, []byte) {
	size := d.Type().Size()
	m := d.Scratch(d.Type(), (bytes+size-1)/size, 1)
	return m, m.bytes()[:bytes]
}

// Index is a list of vertex or row numbers on a device.
type Index struct{ v []uint32 }

// IndexIn is an index as long as m has numbers, in its memory: room for an index that
// an operation makes.
func IndexIn(m Matrix) Index { return Index{cast[uint32](m.bytes(), m.Rows*m.Cols)} }

// Len is the number of entries.
func (x Index) Len() int { return len(x.v) }

// IsZero reports whether x is none at all (as opposed to a list of length 0).
func (x Index) IsZero() bool { return x.v == nil }

// Slice is a view of entries lo to hi. A zero Index stays zero.
func (x Index) Slice(lo, hi int) Index {
	if x.v == nil {
		return x
	}
	return Index{x.v[lo:hi]}
}

// Sparse is a CSR matrix on a device: the entries of row i are
// index[ptr[i]:ptr[i+1]], each a column number, with values beside them or, where
// there are none, all one. A graph is a Sparse of its in-edges.
type Sparse struct {
	Rows, Cols int

	ptr   []int64
	index []uint32
	value Matrix // entries x 1, or none
	perm  []uint32
}

// Entries is the number of entries in all rows.
func (s *Sparse) Entries() int64 { return s.ptr[s.Rows] - s.ptr[0] }

// Slice is a view of rows lo to hi; entries keep their place.
func (s *Sparse) Slice(lo, hi int) *Sparse {
	v := *s
	v.Rows, v.ptr = hi-lo, s.ptr[lo:hi+1]
	return &v
}

// Columns are the columns of the entries of all rows.
func (s *Sparse) Columns() Index { return Index{s.index[s.ptr[0]:s.ptr[s.Rows]]} }

// WithValues is s with other values, one an entry.
func (s *Sparse) WithValues(value Matrix) *Sparse {
	v := *s
	v.value = value
	return &v
}

// Values are the values of the entries, one a row; the zero Matrix where all are one.
func (s *Sparse) Values() Matrix { return s.value }
