package multilevel

import "context"

// kwayFM refines by single moves in order of gain, also through worse states, back to
// the best state reached.
//
// C. Fiduccia, R. Mattheyses: A linear-time heuristic for improving network
// partitions, 1982; here for any number of parts. It is sequential: it refines coarse and
// small graphs, and large ones under several limits.
type kwayFM struct {
	a       *assignment
	ctx     context.Context
	table   []uint32 // by vertex and part: weight of edges into it; empty: see wantsTable
	cached  []bool   // by vertex: in and out are valid
	in, out []uint32 // by vertex: weight of its edges inside its part, and into the best other one
	conn    []uint32 // by part, of one vertex, if there is no table; zero between uses
	queue   bucketQueue
	locked  []bool
	moves   []move
	hint    []uint32 // where the first pass looks for the boundary; nil: everywhere
	started bool     // the first pass is over
	queued  []uint32 // vertices that have been in the queue
	seen    []bool   // by vertex: in queued
	seeds   []uint32 // of localized

	gainPerPass int64 // as in tuning
}

type move struct {
	v    uint32
	part uint16
}

// newKwayFM prepares refinement of a, reusing the memory of the level before. If hint is
// not nil, only its vertices can be on the boundary.
func (r *run) newKwayFM(a *assignment, hint []uint32) *kwayFM {
	if r.kway == nil {
		r.kway = &kwayFM{}
	}
	f, g := r.kway, a.g
	f.a, f.ctx, f.gainPerPass = a, r.ctx, r.tuning.gainPerPass
	f.locked, f.seen = renew(r.mem, f.locked, g.n), renew(r.mem, f.seen, g.n)
	f.cached = renew(r.mem, f.cached, g.n)
	free(r.mem, f.in)
	free(r.mem, f.out)
	f.in, f.out = makeUnzeroed[uint32](r.mem, g.n), makeUnzeroed[uint32](r.mem, g.n)
	f.hint, f.started, f.queued = hint, false, f.queued[:0]
	f.conn = resize(f.conn, a.k)
	f.queue.reset(renew(r.mem, f.queue.node, g.n))
	f.table = f.table[:0]
	if g.wantsTable(a.k, r.tuning.hubs) {
		f.fillTable()
	}
	return f
}

func (f *kwayFM) fillTable() {
	a, g := f.a, f.a.g
	f.table = resize(f.table, g.n*a.k)
	for v := range uint32(g.n) {
		row := f.row(v)
		for e := g.off[v]; e < g.off[v+1]; e++ {
			if u := g.adj[e]; u != v {
				row[a.part[u]] += g.edgeWeight(e)
			}
		}
	}
}

// wantsTable reports whether a table of weights by vertex and part is worth its memory, or
// whether summing the edges of a vertex when needed is faster. With a table one sum changes when a
// neighbour moves, so it pays where vertices have many edges, or some have very many. A large
// graph wants one even if degrees are a quarter of the number of parts: it has hubs.
func (g *levelGraph) wantsTable(k int, hubs bool) bool {
	const mostSums, manyEdges = 1 << 22, 16
	n := int64(g.n)
	switch sums := n * int64(k); {
	case g.edges() > sequentialEdges:
		return 4*g.edges() >= sums
	case hubs || g.edges() >= manyEdges*n:
		return sums <= mostSums
	default:
		return g.edges() >= 4*sums
	}
}

// patienceFor is how many moves in a row may fail to reach a new best state.
func patienceFor(n int) int { return min(max(n/25, 20), 400) }

func (f *kwayFM) row(v uint32) []uint32 { return f.table[int(v)*f.a.k : (int(v)+1)*f.a.k] }

// refine makes passes while they help; it returns the cut gained.
func (f *kwayFM) refine(passes, patience int) (gained int64) {
	for _, whole := range []bool{false, true} {
		if f.a.excess() > 0 {
			gained += f.rebalance(whole)
		}
	}
	for range passes {
		f.fill(false)
		boundary := int64(f.queue.len())
		g, relieved := f.pass(patience)
		gained += g
		if !relieved && (g <= 0 || g*f.gainPerPass < boundary && f.gainPerPass > 0) || f.ctx.Err() != nil {
			break
		}
	}
	return gained
}

// rebalance moves vertices out of overloaded parts, those first that are best for the cut:
// boundary vertices, or all if whole.
func (f *kwayFM) rebalance(whole bool) (gained int64) {
	f.fill(whole)
	for f.queue.len() > 0 {
		v := f.queue.pop()
		if !f.a.overloaded(int(f.a.part[v])) {
			continue
		}
		to, gain, ok := f.target(v)
		if !ok {
			continue
		}
		if f.queue.above(clampGain(gain)) {
			f.queue.set(v, clampGain(gain))
			continue
		}
		gained += gain
		f.move(v, to, true)
		if f.a.excess() == 0 {
			break
		}
	}
	return gained
}

// next takes the vertex whose move gains most from the queue. Keys of the queue may be
// older than moves of neighbours, so each is checked.
func (f *kwayFM) next() (v uint32, to uint16, gain int64, ok bool) {
	for f.queue.len() > 0 {
		v = f.queue.pop()
		to, gain, ok = f.target(v)
		if ok && !f.queue.above(clampGain(gain)) {
			return v, to, gain, true
		}
		if ok {
			f.queue.set(v, clampGain(gain))
		}
	}
	return 0, 0, 0, false
}

// pass moves every vertex at most once. A prefix of the moves is better than
// another if it exceeds the limits less, or as little and cuts less.
func (f *kwayFM) pass(patience int) (gained int64, relieved bool) {
	var sum, bestSum int64
	var squares float64 // of gains since the best state
	excess := f.a.excess()
	first, bestExcess := excess, excess
	kept, waited := 0, 0
	for waited < patience {
		// With several limits, worse states may be the only way to fitting ones.
		if f.a.g.con == 1 && descends(float64(sum-bestSum), squares, float64(waited)) {
			break
		}
		v, to, gain, ok := f.next()
		if !ok {
			break
		}
		excess -= f.a.relief(v, to)
		sum += gain
		squares += float64(gain) * float64(gain)
		f.moves = append(f.moves, move{v, f.a.part[v]})
		f.move(v, to, true)
		waited++
		if excess < bestExcess-1e-9 || excess < bestExcess+1e-9 && sum > bestSum {
			bestExcess, bestSum, kept, waited, squares = excess, sum, len(f.moves), 0, 0
		}
	}
	f.undo(kept)
	return bestSum, bestExcess < first-1e-9
}

// undo takes back all moves but the first kept.
func (f *kwayFM) undo(kept int) {
	for i := len(f.moves) - 1; i >= kept; i-- {
		f.move(f.moves[i].v, f.moves[i].part, false)
	}
}

// descends is the adaptive stopping rule: whether moves since the best state, with gains
// of this sum and these squares, lead down so steadily that a new best is unlikely. Moves
// that cost nothing may go on: that is how the boundary of a mesh finds a better place.
//
// V. Osipov, P. Sanders: n-level graph partitioning, 2010, models gains as a random walk
// and stops once steps·mean² > alpha·variance + beta; here both sides times steps².
func descends(sum, squares, steps float64) bool {
	const least, alpha, beta = 20, 10, 2
	return steps > least && sum < 0 && sum*sum*(steps+alpha) > steps*(alpha*squares+beta*steps)
}

// fill puts every boundary vertex into the queue, and all vertices of overloaded parts if
// whole. After the first time only vertices that have been in the queue are looked at.
func (f *kwayFM) fill(whole bool) {
	f.queue.clear()
	f.moves = f.moves[:0]
	switch {
	case whole || f.hint == nil && !f.started:
		clear(f.locked)
		for v := range uint32(f.a.g.n) {
			f.enter(v, whole && f.a.overloaded(int(f.a.part[v])))
		}
	case !f.started:
		for _, v := range f.hint {
			f.enter(v, false)
		}
	default:
		for _, v := range f.queued {
			f.locked[v] = false
			if key, boundary := f.gain(v); boundary {
				f.queue.set(v, key)
			}
		}
	}
	f.started = true
}

// enter puts v into the queue if it is on the boundary or has to leave its part.
func (f *kwayFM) enter(v uint32, leave bool) {
	if !f.cached[v] {
		f.in[v], f.cached[v] = f.interior(v) // true of most
		f.out[v] = 0
	}
	if key, boundary := f.gain(v); boundary || leave {
		f.remember(v)
		f.queue.set(v, key)
	}
}

// remember notes that v has been in the queue.
func (f *kwayFM) remember(v uint32) {
	if !f.seen[v] {
		f.seen[v] = true
		f.queued = append(f.queued, v)
	}
}

// move reassigns v and updates its neighbours. Forward, v is locked and they enter the
// queue with their new gains.
func (f *kwayFM) move(v uint32, to uint16, forward bool) {
	g, from := f.a.g, f.a.part[v]
	f.a.reassign(v, to)
	f.locked[v], f.cached[v] = true, false
	lo, hi := g.off[v], g.off[v+1]
	for i, u := range g.adj[lo:hi] {
		if u == v {
			continue
		}
		w, own := g.edgeWeight(lo+int64(i)), f.a.part[u]
		idle := !forward || f.locked[u] || own == to && f.queue.has(u) // the latter gain less now: next checks
		if len(f.table) > 0 {
			f.shiftRow(u, from, to, w)
		} else {
			f.cached[u] = !idle && own == from && f.cached[u] // true of most: only two sums change
			f.shiftSums(u, to, w)
		}
		if idle {
			continue
		}
		if key, boundary := f.gain(u); boundary {
			f.remember(u)
			f.queue.set(u, key)
		} else {
			f.queue.remove(u)
		}
	}
}
