package cpu

import (
	"unsafe"

	"starling/tensor/cpu/simd"
	"starling/tensor/draw"
)

// Narrow rows waste lanes and time between rows. Where rows are alike, several of
// them are seen as one long row: of about flatRow numbers where columns do not
// matter either, else of about foldRow, with the columns' parameters repeated.
const flatRow, foldRow = 4096, 512

// repeats is how many rows of a number of columns make a row of about size; a
// multiple of sixteen where it can be, so that the long row is whole vectors.
func repeats(size, cols int) int {
	k := size / max(1, cols)
	if k >= 16 {
		k &^= 15
	}
	return max(1, k)
}

// fold sees each k rows of the matrices as one; the last rows, fewer than k, are
// returned as they were. It does nothing, and returns nil, where rows have gaps or are few.
func fold(k int, ms []Matrix) (rest []Matrix) {
	rows := ms[0].Rows
	for _, m := range ms {
		if !m.IsZero() && !m.Contiguous() {
			return nil
		}
	}
	if k < 2 || rows < k || ms[0].Cols == 0 {
		return nil
	}
	rest = make([]Matrix, len(ms))
	for i, m := range ms {
		if m.IsZero() {
			continue
		}
		rest[i] = m.Slice(rows/k*k, rows)
		ms[i] = m.Slice(0, rows/k*k).Reshape(rows/k, k*m.Cols)
	}
	return rest
}

// repeated is the n numbers at v k times over.
func repeated(v *float32, n, k int) *float32 {
	if v == nil {
		return nil
	}
	long := make([]float32, 0, n*k)
	for range k {
		long = append(long, unsafe.Slice(v, n)...)
	}
	return &long[0]
}

// Dropout differs from row to row. What it keeps of narrow rows is drawn for a chunk before, a bit a number, and
// looked up while several of them are seen as one (simd.Kept).

// keptRows is how many rows with draws make a row: whole lines, so that these may go by
// non-temporal stores; 1 where draws
// are made on the way.
func (c *Device) keptRows(cols int, d simd.Drop) int {
	if d.Threshold != draw.Half || cols < simd.KeptLeast || cols > simd.KeptCols || c.level < simd.AVX512 {
		return 1
	}
	return max(32, foldRow/cols&^31)
}

// dropRows is d, the dropout of a matrix of rows x cols, for rows lo to hi of m: of that matrix, folded or not, or of
// its last rows, too few to fold. Of folded rows it draws what is kept; free gives back the workspace.
func (c *Device) dropRows(d simd.Drop, rows, cols int, m Matrix, lo, hi int) (part simd.Drop, free func()) {
	k := m.Cols / cols
	if !d.On || k == 1 {
		return d.Rows(rows - m.Rows + lo), func() {}
	}
	workspace := takeFloats((simd.KeptBytes(k*(hi-lo), cols) + 3) / 4)
	d.Bits, d.BitStride = (*byte)(unsafe.Pointer(unsafe.SliceData(*workspace))), m.Cols/8
	kept := simd.Kept{Drop: d.Rows(k * lo), Rows: k * (hi - lo), Cols: cols, Bits: d.Bits}
	kept.Run(c.level)
	return d, func() { floatsPool.Put(workspace) }
}
