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
	indices, next         []uint32
	g                     CSR // rows of the unit; Indptr from 0
	lopsided              uint64
}

// sort sorts a unit by target, then by source, as FromEdges does: by source first,
// then every edge is placed behind those of its target that came before. Neither has a
// branch to guess wrong: 18 to 20 ns an edge, where sorting digit by digit by target too
// took 25 (BenchmarkUnitSort in turns, 5 edges a row) and comparing within rows 27.
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
	x.bySource(bits.Len(uint(s.n)))
	x.toRows(s, uint64(first), rows)
	return checkFinite("weights", x.g.Weights, 1)
}

// mostDigit is the widest digit in bits. More make fewer passes but scatter each
// over more places than the cache of a core can keep open.
const mostDigit = 10

// bySource sorts by one digit of the source after the other, the lowest first, which
// keeps equal ones in their order.
func (x *unitSort) bySource(wide int) {
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

// toRows makes a graph of edges that are sorted by source.
func (x *unitSort) toRows(s *Sorter, first uint64, rows int) {
	x.startRows(first, rows)
	start, next, drop := x.g.Indptr, x.next, s.opt.DropDuplicates
	// Before the first row is one place more: there is always an edge to compare with.
	indices := grown(x.indices, len(x.ends)+1)
	x.indices = indices
	weights := x.spareWeights[:len(x.weights)]
	lopsided, repeats := uint64(0), false
	for i, e := range x.ends {
		u, row := uint32(e), e>>32-first
		at := next[row]
		if indices[at] == u && drop && int64(at) > start[row] {
			repeats = true
			continue
		}
		next[row] = at + 1
		indices[at+1] = u
		var w float32
		if s.weighted {
			weights[at] = x.weights[i]
			if !s.numbered { // numbers only tell where edges were listed
				w = x.weights[i]
			}
		}
		lopsided += sided(uint64(u), e>>32, w)
	}
	x.weights, x.spareWeights = weights, x.weights
	x.g.Indices, x.g.Weights, x.lopsided = indices[1:], weights, lopsided
	if repeats {
		x.closeGaps()
	}
}

// startRows finds where each row begins, and is to be filled from.
func (x *unitSort) startRows(first uint64, rows int) {
	start, next := grown(x.g.Indptr, rows+1), grown(x.next, rows)
	clear(next)
	for _, e := range x.ends {
		next[e>>32-first]++
	}
	var at uint32
	for v, edges := range next {
		start[v], next[v] = int64(at), at
		at += edges
	}
	start[rows] = int64(at)
	x.g.Indptr, x.next = start, next
}

// closeGaps moves rows together that are not filled, since edges were repeated.
func (x *unitSort) closeGaps() {
	g, to := &x.g, 0
	for v, end := range x.next {
		from := g.Indptr[v]
		g.Indptr[v] = int64(to)
		if len(g.Weights) > 0 {
			copy(g.Weights[to:], g.Weights[from:end])
		}
		to += copy(g.Indices[to:], g.Indices[from:end])
	}
	g.Indptr[len(x.next)] = int64(to)
	g.Indices, g.Weights = g.Indices[:to], g.Weights[:min(to, len(g.Weights))]
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
