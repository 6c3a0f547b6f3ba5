package multilevel

import (
	"cmp"
	"slices"
)

// candidate is a move that a vertex could make.
type candidate struct {
	rank int32 // lower is better
	v    uint32
	to   uint16
}

func (a candidate) compare(b candidate) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.v, b.v))
}

// candidates asks every vertex below n for a move and sorts the moves, best first.
func (r *run) candidates(n int, find func(s *scratch, v uint32) (candidate, bool)) []candidate {
	lists := make([][]candidate, chunkCount(n, grain))
	r.each(n, grain, func(s *scratch, chunk, lo, hi int) {
		var list []candidate
		for v := uint32(lo); v < uint32(hi); v++ {
			if c, ok := find(s, v); ok {
				list = append(list, c)
			}
		}
		lists[chunk] = list
	})
	return r.sorted(lists)
}

// sorted sorts blocks in parallel, then merges them pairwise.
func (r *run) sorted(lists [][]candidate) []candidate {
	all := slices.Concat(lists...)
	merged := make([]candidate, len(all))
	block := 1 << 14
	r.each(len(all), block, func(_ *scratch, _, lo, hi int) {
		slices.SortFunc(all[lo:hi], candidate.compare)
	})
	for ; block < len(all); block *= 2 {
		r.each(len(all), 2*block, func(_ *scratch, _, lo, hi int) {
			mergeSorted(merged[lo:hi], all[lo:min(lo+block, hi)], all[min(lo+block, hi):hi])
		})
		all, merged = merged, all
	}
	return all
}

// mergeSorted merges two sorted lists.
func mergeSorted(to, a, b []candidate) {
	for i := range to {
		if len(b) == 0 || len(a) > 0 && a[0].compare(b[0]) <= 0 {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
}
