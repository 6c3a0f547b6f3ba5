package partition

import (
	"math"
	"math/bits"
	"slices"
	"sync/atomic"

	"starling/rng"
)

// The coarsest graph is cut in two, its halves are, and so on. Each bisection is
// itself multilevel (coarsened to a hundred vertices, grown from random seeds, refined
// on the way back) and made several times; the best one counts. All pieces that there
// are at a time, and all tries of each, are cut side by side.
//
// Only upper limits hold. Vertices without edges are set aside and fill up the
// parts at the end, so a graph with many of them may be cut unevenly where that is cheap.

// mlInitial is the cutting of one graph.
type mlInitial struct {
	r     *mlRun
	g     *mlGraph
	k     int
	limit []int64   // by constraint
	slack []float64 // by constraint: limit over mean
	part  []uint16
	loose []uint32 // vertices set aside
}

// mlPiece is to become k parts, from first on.
type mlPiece struct {
	g        *mlGraph
	ids      []uint32 // by vertex: its number in the whole graph
	loose    []uint32 // of the whole graph: vertices without edges in this piece
	first, k int
	key      rng.Key
}

// mlSides is one try at a bisection.
type mlSides struct {
	side   []uint16
	excess float64
	cut    int64
}

// initial cuts g into k parts within limit.
func (r *mlRun) initial(g *mlGraph, k int, limit []int64) []uint16 {
	b := newMLInitial(r, g, k, limit)
	var pieces []mlPiece
	if p := b.whole(); p.g.n > 0 {
		pieces = append(pieces, p)
	}
	for len(pieces) > 0 && r.ctx.Err() == nil {
		pieces = b.halve(pieces)
	}
	s := newMLState(g, k, b.part, mlSpread(limit, k))
	b.place(s)
	for _, w := range r.scratch {
		w.leave()
	}
	return b.part
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

// whole is the graph without vertices that have no edges.
func (b *mlInitial) whole() mlPiece {
	p := mlPiece{k: b.k, key: b.r.key}
	p.g, p.ids, b.loose = b.r.extract(b.g, b.part, 0)
	return p
}

// halve cuts every piece in two, and returns those that are not parts yet.
func (b *mlInitial) halve(pieces []mlPiece) (next []mlPiece) {
	tries := b.r.style.tries
	sides, done := make([]mlSides, len(pieces)*tries), make([]atomic.Int32, len(pieces))
	halves := make([]mlPiece, 2*len(pieces))
	b.r.each(len(sides), 1, func(w *mlScratch, i, _, _ int) {
		at := i / tries
		p := &pieces[at]
		sides[i] = w.alone(b.r).bisect(p.g, b.sides(p), p.key.Fold(uint64(i%tries)))
		if int(done[at].Add(1)) < tries {
			return
		}
		// Who is last parts the piece: to wake others for it would take longer.
		best := mlBest(sides[at*tries : (at+1)*tries])
		halves[2*at], halves[2*at+1] = b.half(*p, best.side, 0), b.half(*p, best.side, 1)
		p.g.free(b.r)
		mlFree(b.r.mem, p.ids)
	})
	for _, h := range halves {
		b.loose = append(b.loose, h.loose...)
		if h.k > 1 && h.g.n > 0 {
			next = append(next, h)
		}
	}
	return next
}

// half is what of p lies in side s.
func (b *mlInitial) half(p mlPiece, side []uint16, s int) mlPiece {
	left := (p.k + 1) / 2
	h := mlPiece{first: p.first + s*left, k: left, key: p.key.Fold(uint64(1<<32 + s))}
	if s == 1 {
		h.k = p.k - left
	}
	if h.k > 1 {
		h.g, h.ids, h.loose = b.r.extract(p.g, side, uint16(s))
		for _, list := range [][]uint32{h.ids, h.loose} {
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

// mlBest is the best of some tries.
func mlBest(tries []mlSides) mlSides {
	best := tries[0]
	for _, t := range tries[1:] {
		if mlBetter(t.excess, t.cut, best.excess, best.cut) {
			best = t
		}
	}
	return best
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

// sides are the limits of the two sides. The tolerance is used up evenly over the
// bisections to come, or the last ones would have none left.
func (b *mlInitial) sides(p *mlPiece) []int64 {
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

// extract is the graph of one side of g: of members, its vertices, and the edges between
// them. Those without such edges are set aside. Edges are counted first: all pieces that
// are cut at a time live side by side, and none should hold more than it needs.
func (r *mlRun) extract(g *mlGraph, side []uint16, s uint16) (sub *mlGraph, members, loose []uint32) {
	mem := r.mem
	to := mlMakeSparse[uint32](mem, g.n)
	defer mlFree(mem, to)
	sub = &mlGraph{con: g.con}
	edges := 0
	for v := range uint32(g.n) {
		to[v] = mlNone
		if side[v] != s {
			continue
		}
		beside, itself := g.beside(v, side)
		if beside == itself {
			loose = append(loose, v)
			continue
		}
		to[v] = uint32(sub.n)
		sub.n++
		edges += beside
	}
	members = mlMakeSparse[uint32](mem, sub.n)[:0]
	sub.off, sub.vw = mlMake[int64](mem, sub.n+1)[:1], mlMakeSparse[int64](mem, sub.n*g.con)[:0]
	sub.adj, sub.w = mlMakeSparse[uint32](mem, edges)[:0], mlMakeSparse[uint32](mem, edges)[:0]
	for v := range uint32(g.n) {
		if to[v] == mlNone {
			continue
		}
		members = append(members, v)
		for c := range g.con {
			sub.vw = append(sub.vw, g.load(v, c))
		}
		for e := g.off[v]; e < g.off[v+1]; e++ {
			if u := to[g.adj[e]]; u != mlNone {
				sub.adj, sub.w = append(sub.adj, u), append(sub.w, g.edgeWeight(e))
			}
		}
		sub.off = append(sub.off, int64(len(sub.adj)))
	}
	return sub, members, loose
}

// beside counts v's neighbours on its side, and how many of them are v itself.
func (g *mlGraph) beside(v uint32, side []uint16) (all, itself int) {
	own := side[v]
	for _, u := range g.adj[g.off[v]:g.off[v+1]] {
		all += int(mlOne(side[u] == own))
		itself += int(mlOne(u == v))
	}
	return all, itself
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
func (r *mlRun) bisect(g *mlGraph, limit []int64, key rng.Key) mlSides {
	if g.n > 120 {
		cap := make([]int64, g.con)
		for c, sum := range g.totals() {
			cap[c] = max(min(sum*8/int64(g.n), sum/60), 1)
		}
		label := r.cluster(g, cap, 2, false, key.Fold(uint64(g.n)))
		if coarse, level := r.contract(g, label, false); coarse.n < g.n*19/20 {
			side := r.bisect(coarse, limit, key).side
			coarse.free(r)
			s := newMLState(g, 2, r.project(level, side), limit)
			mlFree(r.mem, side)
			return r.halves(s).refine(2, mlPatience(g.n))
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
