package partition

import (
	"cmp"
	"slices"
)

// mlOffer is a move that a vertex could make.
type mlOffer struct {
	rank int32 // lower is better
	v    uint32
	to   uint16
}

func (a mlOffer) compare(b mlOffer) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.v, b.v))
}

// sorted puts offers in order, best first: blocks of them in parallel, then merged
// two and two.
func (r *mlRun) sorted(lists [][]mlOffer) []mlOffer {
	all := slices.Concat(lists...)
	spare := make([]mlOffer, len(all))
	block := 1 << 14
	r.each(len(all), block, func(_ *mlScratch, _, lo, hi int) {
		slices.SortFunc(all[lo:hi], mlOffer.compare)
	})
	for ; block < len(all); block *= 2 {
		r.each(len(all), 2*block, func(_ *mlScratch, _, lo, hi int) {
			mlMerge(spare[lo:hi], all[lo:min(lo+block, hi)], all[min(lo+block, hi):hi])
		})
		all, spare = spare, all
	}
	return all
}

// mlMerge merges two sorted lists.
func mlMerge(to, a, b []mlOffer) {
	for i := range to {
		if len(b) == 0 || len(a) > 0 && a[0].compare(b[0]) <= 0 {
			to[i], a = a[0], a[1:]
		} else {
			to[i], b = b[0], b[1:]
		}
	}
}
