package partition

import (
	"context"
	"slices"
	"sort"
)

// Refining lowers the cut of a streamed assignment, in the manner of GREM (Waleffe et al., Armada: Memory-Efficient
// Distributed Training of Large-Scale Graph Neural Networks, 2025), which refines earlier choices while it streams. Here
// streaming comes first, and then passes of refining: the vertices are read in order, in windows of at most windowEdges
// in-edges and windowNodes vertices, and inside a window vertices move from part to part by
//
//	gain(v, k) = |N(v) ∩ P_k| - |N(v) ∩ P_own|,   k a part of a neighbour that v fits into under every limit
//
// greatest first, each at most once per round, as Fiduccia and Mattheyses do (DAC 1982): moves that gain nothing are
// tried too, and taken back from the last one that made the cut smallest. Rows are whole and all moves are made at
// once, so gains are exact where every edge has its reverse. Elsewhere rows have in-edges only: the cut is counted
// before and after a pass, and one that did not lower it is taken back.
//
// In memory are the parts, what each weighs, and a few words for each vertex and in-edge of one window.
type refiner struct {
	p     *Problem
	parts []uint32
	loads *loads
	cut   int64                      // in-edges between parts where it is counted; -1: not yet known
	most  struct{ edges, nodes int } // of a window, unless one vertex has more

	lo, hi int // the window
	state  []refineState
	queue  gainQueue // by number in the window
	log    []refineMove

	count   []int // neighbours by part, for the current vertex
	touched []int
	row     []uint32
}

const (
	// windowEdges is how many in-edges a window has at most.
	windowEdges = 1 << 25
	// windowNodes is how many vertices it has at most.
	windowNodes = 1 << 22
	// refineRounds is how often a window is gone through at most.
	refineRounds = 3
	// refinePatience is how many moves without gain are tried before a round ends.
	refinePatience = 2000
	// refineLooks is how often a round computes the gain of a vertex at most; hubs would be looked at once per neighbour.
	refineLooks = 8
)

// DefaultRefine is how often streaming methods refine where nothing is asked for.
const DefaultRefine = 2

// refineState is of one vertex in a round.
type refineState struct {
	moved bool
	looks uint8
}

type refineMove struct{ v, from, to uint32 }

func newRefiner(p *Problem, parts []uint32, l *loads) *refiner {
	r := &refiner{p: p, parts: parts, loads: l, cut: -1, count: make([]int, p.Parts)}
	r.most.edges, r.most.nodes = windowEdges, windowNodes
	return r
}

// refine is all passes that a problem asks for.
func refine(ctx context.Context, p *Problem, parts []uint32, l *loads, name string) error {
	r := newRefiner(p, parts, l)
	for k := range p.Refine {
		gained, err := r.pass(ctx, name, k)
		if err != nil || gained == 0 {
			return err
		}
	}
	return nil
}

// pass goes through all windows once, and returns by how many edges it lowered the cut. Its result depends on the
// assignment before it and on nothing else.
func (r *refiner) pass(ctx context.Context, name string, k int) (gained int64, err error) {
	n := len(r.parts)
	var old []uint32
	if !r.p.Symmetric {
		old = slices.Clone(r.parts)
		if r.cut < 0 {
			if r.cut, err = r.countCut(ctx); err != nil {
				return 0, err
			}
		}
	}
	for lo := 0; lo < n; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		hi := r.windowFrom(lo)
		r.p.report(name+" refines", int64(k*n+lo), int64(r.p.Refine*n))
		gained += r.window(lo, hi)
		r.scanned(lo, hi)
		lo = hi
	}
	if r.p.Symmetric {
		return gained, nil
	}
	cut, err := r.countCut(ctx)
	if err != nil {
		return 0, err
	}
	if cut >= r.cut {
		copy(r.parts, old)
		r.loads.reset(r.parts)
		return 0, nil
	}
	gained, r.cut = r.cut-cut, cut
	return gained, nil
}

func (r *refiner) scanned(lo, hi int) {
	if r.p.Scanned != nil {
		r.p.Scanned(lo, hi)
	}
}

// windowFrom is where the window that starts at lo ends.
func (r *refiner) windowFrom(lo int) int {
	ptr := r.p.Graph.Indptr
	end := ptr[lo] + int64(r.most.edges)
	n := min(len(ptr)-1-lo, r.most.nodes)
	return max(lo+sort.Search(n, func(i int) bool { return ptr[lo+i+1] > end }), lo+1)
}

// countCut counts the in-edges between parts.
func (r *refiner) countCut(ctx context.Context) (cut int64, err error) {
	read := 0
	for v, own := range r.parts {
		if v%between == 0 {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			r.scanned(read, v)
			read = v
		}
		for _, u := range r.p.Graph.Neighbors(uint32(v)) {
			if r.parts[u] != own {
				cut++
			}
		}
	}
	r.scanned(read, len(r.parts))
	return cut, nil
}

// window refines the vertices lo to hi-1 until a round gains nothing.
func (r *refiner) window(lo, hi int) (gained int64) {
	r.lo, r.hi = lo, hi
	r.queue.grow(hi - lo)
	r.state = slices.Grow(r.state[:0], hi-lo)[:hi-lo]
	for range refineRounds {
		g := r.round()
		if gained += g; g == 0 {
			break
		}
	}
	return gained
}

// round moves each vertex of the window at most once, and takes back what is behind the best cut.
func (r *refiner) round() (best int64) {
	clear(r.state)
	r.queue.clear()
	r.log = r.log[:0]
	for v := r.lo; v < r.hi; v++ {
		r.look(v)
	}
	var sum int64
	keep := 0
	for !r.queue.empty() && len(r.log)-keep < refinePatience {
		i, bound := r.queue.pop()
		v := r.lo + int(i)
		to, gain := r.best(v)
		if to == unassigned {
			continue
		}
		if gain < bound && !r.queue.empty() && gain < r.queue.top() { // others may gain more
			if r.state[i].looks++; r.state[i].looks < refineLooks {
				r.queue.raise(i, gain)
			}
			continue
		}
		from := r.parts[v]
		r.move(v, from, to)
		r.state[i].moved = true
		r.log = append(r.log, refineMove{uint32(v), from, to})
		if sum += int64(gain); sum > best {
			best, keep = sum, len(r.log)
		}
		r.notify(v, from, to)
	}
	for i := len(r.log) - 1; i >= keep; i-- {
		r.move(int(r.log[i].v), r.log[i].to, r.log[i].from)
	}
	return best
}

func (r *refiner) move(v int, from, to uint32) {
	r.loads.add(int(from), v, -1)
	r.loads.add(int(to), v, 1)
	r.parts[v] = to
}

// notify raises the bounds of v's neighbours in the window that may gain more now that v has moved. What gains less is
// found when the vertex is taken from the queue.
func (r *refiner) notify(v int, from, to uint32) {
	for _, w := range r.p.Graph.Neighbors(uint32(v)) {
		u := int(w)
		if u < r.lo || u >= r.hi || r.state[u-r.lo].moved || r.parts[u] == to {
			continue
		}
		switch i := uint32(u - r.lo); {
		case !r.queue.has(i):
			r.look(u)
		case r.parts[u] == from:
			r.queue.raise(i, r.queue.bound[i]+2)
		default:
			r.queue.raise(i, r.queue.bound[i]+1)
		}
	}
}

// look computes the gain of v and queues it, unless it was looked at often in this round.
func (r *refiner) look(v int) {
	s := &r.state[v-r.lo]
	if s.looks >= refineLooks {
		return
	}
	s.looks++
	if to, gain := r.best(v); to != unassigned {
		r.queue.raise(uint32(v-r.lo), gain)
	}
}

// best is the part of a neighbour that v fits into with the greatest gain, of equals the emptiest, of those the first;
// unassigned if there is none.
func (r *refiner) best(v int) (to uint32, gain int32) {
	row := r.p.Graph.Neighbors(uint32(v))
	own := int(r.parts[v])
	r.touched = r.touched[:0]
	r.row = slices.Grow(r.row[:0], len(row))[:len(row)]
	for i, u := range row { // loads that wait for memory, and for nothing else, overlap
		r.row[i] = r.parts[u]
	}
	for i, k := range r.row {
		if int(row[i]) == v {
			continue
		}
		if r.count[k] == 0 {
			r.touched = append(r.touched, int(k))
		}
		r.count[k]++
	}
	to = unassigned
	most, full := 0, 0.0
	for _, k := range r.touched {
		if k == own || r.count[k] < most || !r.loads.fits(k, v) {
			continue
		}
		f := r.loads.fill(k, v)
		if r.count[k] > most || f < full || f == full && uint32(k) < to {
			to, most, full = uint32(k), r.count[k], f
		}
	}
	gain = int32(most - r.count[own])
	for _, k := range r.touched {
		r.count[k] = 0
	}
	return to, gain
}
