package sample

import (
	"slices"

	"starling/rng"
)

// without are edges that a batch must not draw: of each of its first rows, sources
// in ascending order.
type without struct {
	ptr     []int32
	sources []uint32
	allowed []int64 // places of a row's other edges
}

func (w *without) reset() { w.ptr, w.sources = w.ptr[:0], w.sources[:0] }

// fill takes row<<32 | source, in ascending order.
func (w *without) fill(links []uint64) {
	w.reset()
	for _, l := range links {
		for len(w.ptr) <= int(l>>32) {
			w.ptr = append(w.ptr, int32(len(w.sources)))
		}
		w.sources = append(w.sources, uint32(l))
	}
	w.ptr = append(w.ptr, int32(len(w.sources)))
}

// of returns the excluded sources of a row.
func (w *without) of(row int) []uint32 {
	if row+1 >= len(w.ptr) {
		return nil
	}
	return w.sources[w.ptr[row]:w.ptr[row+1]]
}

// pickOthers draws edges of v except those from excluded sources, and
// returns what all of them count: the sum is an estimate of that over the edges left. The edges are from first on; row
// is where all of v's are.
func (s *neighbours) pickOthers(key rng.Key, v uint32, row, first int64, degree, fanout int,
	excluded []uint32) float32 {
	w := &s.without
	w.allowed = w.allowed[:0]
	for e := first; e < first+int64(degree); e++ {
		at := e
		if s.of.Order != nil {
			at = row + int64(s.of.Order.At(e))
		}
		if _, is := slices.BinarySearch(excluded, s.of.Graph.Indices[at]); !is {
			w.allowed = append(w.allowed, e)
		}
	}
	left := len(w.allowed)
	if fanout == All || left <= fanout {
		s.picked = append(s.picked, w.allowed...)
		return 1
	}
	from := len(s.picked)
	s.picked = s.choose.distinct(s.picked, key.Fold(uint64(v)), 0, left, fanout)
	for i, at := range s.picked[from:] {
		s.picked[from+i] = w.allowed[at]
	}
	return float32(left) / float32(fanout)
}
