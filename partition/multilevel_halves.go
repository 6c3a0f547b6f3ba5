package partition

// mlHalves refines a bisection: single moves in order of gain, downhill as well,
// back to the best point reached. Each side has a queue of its own, and a side may
// be overfull by one vertex for a while. Where a vertex weighs more than the
// tolerance, every exchange leads over such a point: one comes, another one goes.
//
// C. Fiduccia, R. Mattheyses: A linear-time heuristic for improving network
// partitions, 1982.
type mlHalves struct {
	*mlState
	whole  []int64 // by vertex: weight of all its edges
	out    []int64 // by vertex: weight of its edges to the other side
	queue  [2]mlQueue
	locked []bool
	moves  []uint32
}

// halves prepares refinement of s, in memory that coarsening or the level before has left.
func (r *mlRun) halves(s *mlState) *mlHalves {
	h := &r.bisector
	h.mlState = s
	n := s.g.n
	h.whole, h.out, h.locked = mlRenew(r.mem, h.whole, n), mlRenew(r.mem, h.out, n), mlRenew(r.mem, h.locked, n)
	for i := range h.queue {
		h.queue[i].reset(mlRenew(r.mem, h.queue[i].node, n))
	}
	for v := range uint32(n) {
		own := s.part[v]
		lo, hi := s.g.off[v], s.g.off[v+1]
		var whole, out int64
		for i, u := range s.g.adj[lo:hi] {
			if w := int64(s.g.edgeWeight(lo + int64(i))); u != v {
				whole += w
				out += w * int64(own^s.part[u])
			}
		}
		h.whole[v], h.out[v] = whole, out
	}
	return h
}

func (h *mlHalves) gain(v uint32) int64 { return 2*h.out[v] - h.whole[v] }

// refine makes passes while they help, and returns what they led to.
func (h *mlHalves) refine(passes, patience int) mlSides {
	for range passes {
		if !h.pass(patience) {
			break
		}
	}
	var cut int64
	for _, w := range h.out {
		cut += w
	}
	return mlSides{h.part, h.excess(), cut / 2}
}

// pass moves every vertex at most once. A prefix of the moves is better than
// another if it breaks the limits less, or as little and cuts less.
func (h *mlHalves) pass(patience int) (better bool) {
	h.fill()
	var sum, bestSum int64
	excess := h.excess()
	bestExcess, kept, waited := excess, 0, 0
	for waited < patience {
		v, ok := h.next()
		if !ok {
			break
		}
		to := 1 - h.part[v]
		relief := h.relief(v, to)
		if relief <= 0 && !h.open(v, to) {
			continue
		}
		excess -= relief
		sum += h.gain(v)
		h.move(v, true)
		waited++
		if excess < bestExcess-1e-9 || excess < bestExcess+1e-9 && sum > bestSum {
			bestExcess, bestSum, kept, waited = excess, sum, len(h.moves), 0
		}
	}
	h.undo(kept)
	return kept > 0
}

// fill puts the boundary into the queues, and all of a side that must shrink.
func (h *mlHalves) fill() {
	h.queue[0].clear()
	h.queue[1].clear()
	h.moves = h.moves[:0]
	clear(h.locked)
	crowded := [2]bool{h.overloaded(0), h.overloaded(1)}
	for v := range uint32(h.g.n) {
		if own := h.part[v]; h.out[v] > 0 || crowded[own] {
			h.queue[own].set(v, mlKey(h.gain(v)))
		}
	}
}

// next takes the best vertex off the queues: from the side that is too heavy, if one is.
func (h *mlHalves) next() (uint32, bool) {
	a, b := &h.queue[0], &h.queue[1]
	side := 0
	switch {
	case a.len() == 0 && b.len() == 0:
		return 0, false
	case a.len() == 0:
		side = 1
	case b.len() == 0:
	case h.overloaded(0):
	case h.overloaded(1) || b.top() > a.top():
		side = 1
	}
	return h.queue[side].pop(), true
}

// open tells whether part p is not full yet of anything v weighs.
func (s *mlState) open(v uint32, p uint16) bool {
	for c := range s.g.con {
		if at := int(p)*s.g.con + c; s.g.load(v, c) > 0 && s.load[at] >= s.limit[at] {
			return false
		}
	}
	return true
}

// move takes v to the other side; forward, it is locked and its neighbours find
// their new places in the queues.
func (h *mlHalves) move(v uint32, forward bool) {
	to := 1 - h.part[v]
	h.shift(v, to)
	h.out[v] = h.whole[v] - h.out[v]
	if forward {
		h.locked[v] = true
		h.moves = append(h.moves, v)
	}
	lo, hi := h.g.off[v], h.g.off[v+1]
	for i, u := range h.g.adj[lo:hi] {
		if u == v {
			continue
		}
		h.out[u] += int64(h.g.edgeWeight(lo+int64(i))) * (2*int64(h.part[u]^to) - 1) // more if u stays behind
		switch queue := &h.queue[h.part[u]]; {
		case !forward || h.locked[u]:
		case h.out[u] > 0:
			queue.set(u, mlKey(h.gain(u)))
		default:
			queue.remove(u)
		}
	}
}

// undo takes back all moves but the first kept.
func (h *mlHalves) undo(kept int) {
	for i := len(h.moves) - 1; i >= kept; i-- {
		h.move(h.moves[i], false)
	}
	h.moves = h.moves[:kept]
}
