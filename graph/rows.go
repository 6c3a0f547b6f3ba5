package graph

// TransposeRows transposes the structure of sparse rows over cols columns: for
// each column its rows in ascending order, and for each entry its place in the
// original.
func TransposeRows(cols int, ptr []int64, index []uint32) (tptr []int64, tindex, perm []uint32) {
	tptr = make([]int64, cols+1)
	for _, c := range index {
		tptr[c+1]++
	}
	for c := range cols {
		tptr[c+1] += tptr[c]
	}
	next := append([]int64(nil), tptr[:cols]...)
	tindex, perm = make([]uint32, len(index)), make([]uint32, len(index))
	for v := range len(ptr) - 1 {
		for e := ptr[v]; e < ptr[v+1]; e++ {
			at := next[index[e]]
			next[index[e]]++
			tindex[at], perm[at] = uint32(v), uint32(e)
		}
	}
	return tptr, tindex, perm
}
