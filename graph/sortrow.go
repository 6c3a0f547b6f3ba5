package graph

import "slices"

// radixFrom is the length from which sorting by bytes wins over comparing, since it
// has no branch to guess wrong. BenchmarkSortRow, ns an element by bytes and by
// comparing: 15 and 42 for lists of 96, 8.5 and 60 for lists of 1000. Where between
// 64 and 96 the two cross has not been measured.
const radixFrom = 96

// sortRow sorts a list of neighbours in place and returns tmp, grown if it had to.
// Long lists, which hubs have, are sorted by one byte after the other.
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
