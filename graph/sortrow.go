package graph

import "slices"

// radixFrom is the length from which a radix sort is faster than comparing, since it
// has no unpredictable branch. BenchmarkSortRow, ns per element by radix and by
// comparison: 15 and 42 for rows of 96, 8.5 and 60 for rows of 1000. Lengths between
// 64 and 96 have not been measured.
const radixFrom = 96

// sortRow sorts a row of neighbours in place and returns tmp, grown if needed.
// Long rows, which hubs have, are sorted by radix, one byte at a time.
func sortRow(row, tmp []uint32) []uint32 {
	if len(row) < radixFrom {
		slices.Sort(row)
		return tmp
	}
	if cap(tmp) < len(row) {
		tmp = make([]uint32, 2*len(row))
	}
	var count [4][256]uint32
	for _, x := range row {
		count[0][x&255]++
		count[1][x>>8&255]++
		count[2][x>>16&255]++
		count[3][x>>24]++
	}
	from, to := row, tmp[:len(row)]
	for digit := range count {
		c, shift := &count[digit], 8*digit
		if int(c[from[0]>>shift&255]) == len(row) {
			continue // all share this byte
		}
		var at uint32
		for i, n := range c {
			c[i] = at
			at += n
		}
		for _, x := range from {
			b := x >> shift & 255
			to[c[b]] = x
			c[b]++
		}
		from, to = to, from
	}
	if &from[0] != &row[0] {
		copy(row, from)
	}
	return tmp
}
