package partition

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"starling/rng"
)

// The coarsest graph is cut by recursive bisection, several times over, and the
// best result is kept. Each bisection is itself multilevel: coarsened to a hundred
// vertices, grown from a random seed, refined on the way back.
//
// Only upper limits hold. Vertices without edges are set aside and fill up the
// parts at the end, so a graph with many of them may be cut unevenly where that is cheap.

// mlInitial is one try.
type mlInitial struct {
	r     *mlRun
	g     *mlGraph
	k     int
	limit []int64   // by constraint
	slack []float64 // by constraint: limit over mean
	part  []uint16
	loose []uint32 // vertices set aside
}

// initial cuts g into k parts within limit.
func (r *mlRun) initial(g *mlGraph, k int, limit []int64, tries int) []uint16 {
	states := make([]*mlState, tries)
	cuts := make([]int64, tries)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(r.threads, tries) {
		wg.Go(func() {
			alone := r.alone()
			defer alone.mem.freeAll() // the states' own arrays are none of its
			for t := next.Add(1) - 1; t < int64(tries); t = next.Add(1) - 1 {
				alone.key = r.key.Fold(uint64(t))
				states[t] = newMLInitial(alone, g, k, limit).run()
				cuts[t] = states[t].cut()
			}
		})
	}
	wg.Wait()
	best := 0
	for t := 1; t < tries; t++ {
		if mlBetter(states[t].excess(), cuts[t], states[best].excess(), cuts[best]) {
			best = t
		}
	}
	return states[best].part
}

// mlBetter compares two partitions: first by how far they break the limits.
func mlBetter(excess float64, cut int64, thanExcess float64, thanCut int64) bool {
	if math.Abs(excess-thanExcess) > 1e-9 {
		return excess < thanExcess
	}
	return cut < thanCut
}

func newMLInitial(r *mlRun, g *mlGraph, k int, limit []int64) *mlInitial {
	b := &mlInitial{r: r, g: g, k: k, limit: limit, part: make([]uint16, g.n)}
	for c, sum := range g.totals() {
		b.slack = append(b.slack, max(1, float64(limit[c])*float64(k)/float64(max(sum, 1))))
	}
	return b
}

func (b *mlInitial) run() *mlState {
	ids := make([]uint32, b.g.n)
	for v := range ids {
		ids[v] = uint32(v)
	}
	g, ids := b.extract(b.g, ids, b.part, 0, true)
	b.split(g, ids, 0, b.k, b.r.key)
	s := newMLState(b.g, b.k, b.part, mlSpread(b.limit, b.k))
	b.place(s)
	if b.k > 2 && b.g.off[b.g.n] <= mlSmall {
		b.r.fm(s).refine(3, mlPatience(b.g.n))
	}
	return s
}

// mlSmall edges are few enough for refinement on one core.
const mlSmall = 1 << 20

// mlPatience is how many moves in a row may fail to reach a new best.
func mlPatience(n int) int { return min(max(n/25, 20), 400) }

// mlSpread gives every part the same limits.
func mlSpread(limit []int64, k int) []int64 {
	all := make([]int64, 0, k*len(limit))
	for range k {
		all = append(all, limit...)
	}
	return all
}

// split cuts g, whose vertices are called ids, into parts first..first+k-1.
func (b *mlInitial) split(g *mlGraph, ids []uint32, first, k int, key rng.Key) {
	if k == 1 || g.n == 0 || b.r.ctx.Err() != nil {
		for _, v := range ids {
			b.part[v] = uint16(first)
		}
		return
	}
	left := (k + 1) / 2
	side := b.r.bisect(g, b.sides(g, left, k), key)
	for s, parts := range []int{left, k - left} {
		sub, subIDs := b.extract(g, ids, side, uint16(s), parts > 1)
		b.split(sub, subIDs, first+s*left, parts, key.Fold(uint64(s+1)))
		sub.free(b.r)
		mlFree(b.r.mem, subIDs)
	}
	mlFree(b.r.mem, side)
}

// sides are the limits of the two sides. The tolerance is used up evenly over the
// bisections to come, or the last ones would have none left.
func (b *mlInitial) sides(g *mlGraph, left, k int) []int64 {
	depth := func(k int) float64 { return float64(bits.Len(uint(k - 1))) }
	limit := make([]int64, 0, 2*g.con)
	for _, parts := range []int{left, k - left} {
		for c := range g.con {
			reserve := math.Pow(b.slack[c], -(depth(k)-1)/depth(b.k))
			limit = append(limit, int64(float64(parts)*float64(b.limit[c])*reserve))
		}
	}
	for c, sum := range g.totals() { // earlier bisections may have left too much
		if short := sum - limit[c] - limit[g.con+c]; short > 0 {
			limit[c] += (short*int64(left) + int64(k) - 1) / int64(k)
			limit[g.con+c] += (short*int64(k-left) + int64(k) - 1) / int64(k)
		}
	}
	return limit
}

// extract is the graph of one side; vertices without edges there are set aside.
func (b *mlInitial) extract(g *mlGraph, ids []uint32, side []uint16, s uint16, aside bool) (*mlGraph, []uint32) {
	mem := b.r.mem
	to := mlMake[uint32](mem, g.n)
	defer mlFree(mem, to)
	sub := &mlGraph{con: g.con, off: mlMake[int64](mem, g.n+1)[:1], vw: mlMake[int64](mem, g.n*g.con)[:0]}
	subIDs := mlMake[uint32](mem, g.n)[:0]
	for v := range uint32(g.n) {
		to[v] = mlNone
		if side[v] != s {
			continue
		}
		inside := !aside
		for _, u := range g.adj[g.off[v]:g.off[v+1]] {
			if side[u] == s && u != v {
				inside = true
				break
			}
		}
		if !inside {
			b.loose = append(b.loose, ids[v])
			continue
		}
		to[v] = uint32(sub.n)
		sub.n++
		subIDs = append(subIDs, ids[v])
		for c := range g.con {
			sub.vw = append(sub.vw, g.load(v, c))
		}
	}
	if !aside { // a part, not to be split again
		return sub, subIDs
	}
	sub.adj, sub.w = mlMakeSparse[uint32](mem, int(g.off[g.n]))[:0], mlMakeSparse[uint32](mem, int(g.off[g.n]))[:0]
	for v := range uint32(g.n) {
		if to[v] == mlNone {
			continue
		}
		for e := g.off[v]; e < g.off[v+1]; e++ {
			if u := to[g.adj[e]]; u != mlNone {
				sub.adj, sub.w = append(sub.adj, u), append(sub.w, g.edgeWeight(e))
			}
		}
		sub.off = append(sub.off, int64(len(sub.adj)))
	}
	return sub, subIDs
}

// place puts vertices that were set aside where they have most edges and fit,
// heavy ones first.
func (b *mlInitial) place(s *mlState) {
	heaviest := func(v uint32) (most float64) {
		for c := range b.g.con {
			most = max(most, float64(b.g.load(v, c))*s.unit[c])
		}
		return most
	}
	slices.SortStableFunc(b.loose, func(x, y uint32) int {
		switch hx, hy := heaviest(x), heaviest(y); {
		case hx > hy:
			return -1
		case hx < hy:
			return 1
		}
		return 0
	})
	for _, v := range b.loose {
		s.remove(v)
	}
	conn := make([]int64, b.k)
	for _, v := range b.loose {
		clear(conn)
		for e := b.g.off[v]; e < b.g.off[v+1]; e++ {
			if u := b.g.adj[e]; u != v {
				conn[s.part[u]] += int64(b.g.edgeWeight(e))
			}
		}
		s.insert(v, s.roomiest(v, conn))
	}
}

// bisect cuts g in two within limit.
func (r *mlRun) bisect(g *mlGraph, limit []int64, key rng.Key) []uint16 {
	if g.n > 120 {
		cap := make([]int64, g.con)
		for c, sum := range g.totals() {
			cap[c] = max(min(sum*8/int64(g.n), sum/60), 1)
		}
		label := r.cluster(g, cap, 2, key.Fold(uint64(g.n)))
		if coarse, level := r.contract(g, label, false); coarse.n < g.n*19/20 {
			side := r.bisect(coarse, limit, key)
			coarse.free(r)
			s := newMLState(g, 2, r.project(level, side), limit)
			mlFree(r.mem, side)
			r.halves(s).refine(2, mlPatience(g.n))
			return s.part
		}
	}
	return r.grow(g, limit, key)
}

// project carries a partition to the finer level and gives the map back.
func (r *mlRun) project(l mlLevel, coarse []uint16) []uint16 {
	part := mlMake[uint16](r.mem, l.fine.n)
	for v, c := range l.to {
		part[v] = coarse[c]
	}
	mlFree(r.mem, l.to)
	return part
}

// grow is the best of several bisections of a small graph. Each starts with all
// vertices in one side and lets the other grow from a random vertex, always by
// the vertex that is best for the cut.
func (r *mlRun) grow(g *mlGraph, limit []int64, key rng.Key) []uint16 {
	const tries = 12
	s := newMLState(g, 2, mlMake[uint16](r.mem, g.n), limit)
	h := r.halves(s)
	h.whole = append(h.whole[:0], h.in...)
	best := mlMake[uint16](r.mem, g.n)
	var bestExcess float64
	var bestCut int64
	for t := range tries {
		cut := h.grow(key.IntN(uint64(t), g.n))
		if excess := s.excess(); t == 0 || mlBetter(excess, cut, bestExcess, bestCut) {
			copy(best, s.part)
			bestExcess, bestCut = excess, cut
		}
		h.gather()
	}
	mlFree(r.mem, s.part)
	s.part = best
	s.weigh()
	r.halves(s).refine(2, mlPatience(g.n)) // refining every one of them gains nothing more
	return best
}
