package partition

// group lists vertices by part, those of a part in ascending order:
// order[start[k]:start[k+1]] are the vertices of part k.
func group(parts []uint32, k int) (start []int64, order []uint32) {
	start = make([]int64, k+1)
	for _, p := range parts {
		start[p+1]++
	}
	for i := range k {
		start[i+1] += start[i]
	}
	next := append([]int64(nil), start[:k]...)
	order = make([]uint32, len(parts))
	for v, p := range parts {
		order[next[p]] = uint32(v)
		next[p]++
	}
	return start, order
}
