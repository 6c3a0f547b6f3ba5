package partition

import "starling/rng"

// mlGrowth is how a bisection of a small graph starts: all vertices are in one side, and
// the other one grows from a random vertex, always by the vertex at its border that is
// best for the cut, and of equals by the one that has waited longest. It stops at the
// best point.
//
// The border of a hundred vertices is short. To look through all of it for the best one
// takes less time than to keep it in order.
type mlGrowth struct {
	*mlState
	whole []int64  // by vertex: weight of all its edges
	gain  []int64  // by vertex: weight of its edges into the new side, less that of the others
	place []uint32 // by vertex: its place at the border, plus one; 0: not there
	key   []uint64 // by place: gain in the upper half, in the lower less for those that came later
	who   []uint32 // by place
	taken []bool   // by vertex: moved, or found not to fit
	moves []uint32
	age   uint32
}

// grow is the best of several bisections of a small graph.
func (r *mlRun) grow(g *mlGraph, limit []int64, key rng.Key) mlSides {
	const seeds = 6
	s := newMLState(g, 2, mlMake[uint16](r.mem, g.n), limit)
	w := r.growth(s)
	best := mlMake[uint16](r.mem, g.n)
	var bestExcess float64
	var bestCut int64
	for t := range seeds {
		cut := w.grow(key.IntN(uint64(t), g.n))
		if excess := s.excess(); t == 0 || mlBetter(excess, cut, bestExcess, bestCut) {
			copy(best, s.part)
			bestExcess, bestCut = excess, cut
		}
	}
	mlFree(r.mem, s.part)
	s.part = best
	s.weigh()
	return r.halves(s).refine(2, mlPatience(g.n)) // refining every one of them gains nothing more
}

// growth prepares growing in s, in memory that is used again and again.
func (r *mlRun) growth(s *mlState) *mlGrowth {
	w := &r.grower
	w.mlState = s
	n := s.g.n
	w.whole, w.gain, w.place, w.taken = mlResize(w.whole, n), mlResize(w.gain, n), mlResize(w.place, n), mlResize(w.taken, n)
	for v := range uint32(n) {
		for e := s.g.off[v]; e < s.g.off[v+1]; e++ {
			if s.g.adj[e] != v {
				w.whole[v] += int64(s.g.edgeWeight(e))
			}
		}
	}
	return w
}

// grow makes a bisection from one vertex on and returns its cut.
func (w *mlGrowth) grow(seed int) int64 {
	w.gather()
	var cut, best int64
	bestExcess, kept, seeds, misfits := w.excess(), 0, 0, 0
	for misfits <= 10 {
		v, ok := w.next(seed, &seeds)
		if !ok {
			break
		}
		w.taken[v] = true
		if !w.open(v, 1) {
			misfits++
			continue
		}
		cut -= w.gain[v]
		w.take(v)
		if excess := w.excess(); excess < bestExcess-1e-9 || excess < bestExcess+1e-9 && cut < best {
			bestExcess, best, kept = excess, cut, len(w.moves)
		}
	}
	for _, v := range w.moves[kept:] {
		w.shift(v, 0)
	}
	return best
}

// gather takes all vertices back to side 0.
func (w *mlGrowth) gather() {
	clear(w.part)
	w.weigh()
	for v, sum := range w.whole {
		w.gain[v] = -sum
	}
	clear(w.place)
	clear(w.taken)
	w.key, w.who, w.moves, w.age = w.key[:0], w.who[:0], w.moves[:0], 0
}

// next is the best vertex at the border, or the next seed.
func (w *mlGrowth) next(seed int, seeds *int) (uint32, bool) {
	if len(w.key) > 0 {
		return w.pop(), true
	}
	for *seeds < w.g.n {
		v := uint32((seed + *seeds) % w.g.n)
		*seeds++
		if !w.taken[v] {
			return v, true
		}
	}
	return 0, false
}

// pop takes the best vertex from the border.
func (w *mlGrowth) pop() uint32 {
	var top uint64
	for _, k := range w.key {
		top = max(top, k)
	}
	i := 0
	for w.key[i] != top {
		i++
	}
	v, last := w.who[i], len(w.who)-1
	w.key[i], w.who[i] = w.key[last], w.who[last]
	w.place[w.who[i]] = uint32(i + 1)
	w.key, w.who, w.place[v] = w.key[:last], w.who[:last], 0
	return v
}

// take moves v to the side that grows; its neighbours come to the border.
func (w *mlGrowth) take(v uint32) {
	w.shift(v, 1)
	w.moves = append(w.moves, v)
	for e := w.g.off[v]; e < w.g.off[v+1]; e++ {
		u := w.g.adj[e]
		if w.taken[u] {
			continue
		}
		w.gain[u] += 2 * int64(w.g.edgeWeight(e))
		w.age++
		key := uint64(uint32(mlKey(w.gain[u]))^1<<31)<<32 | uint64(^w.age)
		if at := w.place[u]; at > 0 {
			w.key[at-1] = key
			continue
		}
		w.key, w.who = append(w.key, key), append(w.who, u)
		w.place[u] = uint32(len(w.who))
	}
}
