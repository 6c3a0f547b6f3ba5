package multilevel

import (
	"runtime"
	"sync/atomic"
	"time"
)

// spinPool is a worker pool that polls for work, for small graphs, where waking a thread
// takes as long as a stage. It exists while a graph is coarsened and its coarsest level
// partitioned, a few milliseconds; refinement of small graphs is sequential.
//
// It uses idle cores only. On a busy machine a polling thread uses up its time slice, and
// is then descheduled in the middle of a chunk: partitioning a mesh on two cores beside
// fifteen other busy threads took 1.2 to 1.9 times as long.
type spinPool struct {
	size int
	job  atomic.Pointer[spinJob] // nil: nothing to do
	over atomic.Bool
}

// spinJob is work in chunks. A thread that loads it after all chunks are taken does nothing.
type spinJob struct {
	f          func(s *scratch, chunk int)
	chunks     int64
	next, done atomic.Int64
	end        chan struct{} // closed when all are done
}

// idleCores is how many cores are idle, as far as the system knows.
func idleCores() int {
	if running := runnableThreads(); running > 0 {
		return max(runtime.NumCPU()-running, 0)
	}
	return 0
}

// maxSpinners is how many threads small graphs have work for, beside the caller's.
const maxSpinners = 3

// startPool starts a pool for r with at most this number of threads.
func (r *run) startPool(most int) {
	size := min(r.threads-1, maxSpinners, most)
	if size == 0 {
		return
	}
	r.pool = &spinPool{size: size}
	for _, s := range r.scratch[1 : size+1] {
		go r.pool.spin(s)
	}
}

// stopPool ends the pool, if there is one.
func (r *run) stopPool() {
	if r.pool != nil {
		r.pool.over.Store(true)
		r.pool = nil
	}
}

// spin polls until the pool is stopped, or until there was no work for so long that
// another program may need the core.
func (c *spinPool) spin(s *scratch) {
	const patience = time.Millisecond
	for last := time.Now(); !c.over.Load() && time.Since(last) < patience; runtime.Gosched() {
		for range 64 {
			if j := c.job.Load(); j != nil && j.work(s) {
				last = time.Now()
			}
		}
	}
}

// work takes chunks while there are any, and reports whether there were.
func (j *spinJob) work(s *scratch) (some bool) {
	for c := j.next.Add(1) - 1; c < j.chunks; c = j.next.Add(1) - 1 {
		j.f(s, int(c))
		some = true
		if j.done.Add(1) == j.chunks {
			close(j.end)
		}
	}
	return some
}

// run calls f for every chunk, here with s, and returns when all are done. It polls for
// the end for a while, then sleeps: a thread that still has a chunk may need this core.
func (c *spinPool) run(s *scratch, chunks int, f func(s *scratch, chunk int)) {
	j := &spinJob{f: f, chunks: int64(chunks), end: make(chan struct{})}
	c.job.Store(j)
	j.work(s)
	c.job.Store(nil)
	for range 1000 {
		if j.done.Load() == j.chunks {
			return
		}
		runtime.Gosched()
	}
	<-j.end
}

// both calls two independent functions, in parallel if there is a pool.
func (r *run) both(a, b func()) {
	if r.pool == nil {
		a()
		b()
		return
	}
	r.pool.run(r.scratch[0], 2, func(_ *scratch, i int) {
		if i == 0 {
			a()
		} else {
			b()
		}
	})
}
