package multilevel

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"starling/rng"
)

// recursiveBisection partitions the coarsest graph: in two, each side in two, and so on.
// Each bisection is itself multilevel (coarsened to a hundred vertices, grown from random
// seeds, refined on the way back) and made several times; the best one counts. All pieces
// of a depth, and all tries of each, are bisected in parallel.
//
// Limits hold from above only. Vertices without edges are set aside and fill the parts at
// the end, so a graph with many of them may be bisected unevenly where that is cheap.
type recursiveBisection struct {
	r        *run
	g        *levelGraph
	k        int
	limit    []int64   // by constraint
	slack    []float64 // by constraint: limit over mean
	part     []uint16
	isolated []uint32 // vertices set aside
}

// piece is to become k parts, from first on.
type piece struct {
	g        *levelGraph
	ids      []uint32 // by vertex: its number in the whole graph
	isolated []uint32 // of the whole graph: vertices without edges in this piece
	first, k int
	key      rng.Key
}

// bisected is one try at a bisection.
type bisected struct {
	side   []uint16
	excess float64
	cut    int64
}

// initialPartition partitions g into k parts within limit.
func (r *run) initialPartition(g *levelGraph, k int, limit []int64) []uint16 {
	b := newRecursiveBisection(r, g, k, limit)
	var pieces []piece
	if p := b.whole(); p.g.n > 0 {
		pieces = append(pieces, p)
	}
	for len(pieces) > 0 && r.ctx.Err() == nil {
		pieces = b.bisectAll(pieces)
	}
	b.placeIsolated(newAssignment(g, k, b.part, repeatLimits(limit, k)))
	for _, w := range r.scratch {
		w.endSequential()
	}
	return b.part
}

func newRecursiveBisection(r *run, g *levelGraph, k int, limit []int64) *recursiveBisection {
	b := &recursiveBisection{r: r, g: g, k: k, limit: limit, part: make([]uint16, g.n)}
	for c, sum := range g.totals() {
		b.slack = append(b.slack, max(1, float64(limit[c])*float64(k)/float64(max(sum, 1))))
	}
	return b
}

// whole is the graph without vertices that have no edges.
func (b *recursiveBisection) whole() piece {
	p := piece{k: b.k, key: b.r.key}
	p.g, p.ids, b.isolated = b.r.subgraph(b.g, b.part, 0)
	return p
}

// bisectAll bisects every piece, and returns the sides that are not parts yet.
func (b *recursiveBisection) bisectAll(pieces []piece) (next []piece) {
	tries := b.r.tuning.tries
	results, done := make([]bisected, len(pieces)*tries), make([]atomic.Int32, len(pieces))
	sides := make([]piece, 2*len(pieces))
	b.r.each(len(results), 1, func(w *scratch, i, _, _ int) {
		at := i / tries
		p := &pieces[at]
		results[i] = w.sequential(b.r).bisect(p.g, b.sideLimits(p), p.key.Fold(uint64(i%tries)))
		if int(done[at].Add(1)) < tries {
			return
		}
		// The thread with the last try splits the piece: waking others would take longer.
		best := bestTry(results[at*tries : (at+1)*tries])
		sides[2*at], sides[2*at+1] = b.side(*p, best.side, 0), b.side(*p, best.side, 1)
		p.g.free(b.r)
		free(b.r.mem, p.ids)
	})
	for _, s := range sides {
		b.isolated = append(b.isolated, s.isolated...)
		if s.k > 1 && s.g.n > 0 {
			next = append(next, s)
		}
	}
	return next
}

// side is the piece of p's vertices on side s. If that is one part only, its vertices are
// assigned.
func (b *recursiveBisection) side(p piece, side []uint16, s int) piece {
	left := (p.k + 1) / 2
	h := piece{first: p.first + s*left, k: left, key: p.key.Fold(uint64(1<<32 + s))}
	if s == 1 {
		h.k = p.k - left
	}
	if h.k > 1 {
		h.g, h.ids, h.isolated = b.r.subgraph(p.g, side, uint16(s))
		for _, list := range [][]uint32{h.ids, h.isolated} {
			for i, v := range list {
				list[i] = p.ids[v]
			}
		}
		return h
	}
	for v, at := range side {
		if at == uint16(s) {
			b.part[p.ids[v]] = uint16(h.first)
		}
	}
	return h
}

func bestTry(tries []bisected) bisected {
	best := tries[0]
	for _, t := range tries[1:] {
		if better(t.excess, t.cut, best.excess, best.cut) {
			best = t
		}
	}
	return best
}

// sideLimits are the limits of the two sides. The tolerance is spread evenly over the
// bisections to come, or the last ones would have none left.
func (b *recursiveBisection) sideLimits(p *piece) []int64 {
	g, k, left := p.g, p.k, (p.k+1)/2
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

// placeIsolated assigns the vertices that were set aside to the parts where they have most
// edges and fit, heavy ones first.
func (b *recursiveBisection) placeIsolated(a *assignment) {
	heaviest := func(v uint32) (most float64) {
		for c := range b.g.con {
			most = max(most, float64(b.g.load(v, c))*a.unit[c])
		}
		return most
	}
	slices.SortStableFunc(b.isolated, func(x, y uint32) int {
		switch hx, hy := heaviest(x), heaviest(y); {
		case hx > hy:
			return -1
		case hx < hy:
			return 1
		}
		return 0
	})
	for _, v := range b.isolated {
		a.remove(v)
	}
	conn := make([]int64, b.k)
	for _, v := range b.isolated {
		clear(conn)
		for e := b.g.off[v]; e < b.g.off[v+1]; e++ {
			if u := b.g.adj[e]; u != v {
				conn[a.part[u]] += int64(b.g.edgeWeight(e))
			}
		}
		a.insert(v, a.bestPlacement(v, conn))
	}
}

// bisect splits g in two within limit.
func (r *run) bisect(g *levelGraph, limit []int64, key rng.Key) bisected {
	if g.n > 120 {
		cap := make([]int64, g.con)
		for c, sum := range g.totals() {
			cap[c] = max(min(sum*8/int64(g.n), sum/60), 1)
		}
		label := r.cluster(g, cap, 2, false, key.Fold(uint64(g.n)))
		if coarse, l := r.contract(g, label, false); coarse.n < g.n*19/20 {
			side := r.bisect(coarse, limit, key).side
			coarse.free(r)
			a := newAssignment(g, 2, r.project(l, side), limit)
			free(r.mem, side)
			return r.newTwoWayFM(a).refine(2, patienceFor(g.n))
		}
	}
	return r.grow(g, limit, key)
}
