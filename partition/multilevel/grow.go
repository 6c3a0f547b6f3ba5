package multilevel

import "starling/rng"

// growing starts a bisection of a small graph, by greedy graph growing: all vertices are
// on one side, and the other one grows from a random vertex, always by the frontier vertex
// that is best for the cut, and of equals by the one that has waited longest. It stops at
// the best state.
//
// The frontier of a hundred vertices is short: a scan for the best one takes less time than
// keeping the frontier sorted.
type growing struct {
	a     *assignment
	whole []int64         // by vertex: weight of all its edges
	at    []frontierState // by vertex
	key   []uint64        // by slot: gain in the upper half; in the lower, less for those that came later
	who   []uint32        // by slot: the vertex
	last  int             // slot in use
	moves []uint32
	age   uint32
}

// frontierState is what growing knows of a vertex. Whether a neighbour is new in the frontier,
// on it already, or taken is unpredictable, so the loop over neighbours has no branches:
// taken vertices share the first slot, where all keys are zero.
type frontierState struct {
	gain int64  // weight of its edges into the growing side, less that of the others
	open uint64 // all ones; 0: moved, or found not to fit
	slot uint64 // in the frontier; 0: not there
}

// takenSlot is the slot of vertices that are taken; the frontier begins after it.
const takenSlot = 1

// grow is the best of several bisections of a small graph, refined.
func (r *run) grow(g *levelGraph, limit []int64, key rng.Key) bisected {
	a := newAssignment(g, 2, makeZeroed[uint16](r.mem, g.n), limit)
	w := r.newGrowing(a)
	best := makeZeroed[uint16](r.mem, g.n)
	var bestExcess float64
	var bestCut int64
	for t := range r.tuning.seeds {
		cut := w.grow(key.IntN(uint64(t), g.n))
		if excess := a.excess(); t == 0 || better(excess, cut, bestExcess, bestCut) {
			copy(best, a.part)
			bestExcess, bestCut = excess, cut
		}
	}
	free(r.mem, a.part)
	a.part = best
	a.recount()
	return r.newTwoWayFM(a).refine(2, patienceFor(g.n)) // refining every one of them gains nothing more
}

// newGrowing prepares growing in a, reusing the memory of the one before.
func (r *run) newGrowing(a *assignment) *growing {
	w := &r.growing
	w.a = a
	n := a.g.n
	w.whole, w.at = resize(w.whole, n), resize(w.at, n)
	w.key, w.who = resize(w.key, n+takenSlot+2), resize(w.who, n+takenSlot+2)
	for v := range uint32(n) {
		for e := a.g.off[v]; e < a.g.off[v+1]; e++ {
			if a.g.adj[e] != v {
				w.whole[v] += int64(a.g.edgeWeight(e))
			}
		}
	}
	return w
}

// grow makes a bisection from one vertex on and returns its cut.
func (w *growing) grow(seed int) int64 {
	w.reset()
	var cut, best int64
	bestExcess, kept, seeds, misfits := w.a.excess(), 0, 0, 0
	for misfits <= 10 {
		v, ok := w.next(seed, &seeds)
		if !ok {
			break
		}
		w.at[v].open, w.at[v].slot = 0, takenSlot
		if !w.a.hasSpace(v, 1) {
			misfits++
			continue
		}
		cut -= w.at[v].gain
		w.take(v)
		if excess := w.a.excess(); excess < bestExcess-1e-9 || excess < bestExcess+1e-9 && cut < best {
			bestExcess, best, kept = excess, cut, len(w.moves)
		}
	}
	for _, v := range w.moves[kept:] {
		w.a.reassign(v, 0)
	}
	return best
}

// reset puts all vertices on side 0.
func (w *growing) reset() {
	clear(w.a.part)
	w.a.recount()
	for v, sum := range w.whole {
		w.at[v] = frontierState{gain: -sum, open: ^uint64(0)}
	}
	w.last, w.moves, w.age = takenSlot, w.moves[:0], 0
}

// next is the best vertex in the frontier, or the next seed.
func (w *growing) next(seed int, seeds *int) (uint32, bool) {
	if w.last > takenSlot {
		return w.pop(), true
	}
	for *seeds < w.a.g.n {
		v := uint32((seed + *seeds) % w.a.g.n)
		*seeds++
		if w.at[v].open != 0 {
			return v, true
		}
	}
	return 0, false
}

// pop takes the best vertex from the frontier.
func (w *growing) pop() uint32 {
	key := w.key[takenSlot+1 : w.last+1]
	var top uint64
	for _, k := range key {
		top = max(top, k)
	}
	i := 0
	for key[i] != top {
		i++
	}
	i += takenSlot + 1
	v := w.who[i]
	w.key[i], w.who[i] = w.key[w.last], w.who[w.last]
	w.at[w.who[i]].slot = uint64(i)
	w.last--
	return v
}

// take moves v to the growing side; its neighbours enter the frontier.
func (w *growing) take(v uint32) {
	w.a.reassign(v, 1)
	w.moves = append(w.moves, v)
	lo, hi := w.a.g.off[v], w.a.g.off[v+1]
	last, age := uint64(w.last), w.age
	for i, u := range w.a.g.adj[lo:hi] {
		x := &w.at[u]
		x.gain += 2 * int64(w.a.g.edgeWeight(lo+int64(i)))
		age++
		fresh := (x.slot - 1) >> 63
		last += fresh
		x.slot += last & -fresh
		w.key[x.slot] = (uint64(uint32(clampGain(x.gain))^1<<31)<<32 | uint64(^age)) & x.open
		w.who[x.slot] = u
	}
	w.last, w.age = int(last), age
}
