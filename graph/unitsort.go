package graph

import (
	"fmt"
	"math"
	"math/bits"

	"starling/event"
)

// unitSort is the workspace of one core, and its result.
type unitSort struct {
	ends, otherEnds       []uint64
	weights, otherWeights []float32
	digit                 [1 << mostDigit]uint32
	next, indices         []uint32
	dropped               []uint32 // rows of repeated edges, in order
	thorough              bool     // sources are sorted by all digits
	g                     CSR      // rows of the unit; Indptr from 0
	asymmetry             uint64
}

// sort sorts a unit by target, then by source, as FromEdges does: first by the highest digit of
// the source, then by target. Few edges are then out of order, unless sources of one target
// have similar numbers; order moves them. If they are many, all digits are sorted by,
// and in later units from the start. Only order has unpredictable branches. This takes 0.6 of
// the time of sorting by all digits (BenchmarkUnitSort, near=false), and as much if it
// has to (near=true).
func (x *unitSort) sort(s *Sorter, u unit) error {
	var edges int64
	for _, b := range s.buckets[u.lo:u.hi] {
		edges += b.edges
	}
	first, last := s.buckets[u.lo].first, s.buckets[u.hi-1]
	rows := last.first + last.rows - first
	if edges > math.MaxInt32 {
		return fmt.Errorf("%s lead to %s from %d on, more than can be sorted at a time", event.Tally(edges, "edge"),
			event.Tally(rows, "vertex"),
			first)
	}
	if err := x.load(s, u, int(edges)); err != nil {
		return err
	}
	x.otherEnds, x.otherWeights = grown(x.otherEnds, len(x.ends)), grown(x.otherWeights, len(x.weights))
	x.next, x.indices = grown(x.next, rows), grown(x.indices, len(x.ends))
	wide := bits.Len(uint(s.n))
	x.bySource(wide)
	x.byTarget(s, uint64(first))
	if !x.order() {
		x.thorough = true
		x.bySource(wide)
		x.byTarget(s, uint64(first))
	}
	x.toRows(s, uint64(first))
	x.startRows()
	if s.typed {
		x.g.relationsFromWeights()
		return nil
	}
	return checkFinite("weights", x.g.Weights, 1)
}

// mostDigit is the widest digit in bits: its counters fit the L1 cache.
const mostDigit = 12

// bySource sorts by the highest digit of the source, or by all, the lowest first.
func (x *unitSort) bySource(wide int) {
	highest := max(0, wide-mostDigit)
	if x.thorough {
		for from := 0; from < highest; from += mostDigit {
			x.byDigit(from, min(mostDigit, highest-from))
		}
	}
	x.byDigit(highest, min(wide, mostDigit))
}

// byDigit sorts by some bits above shift. Equal ones stay in their order.
func (x *unitSort) byDigit(shift, wide int) {
	next, to := &x.digit, x.otherEnds
	mask := (uint64(1)<<wide - 1) & (1<<mostDigit - 1) // which removes bounds checks below
	shift &= 63
	clear(next[:mask+1])
	for _, e := range x.ends {
		next[e>>shift&mask]++
	}
	sums(next[:mask+1])
	if len(x.weights) == 0 {
		for _, e := range x.ends {
			d := e >> shift & mask
			at := next[d]
			next[d] = at + 1
			to[at] = e
		}
	} else {
		for i, e := range x.ends {
			d := e >> shift & mask
			at := next[d]
			next[d] = at + 1
			to[at], x.otherWeights[at] = e, x.weights[i]
		}
	}
	x.swap()
}

// byTarget sorts by target and leaves in next where rows end. Hashes are computed in the same
// loop, where the processor waits for memory.
func (x *unitSort) byTarget(s *Sorter, first uint64) {
	next, to, asymmetry := x.next, x.otherEnds, uint64(0)
	clear(next)
	for _, e := range x.ends {
		next[e>>32-first]++
	}
	sums(next)
	if len(x.weights) == 0 {
		for _, e := range x.ends {
			row := e>>32 - first
			at := next[row]
			next[row] = at + 1
			to[at] = e
			asymmetry += SignedHash(uint64(uint32(e)), e>>32, 0)
		}
	} else {
		for i, e := range x.ends {
			row := e>>32 - first
			at := next[row]
			next[row] = at + 1
			to[at], x.otherWeights[at] = e, x.weights[i]
			asymmetry += s.signedHash(e, x.weights[i])
		}
	}
	x.asymmetry = asymmetry
	x.swap()
}

// signedHash hashes an edge with its weight. Numbers that stand for positions in the list
// of edges are left out.
func (s *Sorter) signedHash(e uint64, w float32) uint64 {
	if s.numbered {
		w = 0
	}
	return SignedHash(uint64(uint32(e)), e>>32, w)
}

// sums replaces each number by the sum of those before it.
func sums(s []uint32) {
	var sum uint32
	for i, n := range s {
		s[i] = sum
		sum += n
	}
}

func (x *unitSort) swap() {
	x.ends, x.otherEnds = x.otherEnds, x.ends
	x.weights, x.otherWeights = x.otherWeights, x.weights
}

// order moves edges that are out of order behind the last that is not greater. It stops
// once that costs about as much as sorting by one more digit.
func (x *unitSort) order() bool {
	cost, last := 0, uint64(0)
	for i, e := range x.ends {
		if e >= last {
			last = e
			continue
		}
		at := i
		for at > 0 && x.ends[at-1] > e {
			at--
		}
		insert(x.ends, at, i)
		if len(x.weights) > 0 {
			insert(x.weights, at, i)
		}
		if cost += 8 + i - at; cost > len(x.ends) {
			return false
		}
	}
	return true
}

// insert moves s[from] to an earlier position, and those between up.
func insert[T any](s []T, at, from int) {
	x := s[from]
	copy(s[at+1:from+1], s[at:from])
	s[at] = x
}

// toRows makes neighbours and weights of sorted edges.
func (x *unitSort) toRows(s *Sorter, first uint64) {
	indices, weights, drop := x.indices, x.otherWeights, s.opt.DropDuplicates
	x.dropped = x.dropped[:0]
	last, to := uint64(0), 0
	for i, e := range x.ends {
		if e == last && drop && i > 0 {
			var w float32
			if len(weights) > 0 {
				w = x.weights[i]
			}
			x.asymmetry -= s.signedHash(e, w)
			x.dropped = append(x.dropped, uint32(e>>32-first))
			continue
		}
		last = e
		indices[to] = uint32(e)
		if len(weights) > 0 {
			weights[to] = x.weights[i]
		}
		to++
	}
	x.g.Indices, x.g.Weights = indices[:to], weights[:min(to, len(weights))]
}

// startRows computes where rows begin, after dropping repeated edges.
func (x *unitSort) startRows() {
	start, drops := grown(x.g.Indptr, len(x.next)+1), 0
	start[0] = 0
	for v, end := range x.next {
		for drops < len(x.dropped) && int(x.dropped[drops]) == v {
			drops++
		}
		start[v+1] = int64(end) - int64(drops)
	}
	x.g.Indptr = start
}

// load reads a unit's edges in the order they were added, bucket by bucket.
func (x *unitSort) load(s *Sorter, u unit, edges int) error {
	x.ends = grown(x.ends, edges)
	if s.weighted {
		x.weights = grown(x.weights, edges)
	}
	at := 0
	for k := u.lo; k < u.hi; k++ {
		b := &s.buckets[k]
		for _, e := range b.written {
			var w []float32
			if s.weighted {
				w = x.weights[at : at+e.edges]
			}
			if err := s.read(e, x.ends[at:at+e.edges], w); err != nil {
				return err
			}
			at += e.edges
		}
		copy(x.ends[at:], b.ends)
		if s.weighted {
			copy(x.weights[at:], b.weights)
		}
		at += len(b.ends)
		*b = bucket{}
	}
	return nil
}

// read reads back what spill wrote.
func (s *Sorter) read(e extent, ends []uint64, weights []float32) error {
	at := e.at
	for _, part := range [][]byte{asBytes(ends), asBytes(weights)} {
		if _, err := s.file.ReadAt(part, at); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return nil
}
