package multilevel

// twoWayFM refines a bisection by single moves in order of gain, also through worse
// states, back to the best state reached. Each side has a queue of its own, and a side may
// exceed its limit by one vertex for a while: where a vertex weighs more than the
// tolerance, every exchange of two leads through such a state.
//
// C. Fiduccia, R. Mattheyses: A linear-time heuristic for improving network
// partitions, 1982.
type twoWayFM struct {
	a      *assignment
	whole  []int64 // by vertex: weight of all its edges
	out    []int64 // by vertex: weight of its edges to the other side
	queue  [2]bucketQueue
	locked []bool
	moves  []uint32
}

// newTwoWayFM prepares refinement of a, reusing the memory of the level before.
func (r *run) newTwoWayFM(a *assignment) *twoWayFM {
	h := &r.twoWay
	h.a = a
	n := a.g.n
	h.whole, h.out, h.locked = renew(r.mem, h.whole, n), renew(r.mem, h.out, n), renew(r.mem, h.locked, n)
	for i := range h.queue {
		h.queue[i].reset(renew(r.mem, h.queue[i].node, n))
	}
	for v := range uint32(n) {
		own := a.part[v]
		lo, hi := a.g.off[v], a.g.off[v+1]
		var whole, out int64
		for i, u := range a.g.adj[lo:hi] {
			if w := int64(a.g.edgeWeight(lo + int64(i))); u != v {
				whole += w
				out += w * int64(own^a.part[u])
			}
		}
		h.whole[v], h.out[v] = whole, out
	}
	return h
}

func (h *twoWayFM) gain(v uint32) int64 { return 2*h.out[v] - h.whole[v] }

// refine makes passes while they help, and returns the bisection they led to.
func (h *twoWayFM) refine(passes, patience int) bisected {
	for range passes {
		if !h.pass(patience) {
			break
		}
	}
	var cut int64
	for _, w := range h.out {
		cut += w
	}
	return bisected{h.a.part, h.a.excess(), cut / 2}
}

// pass moves every vertex at most once. A prefix of the moves is better than
// another if it exceeds the limits less, or as little and cuts less.
func (h *twoWayFM) pass(patience int) (better bool) {
	h.fill()
	var sum, bestSum int64
	excess := h.a.excess()
	bestExcess, kept, waited := excess, 0, 0
	for waited < patience {
		v, ok := h.next()
		if !ok {
			break
		}
		to := 1 - h.a.part[v]
		relief := h.a.relief(v, to)
		if relief <= 0 && !h.a.hasSpace(v, to) {
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

// fill puts the boundary into the queues, and all vertices of an overloaded side.
func (h *twoWayFM) fill() {
	h.queue[0].clear()
	h.queue[1].clear()
	h.moves = h.moves[:0]
	clear(h.locked)
	overloaded := [2]bool{h.a.overloaded(0), h.a.overloaded(1)}
	for v := range uint32(h.a.g.n) {
		if own := h.a.part[v]; h.out[v] > 0 || overloaded[own] {
			h.queue[own].set(v, clampGain(h.gain(v)))
		}
	}
}

// next takes the best vertex from the queues: from the overloaded side, if there is one.
func (h *twoWayFM) next() (uint32, bool) {
	a, b := &h.queue[0], &h.queue[1]
	side := 0
	switch {
	case a.len() == 0 && b.len() == 0:
		return 0, false
	case a.len() == 0:
		side = 1
	case b.len() == 0:
	case h.a.overloaded(0):
	case h.a.overloaded(1) || b.top() > a.top():
		side = 1
	}
	return h.queue[side].pop(), true
}

// move takes v to the other side. Forward, v is locked and its neighbours enter the queues
// with their new gains.
func (h *twoWayFM) move(v uint32, forward bool) {
	part, to := h.a.part, 1-h.a.part[v]
	h.a.reassign(v, to)
	h.out[v] = h.whole[v] - h.out[v]
	if forward {
		h.locked[v] = true
		h.moves = append(h.moves, v)
	}
	lo, hi := h.a.g.off[v], h.a.g.off[v+1]
	for i, u := range h.a.g.adj[lo:hi] {
		if u == v {
			continue
		}
		h.out[u] += int64(h.a.g.edgeWeight(lo+int64(i))) * (2*int64(part[u]^to) - 1) // more if u is on the other side
		switch queue := &h.queue[part[u]]; {
		case !forward || h.locked[u]:
		case h.out[u] > 0:
			queue.set(u, clampGain(h.gain(u)))
		default:
			queue.remove(u)
		}
	}
}

// undo takes back all moves but the first kept.
func (h *twoWayFM) undo(kept int) {
	for i := len(h.moves) - 1; i >= kept; i-- {
		h.move(h.moves[i], false)
	}
	h.moves = h.moves[:kept]
}
