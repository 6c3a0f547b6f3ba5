package partition

import (
	"runtime"
	"sync/atomic"
	"time"
)

// mlCrew are threads that look for work all the time, for small graphs: there a step takes
// no longer than to wake somebody up for it. They are there while a graph is coarsened and
// its coarsest level cut, a few milliseconds; refinement is for one thread.
//
// Only cores that are idle are used so. Where others want them too, a thread that looks for
// work uses up its turn, and is sent to sleep with a chunk in its hands: cutting a mesh on
// two cores with fifteen others at work took 1.2 to 1.9 times as long.
type mlCrew struct {
	size int
	job  atomic.Pointer[mlJob] // nil: nothing to do
	over atomic.Bool
}

// mlJob is work in chunks. Who looks at it when all are taken finds nothing to do.
type mlJob struct {
	f          func(s *mlScratch, chunk int)
	chunks     int64
	next, done atomic.Int64
	end        chan struct{} // closed when all are done
}

// mlIdle is how many cores are idle, as far as the system tells.
func mlIdle() int {
	if running := mlRunning(); running > 0 {
		return max(runtime.NumCPU()-running, 0)
	}
	return 0
}

// mlCrewMost are as many as small graphs have work for.
const mlCrewMost = 3

// hire starts a crew for r, no larger than most.
func (r *mlRun) hire(most int) {
	size := min(r.threads-1, mlCrewMost, most)
	if size == 0 {
		return
	}
	r.crew = &mlCrew{size: size}
	for _, s := range r.scratch[1 : size+1] {
		go r.crew.serve(s)
	}
}

// dismiss ends the crew, if there is one.
func (r *mlRun) dismiss() {
	if r.crew != nil {
		r.crew.over.Store(true)
		r.crew = nil
	}
}

// serve works until the crew is dismissed, or nobody wanted anything for so long that the
// core may be wanted elsewhere.
func (c *mlCrew) serve(s *mlScratch) {
	const patience = time.Millisecond
	for last := time.Now(); !c.over.Load() && time.Since(last) < patience; runtime.Gosched() {
		for range 64 {
			if j := c.job.Load(); j != nil && j.work(s) {
				last = time.Now()
			}
		}
	}
}

// work does chunks while there are any, and tells whether there were.
func (j *mlJob) work(s *mlScratch) (some bool) {
	for c := j.next.Add(1) - 1; c < j.chunks; c = j.next.Add(1) - 1 {
		j.f(s, int(c))
		some = true
		if j.done.Add(1) == j.chunks {
			close(j.end)
		}
	}
	return some
}

// do has f called for every chunk, here with s, and returns when all are done. It looks for
// the end for a while, then sleeps: whoever has a chunk still may need this core for it.
func (c *mlCrew) do(s *mlScratch, chunks int, f func(s *mlScratch, chunk int)) {
	j := &mlJob{f: f, chunks: int64(chunks), end: make(chan struct{})}
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

// both does two things that have nothing to do with each other, at a time if there is a crew.
func (r *mlRun) both(a, b func()) {
	if r.crew == nil {
		a()
		b()
		return
	}
	r.crew.do(r.scratch[0], 2, func(_ *mlScratch, i int) {
		if i == 0 {
			a()
		} else {
			b()
		}
	})
}
