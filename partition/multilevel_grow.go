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
	whole []int64     // by vertex: weight of all its edges
	at    []mlGrowing // by vertex
	key   []uint64    // by place: gain in the upper half, in the lower less for those that came later
	who   []uint32    // by place
	last  int         // place that is in use
	moves []uint32
	age   uint32
}

// mlGrowing is what growth knows of a vertex. Whether a neighbour is new at the border,
// there already or taken nobody can foresee, so nothing may depend on it but numbers:
// who is taken has the first place, where all keys are zero.
type mlGrowing struct {
	gain  int64  // weight of its edges into the new side, less that of the others
	open  uint64 // all ones; 0: moved, or found not to fit
	place uint64 // at the border; 0: not there
}

// mlTaken is the place of those that are taken; the border begins after it.
const mlTaken = 1

// grow is the best of several bisections of a small graph.
func (r *mlRun) grow(g *mlGraph, limit []int64, key rng.Key) mlSides {
	s := newMLState(g, 2, mlMake[uint16](r.mem, g.n), limit)
	w := r.growth(s)
	best := mlMake[uint16](r.mem, g.n)
	var bestExcess float64
	var bestCut int64
	for t := range r.style.seeds {
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
	w.whole, w.at = mlResize(w.whole, n), mlResize(w.at, n)
	w.key, w.who = mlResize(w.key, n+mlTaken+2), mlResize(w.who, n+mlTaken+2)
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
		w.at[v].open, w.at[v].place = 0, mlTaken
		if !w.open(v, 1) {
			misfits++
			continue
		}
		cut -= w.at[v].gain
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
		w.at[v] = mlGrowing{gain: -sum, open: ^uint64(0)}
	}
	w.last, w.moves, w.age = mlTaken, w.moves[:0], 0
}

// next is the best vertex at the border, or the next seed.
func (w *mlGrowth) next(seed int, seeds *int) (uint32, bool) {
	if w.last > mlTaken {
		return w.pop(), true
	}
	for *seeds < w.g.n {
		v := uint32((seed + *seeds) % w.g.n)
		*seeds++
		if w.at[v].open != 0 {
			return v, true
		}
	}
	return 0, false
}

// pop takes the best vertex from the border.
func (w *mlGrowth) pop() uint32 {
	key := w.key[mlTaken+1 : w.last+1]
	var top uint64
	for _, k := range key {
		top = max(top, k)
	}
	i := 0
	for key[i] != top {
		i++
	}
	i += mlTaken + 1
	v := w.who[i]
	w.key[i], w.who[i] = w.key[w.last], w.who[w.last]
	w.at[w.who[i]].place = uint64(i)
	w.last--
	return v
}

// take moves v to the side that grows; its neighbours come to the border.
func (w *mlGrowth) take(v uint32) {
	w.shift(v, 1)
	w.moves = append(w.moves, v)
	lo, hi := w.g.off[v], w.g.off[v+1]
	last, age := uint64(w.last), w.age
	for i, u := range w.g.adj[lo:hi] {
		x := &w.at[u]
		x.gain += 2 * int64(w.g.edgeWeight(lo+int64(i)))
		age++
		fresh := (x.place - 1) >> 63
		last += fresh
		x.place += last & -fresh
		w.key[x.place] = (uint64(uint32(mlKey(x.gain))^1<<31)<<32 | uint64(^age)) & x.open
		w.who[x.place] = u
	}
	w.last, w.age = int(last), age
}
