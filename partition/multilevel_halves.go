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
	in, out []int64 // by vertex: weight of its edges within its side, and to the other
	whole   []int64 // by vertex: weight of all its edges; for grow
	queue   [2]mlQueue
	locked  []bool
	moves   []uint32
}

// halves prepares refinement of s, in memory that is used again and again.
func (r *mlRun) halves(s *mlState) *mlHalves {
	h := &r.bisector
	h.mlState = s
	n := s.g.n
	h.in, h.out, h.locked = mlResize(h.in, n), mlResize(h.out, n), mlResize(h.locked, n)
	h.queue[0].reset(n)
	h.queue[1].reset(n)
	h.queue[0].fair = false
	for v := range uint32(n) {
		own := s.part[v]
		var in, out int64
		for e := s.g.off[v]; e < s.g.off[v+1]; e++ {
			switch u, w := s.g.adj[e], int64(s.g.edgeWeight(e)); {
			case u == v:
			case s.part[u] == own:
				in += w
			default:
				out += w
			}
		}
		h.in[v], h.out[v] = in, out
	}
	return h
}

func (h *mlHalves) gain(v uint32) int64 { return h.out[v] - h.in[v] }

// refine makes passes while they help.
func (h *mlHalves) refine(passes, patience int) {
	for range passes {
		if !h.pass(patience) {
			return
		}
	}
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
	h.start()
	crowded := [2]bool{h.overloaded(0), h.overloaded(1)}
	for v := range uint32(h.g.n) {
		if own := h.part[v]; h.out[v] > 0 || crowded[own] {
			h.queue[own].set(v, mlKey(h.gain(v)))
		}
	}
}

func (h *mlHalves) start() {
	h.queue[0].clear()
	h.queue[1].clear()
	h.moves = h.moves[:0]
	clear(h.locked)
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

// open tells whether side p is not full yet of anything v weighs.
func (h *mlHalves) open(v uint32, p uint16) bool {
	for c := range h.g.con {
		if at := int(p)*h.g.con + c; h.g.load(v, c) > 0 && h.load[at] >= h.limit[at] {
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
	h.in[v], h.out[v] = h.out[v], h.in[v]
	if forward {
		h.locked[v] = true
		h.moves = append(h.moves, v)
	}
	for e := h.g.off[v]; e < h.g.off[v+1]; e++ {
		u, w := h.g.adj[e], int64(h.g.edgeWeight(e))
		if u == v {
			continue
		}
		w *= 1 - 2*int64(h.part[u]^to) // less of what is in if u stays behind
		h.in[u] += w
		h.out[u] -= w
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

// grow moves vertices from side 0, where all are, to side 1, each time the one that
// is best for the cut, and stops at the best point. It returns the cut.
func (h *mlHalves) grow(seed int) int64 {
	h.start()
	h.queue[0].fair = true // grow in breadth
	var cut, best int64
	bestExcess, kept, seeds, misfits := h.excess(), 0, 0, 0
	for misfits <= 10 {
		v, ok := h.nextToGrow(seed, &seeds)
		if !ok {
			break
		}
		if !h.open(v, 1) {
			h.locked[v] = true
			misfits++
			continue
		}
		cut -= h.gain(v)
		h.move(v, true)
		if excess := h.excess(); excess < bestExcess-1e-9 || excess < bestExcess+1e-9 && cut < best {
			bestExcess, best, kept = excess, cut, len(h.moves)
		}
	}
	h.undo(kept)
	return best
}

// nextToGrow is the best vertex at the border, or the next seed.
func (h *mlHalves) nextToGrow(seed int, seeds *int) (uint32, bool) {
	if h.queue[0].len() > 0 {
		return h.queue[0].pop(), true
	}
	for *seeds < h.g.n {
		v := uint32((seed + *seeds) % h.g.n)
		*seeds++
		if !h.locked[v] {
			return v, true
		}
	}
	return 0, false
}

// gather takes all vertices back to side 0.
func (h *mlHalves) gather() {
	copy(h.in, h.whole)
	clear(h.out)
	clear(h.part)
	h.weigh()
}
