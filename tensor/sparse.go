package tensor

// Sparse is a CSR matrix on a device: the entries of row i are index[ptr[i]:ptr[i+1]], each
// a column number, with values beside them or, where there are none, all one. A graph is a
// Sparse of its in-edges.
type Sparse struct {
	Rows, Cols int

	starts  []int64 // ptr as the host has it, for the sizes of views; nil: the host has none, and
	entries int64   // how many there are
	ptr     Matrix  // the same on the device: I64, one more row than there are rows
	index   Index
	value   Matrix // entries x 1, or none
	perm    Index  // of a transpose: the entry that each entry stands for
}

// NewSparse puts a CSR matrix on a device. value may be nil (all ones). The slices must stay
// as they are while it is in use.
func NewSparse(dev Device, rows, cols int, ptr []int64, index []uint32, value []float32) *Sparse {
	s := &Sparse{Rows: rows, Cols: cols, starts: ptr, ptr: dev.FromHost(len(ptr), 1, ptr), index: Indices(dev, index)}
	if value != nil {
		s.value = dev.FromHost(len(value), 1, value)
	}
	return s
}

// Transpose is the transpose of s, given its structure and, for each of its entries, the
// entry of s it stands for; values are carried over, to a matrix of the caller's (Values).
func Transpose(dev Device, s *Sparse, ptr []int64, index []uint32, perm []uint32) *Sparse {
	t := NewSparse(dev, s.Cols, s.Rows, ptr, index, nil)
	if perm != nil {
		t.perm = Indices(dev, perm)
	}
	if !s.value.IsZero() {
		t.value = dev.Scratch(s.value.Type(), len(index), 1)
		dev.GatherRows(t.value, s.value, t.perm)
	}
	return t
}

// Entries is the number of entries in all rows.
func (s *Sparse) Entries() int64 {
	if s.starts == nil {
		return s.entries
	}
	return s.starts[s.Rows] - s.starts[0]
}

// Slice is a view of rows lo to hi; entries keep their place.
func (s *Sparse) Slice(lo, hi int) *Sparse {
	v := *s
	if s.starts == nil {
		Need(lo == 0 && hi == s.Rows, "Slice: the host does not know where rows %d to %d begin", lo, hi)
		return &v
	}
	v.Rows, v.starts, v.ptr = hi-lo, s.starts[lo:hi+1], s.ptr.Slice(lo, hi+1)
	return &v
}

// Columns are the columns of the entries of all rows.
func (s *Sparse) Columns() Index {
	if s.starts == nil {
		return s.index
	}
	return s.index.Slice(int(s.starts[0]), int(s.starts[s.Rows]))
}

// WithValues is s with other values, one per entry.
func (s *Sparse) WithValues(value Matrix) *Sparse {
	v := *s
	v.value = value
	return &v
}

// Values are the values of the entries, one per row; the zero Matrix where all are one.
func (s *Sparse) Values() Matrix { return s.value }
