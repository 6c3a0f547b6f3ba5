package multilevel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"starling/rng"
)

// run is what the stages of one run share.
type run struct {
	ctx     context.Context
	key     rng.Key
	threads int
	tuning  tuning
	mem     *memory
	scratch []*scratch // per thread
	pool    *spinPool  // nil: goroutines are started for each stage

	// Refiners are kept for their memory.
	kway    *kwayFM
	growing growing
	twoWay  twoWayFM
}

// scratch belongs to one thread.
type scratch struct {
	rating ratingMap
	conn   []int64  // by part, all zero between vertices
	hit    []uint16 // parts whose conn is not zero
	own    *run     // of sequential

	sum *[denseVertices]uint32 // of mergeDense, all zero between rows
}

func newRun(ctx context.Context, key rng.Key, threads int, mem *memory) *run {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	r := &run{ctx: ctx, key: key, threads: threads, mem: mem, tuning: tunedGeneral, scratch: make([]*scratch, threads)}
	for i := range r.scratch {
		r.scratch[i] = &scratch{}
	}
	return r
}

// sequential is a run with r's settings on this thread only, with memory of its own.
func (w *scratch) sequential(r *run) *run {
	if w.own == nil {
		w.own = newRun(r.ctx, r.key, 1, &memory{})
		w.own.tuning, w.own.scratch[0] = r.tuning, w
	}
	return w.own
}

// endSequential frees what sequential took.
func (w *scratch) endSequential() {
	if w.own != nil {
		w.own.mem.freeAll()
		w.own = nil
	}
}

// each splits [0,n) into ranges of grain and calls f for every one of them. The
// ranges do not depend on the number of threads, so what f finds in each, taken
// in order, does not either.
func (r *run) each(n, grain int, f func(s *scratch, chunk, lo, hi int)) {
	chunks := chunkCount(n, grain)
	workers := min(r.threads, chunks)
	if workers <= 1 {
		for c := range chunks {
			f(r.scratch[0], c, c*grain, min((c+1)*grain, n))
		}
		return
	}
	if r.pool != nil && r.pool.size >= workers-1 {
		r.pool.run(r.scratch[0], chunks, func(s *scratch, c int) { f(s, c, c*grain, min((c+1)*grain, n)) })
		return
	}
	var next atomic.Int64
	work := func(s *scratch) {
		for c := int(next.Add(1)) - 1; c < chunks; c = int(next.Add(1)) - 1 {
			f(s, c, c*grain, min((c+1)*grain, n))
		}
	}
	var wg sync.WaitGroup
	for i := 1; i < workers; i++ {
		wg.Go(func() { work(r.scratch[i]) })
	}
	work(r.scratch[0]) // here as well: the others take a while to wake up
	wg.Wait()
}

// chunkCount is how many ranges each makes.
func chunkCount(n, grain int) int { return (n + grain - 1) / grain }

// connect sums the weights of v's edges by part.
func (w *scratch) connect(a *assignment, v uint32) {
	if len(w.conn) < a.k {
		w.conn = make([]int64, a.k)
	}
	lo, hi := a.g.off[v], a.g.off[v+1]
	part, conn, hit := a.part, w.conn, w.hit
	if a.g.w == nil {
		for _, u := range a.g.adj[lo:hi] {
			p := part[u]
			if conn[p] == 0 {
				hit = append(hit, p)
			}
			conn[p]++
		}
	} else {
		weight := a.g.w[lo:hi]
		for i, u := range a.g.adj[lo:hi] {
			p := part[u]
			if conn[p] == 0 {
				hit = append(hit, p)
			}
			conn[p] += int64(weight[i])
		}
	}
	w.hit = hit
}

// clear makes conn zero again.
func (w *scratch) clear() {
	for _, p := range w.hit {
		w.conn[p] = 0
	}
	w.hit = w.hit[:0]
}
