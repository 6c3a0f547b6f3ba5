package cpu

import (
	"sync"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// share is a part of a sparse matrix's work for one core: rows lo to hi, or, when
// part >= 0, entries from to to of the one long row lo.
type share struct {
	lo, hi   int
	from, to int64
	part     int
}

// shares is the work of an operation over a sparse matrix, cut by entries and
// not by rows, so that few rows with many entries do not keep all cores but one
// waiting. A row that is too long is itself cut; the results of its parts are
// combined in their order.
type shares struct {
	list  []share
	long  []share // for each long row its first part and, in hi, one past the last
	parts int
	ptr   []int64 // bounds of the parts, two each, as a sparse matrix's ptr
	iota  []uint32
}

var sharesPool = sync.Pool{New: func() any { return new(shares) }}

// entriesPerShare is how many entries make a share when each costs a row of cols
// numbers: about two megabytes of gathering, some hundred microseconds.
func entriesPerShare(cols int) int64 { return int64(min(max((1<<19)/max(cols, 1), 256), 16384)) }

// newShares cuts s into shares of about size entries, where a row costs as much
// as one entry, and rows of more than long entries into parts of size. The cut
// depends on s and these numbers only. Give it back with done.
func newShares(s *Sparse, size, long int64) *shares {
	csr := compressedOf(s)
	w := sharesPool.Get().(*shares)
	w.list, w.long, w.ptr, w.parts = w.list[:0], w.long[:0], w.ptr[:0], 0
	cost := func(row int) int64 { return csr.ptr[row] + int64(row) }
	for lo := 0; lo < s.Rows; {
		hi := reach(lo, s.Rows, cost, cost(lo)+size)
		if csr.ptr[hi]-csr.ptr[hi-1] > long {
			if hi-1 > lo {
				w.list = append(w.list, share{lo: lo, hi: hi - 1, part: -1})
			}
			w.cut(hi-1, csr.ptr[hi-1], csr.ptr[hi], size)
		} else {
			w.list = append(w.list, share{lo: lo, hi: hi, part: -1})
		}
		lo = hi
	}
	for len(w.iota) < w.parts {
		w.iota = append(w.iota, uint32(len(w.iota)))
	}
	return w
}

// sharesOf cuts s for an operation on rows of cols numbers. Cutting a row costs a
// partial row in memory, so only rows of several shares are cut.
func sharesOf(s *Sparse, cols int) *shares {
	size := entriesPerShare(cols)
	return newShares(s, size, 8*size)
}

func (w *shares) done() { sharesPool.Put(w) }

// reach is the least row over lo whose cost is at least want, or rows. It
// gallops, since the answer is near lo.
func reach(lo, rows int, cost func(int) int64, want int64) int {
	step := 1
	for lo+step < rows && cost(lo+step) < want {
		step *= 2
	}
	under, hi := lo+step/2, min(lo+step, rows)
	for under+1 < hi {
		if mid := (under + hi) / 2; cost(mid) < want {
			under = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// cut makes parts of the long row's entries [from,to).
func (w *shares) cut(row int, from, to, size int64) {
	w.long = append(w.long, share{lo: row, part: w.parts})
	for ; from < to; from += size {
		end := min(from+size, to)
		w.list = append(w.list, share{lo: row, hi: row + 1, from: from, to: end, part: w.parts})
		w.ptr = append(w.ptr, from, end)
		w.parts++
	}
	w.long[len(w.long)-1].hi = w.parts
}

// bounds are the entries of a share's rows, as ptr of a sparse matrix.
func (w *shares) bounds(s *Sparse, x share) []int64 {
	if x.part >= 0 {
		return w.ptr[2*x.part : 2*x.part+2]
	}
	return compressedOf(s).ptr[x.lo : x.hi+1]
}

// longest is the number of entries of the longest row or part in a share.
func longest(ptr []int64) int {
	n := int64(0)
	for i := range len(ptr) - 1 {
		n = max(n, ptr[i+1]-ptr[i])
	}
	return int(n)
}

// floats is scratch that goroutines take and put back.
var floatsPool = sync.Pool{New: func() any { return new([]float32) }}

func takeFloats(n int) *[]float32 {
	f := floatsPool.Get().(*[]float32)
	if len(*f) < n {
		*f = make([]float32, n)
	}
	return f
}

// strided is m as the inner loops see it.
func stridedOf(m Matrix) simd.Strided {
	return simd.Strided{F32: f32Of(m), B16: b16Of(m), Stride: m.Stride()}
}

// column is a column vector's numbers, nil where there is none.
func columnOf(m Matrix, name string, rows int) []float32 {
	if m.IsZero() {
		return nil
	}
	tensor.Need(m.Type() == F32 && m.Cols == 1 && m.Contiguous() && m.Rows >= rows,
		"%s is %v, want %dx1 float32 without gaps", name, m, rows)
	return f32Of(m)
}
