package tensor

import "unsafe"

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
		if !m.IsZero() && !m.contiguous() {
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
		m.Rows, m.Cols, m.stride = rows/k, k*m.Cols, k*m.Cols
		ms[i] = m
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
