package graph

import (
	"fmt"
	"math"
	"math/bits"
)

// unitSort is the memory one core sorts in, and its result.
type unitSort struct {
	ends, spareEnds       []uint64
	weights, spareWeights []float32
	tmp                   []uint32
	g                     CSR // rows of the unit; Indptr from 0
	lopsided              uint64
}

// sort sorts a unit by target, then by source, as FromEdges does.
func (x *unitSort) sort(s *Sorter, u unit) error {
	var edges int64
	for _, b := range s.buckets[u.lo:u.hi] {
		edges += b.edges
	}
	first, last := s.buckets[u.lo].first, s.buckets[u.hi-1]
	rows := last.first + last.rows - first
	if edges > math.MaxInt32 {
		return fmt.Errorf("%d edges lead to %d vertices from %d on, more than can be sorted at a time", edges, rows, first)
	}
	if err := x.load(s, u, int(edges)); err != nil {
		return err
	}
	low := bits.Len(uint(s.n)) & 63
	for i, e := range x.ends {
		x.ends[i] = (e>>32-uint64(first))<<low | e&math.MaxUint32
	}
	x.sortEnds(low + bits.Len(uint(rows)))
	x.toRows(s, low, uint64(first), rows)
	return checkFinite("weights", x.g.Weights, 1)
}

// mostDigit is the widest digit in bits. More make fewer passes but scatter each
// over more places than the cache of a core can keep open.
const mostDigit = 10

// sortEnds sorts by one digit after the other, the lowest first, which keeps equal
// edges in their order and has no branch to guess wrong: 20 ns an edge where sorting
// each row after placing its edges took 27 with 5 edges a row, and 40 with 50
// (BenchmarkUnitSort and its like of before, two cores of a busy machine).
func (x *unitSort) sortEnds(wide int) {
	x.spareEnds = grown(x.spareEnds, len(x.ends))
	x.spareWeights = grown(x.spareWeights, len(x.weights))
	digits := (wide + mostDigit - 1) / mostDigit
	for d := range digits {
		from, to := wide*d/digits, wide*(d+1)/digits
		x.byDigit(from, 1<<(to-from)-1)
	}
}

// byDigit sorts by the bits of mask above shift.
func (x *unitSort) byDigit(shift int, mask uint64) {
	var next [1 << mostDigit]uint32
	mask &= 1<<mostDigit - 1
	shift &= 63
	for _, e := range x.ends {
		next[e>>shift&mask]++
	}
	if len(x.ends) == 0 || int(next[x.ends[0]>>shift&mask]) == len(x.ends) {
		return // all share it
	}
	var at uint32
	for i, c := range next[:mask+1] {
		next[i] = at
		at += c
	}
	to := x.spareEnds
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
			to[at], x.spareWeights[at] = e, x.weights[i]
		}
	}
	x.ends, x.spareEnds = x.spareEnds, x.ends
	x.weights, x.spareWeights = x.spareWeights, x.weights
}

// toRows makes a graph of sorted edges whose low bits are their source.
func (x *unitSort) toRows(s *Sorter, low int, first uint64, rows int) {
	if s.opt.DropDuplicates {
		x.dropRepeats()
	}
	indptr, indices := grown(x.g.Indptr, rows+1), grown(x.g.Indices, len(x.ends))
	x.g = CSR{Indptr: indptr, Indices: indices, Weights: x.weights}
	clear(indptr)
	mask, lopsided := uint64(1)<<low-1, uint64(0)
	for i, e := range x.ends {
		u, row := e&mask, e>>low
		indices[i], indptr[row+1] = uint32(u), int64(i+1)
		lopsided += sided(u, row+first, 0)
	}
	if s.weighted && !s.numbered { // numbers only tell where edges were listed
		lopsided = 0
		for i, e := range x.ends {
			lopsided += sided(e&mask, e>>low+first, x.weights[i])
		}
	}
	x.lopsided = lopsided
	var end int64
	for i, at := range indptr {
		end = max(end, at) // rows without edges end where the one before does
		indptr[i] = end
	}
}

// dropRepeats keeps the first of equal edges.
func (x *unitSort) dropRepeats() {
	to, before := 0, uint64(math.MaxUint64)
	for i, e := range x.ends {
		if e == before {
			continue
		}
		before, x.ends[to] = e, e
		if len(x.weights) > 0 {
			x.weights[to] = x.weights[i]
		}
		to++
	}
	x.ends, x.weights = x.ends[:to], x.weights[:min(to, len(x.weights))]
}

// load reads a unit's edges in the order they came, bucket by bucket.
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
