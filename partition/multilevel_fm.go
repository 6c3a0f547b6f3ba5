package partition

import "context"

// mlFM is refinement by single moves in order of gain, downhill as well, back to
// the best point reached.
//
// C. Fiduccia, R. Mattheyses: A linear-time heuristic for improving network
// partitions, 1982; here for any number of parts. It is sequential, so it is for
// coarse and small graphs, and for large ones under several limits. Weights from
// vertices into parts are kept in a table where rows are long, and summed anew where
// they are shorter than the number of parts.
type mlFM struct {
	*mlState
	ctx     context.Context
	table   []uint32 // by vertex and part: weight of edges into it; nil: sum anew
	fresh   []bool   // by vertex: in and out are right
	in, out []uint32 // by vertex: weight of its edges within its part, and into the best other one
	conn    []uint32 // by part, of one vertex, if there is no table; else zero
	queue   mlQueue
	locked  []bool
	moves   []mlMove
	first   []uint32 // where the first pass looks for the boundary; nil: everywhere
	begun   bool     // that pass is over
	near    []uint32 // vertices that ever were in the queue
	seen    []bool   // by vertex: in near
	seeds   []uint32 // of local
	worth   int64    // as in mlStyle
}

type mlMove struct {
	v    uint32
	part uint16
}

// fm prepares refinement of s, in memory that coarsening or the level before has left. If
// near is not nil, only its vertices can be on the boundary.
func (r *mlRun) fm(s *mlState, near []uint32) *mlFM {
	if r.refiner == nil {
		r.refiner = &mlFM{}
	}
	f := r.refiner
	f.mlState, f.ctx, f.worth = s, r.ctx, r.style.worth
	f.locked, f.seen = mlRenew(r.mem, f.locked, s.g.n), mlRenew(r.mem, f.seen, s.g.n)
	f.fresh = mlRenew(r.mem, f.fresh, s.g.n)
	mlFree(r.mem, f.in)
	mlFree(r.mem, f.out)
	f.in, f.out = mlMakeSparse[uint32](r.mem, s.g.n), mlMakeSparse[uint32](r.mem, s.g.n)
	f.first, f.begun, f.near = near, false, f.near[:0]
	f.conn = mlResize(f.conn, s.k)
	f.queue.reset(mlRenew(r.mem, f.queue.node, s.g.n))
	f.table = f.table[:0]
	if !s.g.tabled(s.k) {
		return f
	}
	f.table = mlResize(f.table, s.g.n*s.k)
	for v := range uint32(s.g.n) {
		row := f.row(v)
		for e := s.g.off[v]; e < s.g.off[v+1]; e++ {
			if u := s.g.adj[e]; u != v {
				row[s.part[u]] += s.g.edgeWeight(e)
			}
		}
	}
	return f
}

// tabled tells whether a table of weights by vertex and part is worth its memory. In
// a large graph it is even if rows are a quarter of the parts long: there are hubs
// among them, and summing those anew each time a neighbour moves takes for ever.
func (g *mlGraph) tabled(k int) bool {
	edges := g.off[g.n]
	if edges > mlSmall {
		return 4*edges >= int64(g.n)*int64(k)
	}
	return edges >= 4*int64(g.n)*int64(k)
}

// mlRenew gives n zeroes instead of s.
func mlRenew[T any](m *mlMemory, s []T, n int) []T {
	mlFree(m, s)
	return mlMake[T](m, n)
}

// mlResize gives n zeroes, in the memory of s if they fit.
func mlResize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	s = s[:n]
	clear(s)
	return s
}

func (f *mlFM) row(v uint32) []uint32 { return f.table[int(v)*f.k : (int(v)+1)*f.k] }

// connect sums the weight of v's edges by part, in conn.
func (f *mlFM) connect(v uint32) {
	part, conn := f.part, f.conn
	adj := f.g.adj[f.g.off[v]:f.g.off[v+1]]
	if f.g.w == nil {
		for _, u := range adj {
			if u != v {
				conn[part[u]]++
			}
		}
		return
	}
	for i, w := range f.g.w[f.g.off[v]:f.g.off[v+1]] { // coarse, and without self-loops
		conn[part[adj[i]]] += w
	}
}

// sums is the weight of v's edges within its part, and that into the best other.
func (f *mlFM) sums(v uint32) (in, out uint32) {
	if len(f.table) == 0 {
		return f.sumsAnew(v)
	}
	row, own := f.row(v), int(f.part[v])
	for _, w := range row[:own] {
		out = max(out, w)
	}
	for _, w := range row[own+1:] {
		out = max(out, w)
	}
	return row[own], out
}

// sumsAnew has no branches that depend on parts: nobody could guess them. Most vertices
// have neighbours in one other part at most, and need no sums by part.
func (f *mlFM) sumsAnew(v uint32) (in, out uint32) {
	if f.g.w == nil {
		if in, out, ok := f.sumsOfTwo(v); ok {
			return in, out
		}
	}
	f.connect(v)
	part, conn, own := f.part, f.conn, f.part[v]
	in, conn[own] = conn[own], 0
	for _, u := range f.g.adj[f.g.off[v]:f.g.off[v+1]] {
		p := part[u]
		out, conn[p] = max(out, conn[p]), 0
	}
	return in, out
}

// sumsOfTwo is sums where edges weigh one and lead into one other part at most.
func (f *mlFM) sumsOfTwo(v uint32) (in, out uint32, ok bool) {
	part, own := f.part, f.part[v]
	adj := f.g.adj[f.g.off[v]:f.g.off[v+1]]
	other, loops := own, uint32(0)
	for _, u := range adj {
		p := part[u]
		in += mlOne(p == own)
		loops += mlOne(u == v)
		if p != own {
			other = p
		}
	}
	if other == own {
		return in - loops, 0, true
	}
	out = f.into(v, other)
	return in - loops, out, int(in+out) == len(adj)
}

// into is the weight of v's edges into another part, again without branches.
func (f *mlFM) into(v uint32, p uint16) (sum uint32) {
	part := f.part
	adj := f.g.adj[f.g.off[v]:f.g.off[v+1]]
	if f.g.w == nil {
		for _, u := range adj {
			sum += mlOne(part[u] == p)
		}
		return sum
	}
	for i, w := range f.g.w[f.g.off[v]:f.g.off[v+1]] {
		sum += w & -mlOne(part[adj[i]] == p)
	}
	return sum
}

// mlOne is one if something holds, else zero.
func mlOne(holds bool) uint32 {
	if holds {
		return 1
	}
	return 0
}

// inside tells whether all neighbours of v are in its part, and the weight of its edges
// to them if so.
func (f *mlFM) inside(v uint32) (in uint32, ok bool) {
	own := f.part[v]
	lo, hi := f.g.off[v], f.g.off[v+1]
	for i, u := range f.g.adj[lo:hi] {
		if f.part[u] != own {
			return 0, false
		}
		if u != v {
			in += f.g.edgeWeight(lo + int64(i))
		}
	}
	return in, true
}

// target is the best part v may go to now: one where it fits, or one that
// leaves the limits less broken.
func (f *mlFM) target(v uint32) (to uint16, gain int64, ok bool) {
	to, in, out := f.bestOf(v)
	if out > 0 || !f.overloaded(int(f.part[v])) {
		return to, int64(out) - int64(in), out > 0
	}
	return f.outlet(v)
}

// outlet is the part outside its own that v has most weight to of those it relieves by
// going there.
func (f *mlFM) outlet(v uint32) (to uint16, gain int64, ok bool) {
	own, conn := f.part[v], f.conn
	if len(f.table) > 0 {
		conn = f.row(v)
	} else {
		f.connect(v)
		defer clear(conn)
	}
	most := int64(-1)
	for p, w := range conn {
		if q := uint16(p); q != own && int64(w) > most && f.relief(v, q) > 0 {
			to, most, ok = q, int64(w), true
		}
	}
	return to, most - int64(conn[own]), ok
}

// bestOf is the part v has most weight to of those where it fits, the weight of its edges
// within its own part, and into that one; 0 if it fits nowhere.
func (f *mlFM) bestOf(v uint32) (to uint16, in, out uint32) {
	own := f.part[v]
	if len(f.table) > 0 {
		row := f.row(v)
		for p, w := range row {
			if q := uint16(p); w > out && q != own && f.fits(v, q) {
				to, out = q, w
			}
		}
		return to, row[own], out
	}
	conn := f.conn
	f.connect(v)
	in, conn[own] = conn[own], 0
	for _, u := range f.g.adj[f.g.off[v]:f.g.off[v+1]] {
		p := f.part[u]
		w := conn[p]
		conn[p] = 0
		if w > 0 && (w > out || w == out && p < to) && f.fits(v, p) {
			to, out = p, w
		}
	}
	return to, in, out
}

// refine makes passes while they help; it returns the cut gained.
func (f *mlFM) refine(passes, patience int) (gained int64) {
	for _, whole := range []bool{false, true} {
		if f.excess() > 0 {
			gained += f.relieve(whole)
		}
	}
	for range passes {
		f.fill(false)
		boundary := int64(f.queue.len())
		g, relieved := f.pass(patience)
		gained += g
		if !relieved && (g <= 0 || g*f.worth < boundary && f.worth > 0) || f.ctx.Err() != nil {
			break
		}
	}
	return gained
}

// relieve moves vertices out of parts that are too heavy, those first that are best for
// the cut: vertices on the boundary, or all if whole.
func (f *mlFM) relieve(whole bool) (gained int64) {
	f.fill(whole)
	for f.queue.len() > 0 {
		v := f.queue.pop()
		if !f.overloaded(int(f.part[v])) {
			continue
		}
		to, gain, ok := f.target(v)
		if !ok {
			continue
		}
		if f.queue.above(mlKey(gain)) {
			f.queue.set(v, mlKey(gain))
			continue
		}
		gained += gain
		f.move(v, to, true)
		if f.excess() == 0 {
			break
		}
	}
	return gained
}

// best takes the vertex whose move gains most from the queue, whose keys may be of before
// its neighbours moved.
func (f *mlFM) best() (v uint32, to uint16, gain int64, ok bool) {
	for f.queue.len() > 0 {
		v = f.queue.pop()
		to, gain, ok = f.target(v)
		if ok && !f.queue.above(mlKey(gain)) {
			return v, to, gain, true
		}
		if ok {
			f.queue.set(v, mlKey(gain))
		}
	}
	return 0, 0, 0, false
}

// pass moves every vertex at most once. A prefix of the moves is better than
// another if it breaks the limits less, or as little and cuts less.
func (f *mlFM) pass(patience int) (gained int64, relieved bool) {
	var sum, bestSum int64
	var squares float64 // of gains since the best point
	excess := f.excess()
	first, bestExcess := excess, excess
	kept, waited := 0, 0
	for waited < patience {
		if f.g.con == 1 && mlHopeless(float64(sum-bestSum), squares, float64(waited)) { // several limits: the way to room may lead down
			break
		}
		v, to, gain, ok := f.best()
		if !ok {
			break
		}
		excess -= f.relief(v, to)
		sum += gain
		squares += float64(gain) * float64(gain)
		f.moves = append(f.moves, mlMove{v, f.part[v]})
		f.move(v, to, true)
		waited++
		if excess < bestExcess-1e-9 || excess < bestExcess+1e-9 && sum > bestSum {
			bestExcess, bestSum, kept, waited, squares = excess, sum, len(f.moves), 0, 0
		}
	}
	for i := len(f.moves) - 1; i >= kept; i-- {
		f.move(f.moves[i].v, f.moves[i].part, false)
	}
	return bestSum, bestExcess < first-1e-9
}

// mlHopeless tells whether moves since the best point, with gains of this sum and these
// squares, lead down so steadily that they will hardly lead up there again. Moves that
// cost nothing may go on: they are how the boundary of a mesh finds a better place.
//
// V. Osipov, P. Sanders: n-level graph partitioning, 2010, which takes gains for a random
// walk and stops once steps·mean² > times·variance + more; here both sides times steps².
func mlHopeless(sum, squares, steps float64) bool {
	const least, times, more = 20, 10, 2
	return steps > least && sum < 0 && sum*sum*(steps+times) > steps*(times*squares+more*steps)
}

// fill puts every vertex on the boundary into the queue, and all of parts that are too
// heavy if whole. After the first time only those that came near it are looked at.
func (f *mlFM) fill(whole bool) {
	f.queue.clear()
	f.moves = f.moves[:0]
	switch {
	case whole || f.first == nil && !f.begun:
		clear(f.locked)
		for v := range uint32(f.g.n) {
			f.enter(v, whole && f.overloaded(int(f.part[v])))
		}
	case !f.begun:
		for _, v := range f.first {
			f.enter(v, false)
		}
	default:
		for _, v := range f.near {
			f.locked[v] = false
			if key, boundary := f.gain(v); boundary {
				f.queue.set(v, key)
			}
		}
	}
	f.begun = true
}

// enter puts v into the queue if it is on the boundary or has to leave.
func (f *mlFM) enter(v uint32, leave bool) {
	if !f.fresh[v] {
		f.in[v], f.fresh[v] = f.inside(v) // most are
		f.out[v] = 0
	}
	if key, boundary := f.gain(v); boundary || leave {
		f.remember(v)
		f.queue.set(v, key)
	}
}

// gain is what the cut loses if v goes where it has most weight outside, as queues know
// it; from memory unless something near v moved.
func (f *mlFM) gain(v uint32) (key int32, boundary bool) {
	if !f.fresh[v] {
		f.in[v], f.out[v] = f.sums(v)
		f.fresh[v] = true
	}
	return mlKey(int64(f.out[v]) - int64(f.in[v])), f.out[v] > 0
}

// remember notes that v has been in the queue.
func (f *mlFM) remember(v uint32) {
	if !f.seen[v] {
		f.seen[v] = true
		f.near = append(f.near, v)
	}
}

// move shifts v and tells its neighbours; forward, it is locked and they are
// put into the queue anew.
func (f *mlFM) move(v uint32, to uint16, forward bool) {
	from := f.part[v]
	f.shift(v, to)
	f.locked[v], f.fresh[v] = true, false
	lo, hi := f.g.off[v], f.g.off[v+1]
	for i, u := range f.g.adj[lo:hi] {
		if u == v {
			continue
		}
		if len(f.table) > 0 {
			row, w := f.row(u), f.g.edgeWeight(lo+int64(i))
			row[from] -= w
			row[to] += w
		}
		own := f.part[u]
		if !forward || f.locked[u] || own == to && f.queue.has(u) { // those have less to gain now: target sees to it
			f.fresh[u] = false
			continue
		}
		if own == from && f.fresh[u] && len(f.table) == 0 { // most are: the other parts are as they were
			f.in[u] -= f.g.edgeWeight(lo + int64(i))
			f.out[u] = max(f.out[u], f.into(u, to))
		} else {
			f.fresh[u] = false
		}
		if key, boundary := f.gain(u); boundary {
			f.remember(u)
			f.queue.set(u, key)
		} else {
			f.queue.remove(u)
		}
	}
}
