package graph

import "math/bits"

// If targets are skewed and hubs have neighbouring numbers, one
// bucket may hold a tenth of all edges. Sorting it at once would take the memory of a
// tenth of all edges, and one core while the others wait.

// splitFrom is the number of edges from which a bucket is split.
const splitFrom = 8 * unitEdges

// splitBuckets replaces buckets that are too large.
func (s *Sorter) splitBuckets() error {
	parts := make([][]bucket, len(s.buckets))
	err := parallelErr(int64(len(s.buckets)), 1, func(lo, hi int64) (err error) {
		for k := lo; k < hi && err == nil; k++ {
			parts[k], err = s.split(s.buckets[k])
		}
		return err
	})
	s.buckets = s.buckets[:0]
	for _, p := range parts {
		s.buckets = append(s.buckets, p...)
	}
	return err
}

// split distributes a bucket that is too large to smaller ones, recursively.
func (s *Sorter) split(b bucket) ([]bucket, error) {
	if b.edges < splitFrom || b.rows == 1 {
		return []bucket{b}, nil
	}
	const mostParts = 8 // its logarithm
	wanted := min(bits.Len64(uint64(b.edges/unitEdges)), mostParts)
	shift := max(0, bits.Len(uint(b.rows-1))-wanted)
	parts := bucketsOf(b.first, b.rows, shift)
	err := s.eachEdge(&b, func(e uint64, w float32) error {
		to := &parts[(int(e>>32)-b.first)>>shift]
		to.ends = append(to.ends, e)
		if s.weighted {
			to.weights = append(to.weights, w)
		}
		to.edges++
		if len(to.ends) == splitBuffer {
			return s.spill(to)
		}
		return nil
	})
	var list []bucket
	for _, p := range parts {
		if err == nil {
			var some []bucket
			some, err = s.split(p)
			list = append(list, some...)
		}
	}
	return list, err
}

// splitBuffer is how many edges each of the smaller buckets buffers.
const splitBuffer = 1 << 12

// eachEdge calls f with every edge of a bucket, in the order they were added.
func (s *Sorter) eachEdge(b *bucket, f func(e uint64, w float32) error) error {
	var ends []uint64
	var weights []float32
	each := func() error {
		for i, e := range ends {
			var w float32
			if s.weighted {
				w = weights[i]
			}
			if err := f(e, w); err != nil {
				return err
			}
		}
		return nil
	}
	for _, x := range b.written {
		ends = grown(ends, x.edges)
		if s.weighted {
			weights = grown(weights, x.edges)
		}
		if err := s.read(x, ends, weights); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	ends, weights = b.ends, b.weights
	return each()
}
