package partition

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"starling/graph"
	"starling/rng"
)

// mlGraph is a graph at one level: undirected, every edge stored at both ends.
// Parallel edges and self-loops may occur at the finest level, where the arrays are
// the user's own; they are harmless, and merging them would need a copy.
type mlGraph struct {
	n   int
	off []int64
	adj []uint32
	w   []uint32 // weights of edges; nil: one each
	con int      // number of constraints
	vw  []int64  // con weights a vertex; nil: one each (then con is 1)
}

func (g *mlGraph) degree(v uint32) int { return int(g.off[v+1] - g.off[v]) }

// load is weight c of vertex v.
func (g *mlGraph) load(v uint32, c int) int64 {
	if g.vw == nil {
		return 1
	}
	return g.vw[int(v)*g.con+c]
}

// totals sums every constraint over all vertices.
func (g *mlGraph) totals() []int64 {
	sum := make([]int64, g.con)
	if g.vw == nil {
		sum[0] = int64(g.n)
		return sum
	}
	for i, w := range g.vw {
		sum[i%g.con] += w
	}
	return sum
}

// edgeWeight is the weight of the edge at position e.
func (g *mlGraph) edgeWeight(e int64) uint32 {
	if g.w == nil {
		return 1
	}
	return g.w[e]
}

// mlRun is what all stages of one run share.
type mlRun struct {
	ctx      context.Context
	key      rng.Key
	threads  int
	style    mlStyle
	mem      *mlMemory
	scratch  []*mlScratch // one a thread
	crew     *mlCrew      // nil: threads are woken when there is work
	refiner  *mlFM        // kept for its memory
	grower   mlGrowth     // likewise
	bisector mlHalves     // likewise
}

// mlScratch belongs to one thread.
type mlScratch struct {
	rating mlRating
	conn   []int64  // by part, all zero between vertices
	hit    []uint16 // parts whose conn is not zero
	own    *mlRun   // for alone

	sum *[mlFewVertices]uint32 // for mergeFew, all zero between rows
}

func newMLRun(ctx context.Context, key rng.Key, threads int, mem *mlMemory) *mlRun {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	r := &mlRun{ctx: ctx, key: key, threads: threads, mem: mem, style: mlGentle, scratch: make([]*mlScratch, threads)}
	for i := range r.scratch {
		r.scratch[i] = &mlScratch{}
	}
	return r
}

// alone is a run of r for this thread only, with small arrays of its own.
func (w *mlScratch) alone(r *mlRun) *mlRun {
	if w.own == nil {
		w.own = newMLRun(r.ctx, r.key, 1, &mlMemory{})
		w.own.style, w.own.scratch[0] = r.style, w
	}
	return w.own
}

// leave gives back what alone took.
func (w *mlScratch) leave() {
	if w.own != nil {
		w.own.mem.freeAll()
		w.own = nil
	}
}

// each cuts [0,n) into ranges of grain and calls f for every one of them. The
// ranges do not depend on the number of threads, so what f finds in each, taken
// in order, does not either.
func (r *mlRun) each(n, grain int, f func(s *mlScratch, chunk, lo, hi int)) {
	chunks := (n + grain - 1) / grain
	workers := min(r.threads, chunks)
	if workers <= 1 {
		for c := range chunks {
			f(r.scratch[0], c, c*grain, min((c+1)*grain, n))
		}
		return
	}
	if r.crew != nil && r.crew.size >= workers-1 {
		r.crew.do(r.scratch[0], chunks, func(s *mlScratch, c int) { f(s, c, c*grain, min((c+1)*grain, n)) })
		return
	}
	var next atomic.Int64
	work := func(s *mlScratch) {
		for c := int(next.Add(1)) - 1; c < chunks; c = int(next.Add(1)) - 1 {
			f(s, c, c*grain, min((c+1)*grain, n))
		}
	}
	var wg sync.WaitGroup
	for i := 1; i < workers; i++ {
		wg.Go(func() { work(r.scratch[i]) })
	}
	work(r.scratch[0]) // here: others take a while to wake up
	wg.Wait()
}

// mlChunks is how many ranges each makes.
func mlChunks(n, grain int) int { return (n + grain - 1) / grain }

// newMLGraph is the finest level. A symmetric graph is used where it lies; of any
// other, both directions of every edge are placed, so that an edge weighs one
// for each direction it is stored in.
func (r *mlRun) newMLGraph(p *Problem, constraints []Constraint) *mlGraph {
	g := &mlGraph{n: p.Graph.Nodes(), con: len(constraints)}
	if p.Symmetric || p.Graph.Symmetric() {
		g.off, g.adj = p.Graph.Indptr, p.Graph.Indices
	} else {
		r.bothWays(p.Graph, g)
	}
	if len(constraints) == 1 && constraints[0].Weight == nil {
		return g
	}
	g.vw = mlMake[int64](r.mem, g.n*g.con)
	for c := range constraints {
		for v := range g.n {
			g.vw[v*g.con+c] = constraints[c].Of(v)
		}
	}
	return g
}

// bothWays fills g with the edges of in and their reverses.
func (r *mlRun) bothWays(in *graph.CSR, g *mlGraph) {
	g.off = mlMake[int64](r.mem, g.n+1)
	for _, u := range in.Indices {
		g.off[u+1]++
	}
	for v := range g.n {
		g.off[v+1] += g.off[v] + int64(in.Degree(uint32(v)))
	}
	next := mlMake[int64](r.mem, g.n)
	copy(next, g.off)
	g.adj = mlMake[uint32](r.mem, int(g.off[g.n]))
	for v := range uint32(g.n) {
		row := in.Neighbors(v)
		copy(g.adj[next[v]:], row)
		next[v] += int64(len(row))
	}
	for v := range uint32(g.n) {
		for _, u := range in.Neighbors(v) {
			g.adj[next[u]] = v
			next[u]++
		}
	}
	mlFree(r.mem, next)
}
