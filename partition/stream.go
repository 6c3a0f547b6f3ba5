package partition

import (
	"context"
	"slices"
)

// stream is one pass or several over the vertices in order, each with the list of
// its in-neighbours: the edge file is read sequentially, and besides the
// parts themselves only a few numbers per part are kept.
//
// A vertex goes to the part of highest value among those it fits into under
// every constraint it counts for. From the second pass on it is first removed from
// the part it has (restreaming: Nishimura and Ugander, KDD 2013), so all its
// neighbours count, not only earlier ones.
type stream struct {
	p     *Problem
	parts []uint32
	loads *loads
	// value of a part that holds these neighbours of the vertex and is this full.
	value func(neighbours int, fill float64) float64

	count   []int // neighbours by part, for the current vertex
	touched []int
	row     []uint32 // parts of its neighbours
}

// unassigned marks a vertex that has no part yet.
const unassigned = ^uint32(0)

// between is how many vertices are placed between two checks of the context.
const between = 1 << 16

func newStream(p *Problem, value func(int, float64) float64) *stream {
	s := &stream{p: p, parts: make([]uint32, p.Graph.Nodes()), loads: newLoads(p), value: value,
		count: make([]int, p.Parts)}
	for v := range s.parts {
		s.parts[v] = unassigned
	}
	return s
}

// run streams until the passes are over or nothing moves any more.
func (s *stream) run(ctx context.Context, name string, passes int) ([]uint32, error) {
	for k := range passes {
		moved, err := s.pass(ctx, name, k, passes)
		if err != nil {
			return nil, err
		}
		if moved == 0 {
			break
		}
	}
	if err := refine(ctx, s.p, s.parts, s.loads, name); err != nil {
		return nil, err
	}
	return s.parts, rebalance(ctx, s.p, s.parts, s.loads)
}

// pass streams once, for the k-th time of passes. Its result depends on the assignment before it and on nothing else.
func (s *stream) pass(ctx context.Context, name string, k, passes int) (moved int, err error) {
	n := len(s.parts)
	read := 0
	for v := range n {
		if v%between == 0 {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			s.p.report(name, int64(k*n+v), int64(passes*n))
			if s.p.Scanned != nil {
				s.p.Scanned(read, v)
				read = v
			}
		}
		if s.place(v) {
			moved++
		}
	}
	if s.p.Scanned != nil {
		s.p.Scanned(read, n)
	}
	return moved, nil
}

// place chooses the part of v; it reports whether it changed.
func (s *stream) place(v int) bool {
	old := s.parts[v]
	if old != unassigned {
		s.loads.add(int(old), v, -1)
	}
	s.countNeighbours(v)
	best := s.choose(v, old)
	for _, k := range s.touched {
		s.count[k] = 0
	}
	s.parts[v] = uint32(best)
	s.loads.add(best, v, 1)
	return uint32(best) != old
}

// countNeighbours counts v's neighbours by part.
func (s *stream) countNeighbours(v int) {
	row := s.p.Graph.Neighbors(uint32(v))
	s.touched = s.touched[:0]
	s.row = slices.Grow(s.row[:0], len(row))[:len(row)]
	for i, u := range row { // loads that wait for memory, and for nothing else, overlap
		s.row[i] = s.parts[u]
	}
	for i, k := range s.row {
		if k == unassigned || int(row[i]) == v {
			continue
		}
		if s.count[k] == 0 {
			s.touched = append(s.touched, int(k))
		}
		s.count[k]++
	}
}

// choose compares the parts with neighbours and the emptiest one; no other can win.
func (s *stream) choose(v int, old uint32) int {
	emptiest, least := 0, s.loads.fill(0, v)
	for k := 1; k < s.p.Parts; k++ {
		if f := s.loads.fill(k, v); f < least {
			emptiest, least = k, f
		}
	}
	best, value, full := emptiest, s.value(s.count[emptiest], least), least
	for _, k := range s.touched {
		if !s.loads.fits(k, v) {
			continue
		}
		f := s.loads.fill(k, v)
		switch x := s.value(s.count[k], f); {
		case x > value, x == value && (f < full || f == full && (uint32(k) == old || uint32(best) != old && k < best)):
			best, value, full = k, x, f
		}
	}
	return best
}
