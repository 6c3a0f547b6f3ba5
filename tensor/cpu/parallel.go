package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// pool runs the chunks of one operation on several cores. Chunks are distributed
// by a counter, so a slow core takes fewer; what a chunk is never depends on who
// runs it (see Determinism in the package comment).
type pool struct {
	threads int
	jobs    chan *job
	free    sync.Pool
	once    sync.Once
}

type job struct {
	chunks int64
	next   atomic.Int64
	body   func(chunk, thread int)
	left   sync.WaitGroup
	thread atomic.Int32
	panics atomic.Value // the first panic of a chunk, raised again by the caller
}

func newPool(threads int) *pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p := &pool{threads: threads, jobs: make(chan *job)}
	p.free.New = func() any { return new(job) }
	for range threads - 1 {
		go func() {
			for j := range p.jobs {
				j.run()
			}
		}()
	}
	return p
}

// close ends the pool's goroutines. No run may be under way.
func (p *pool) close() { p.once.Do(func() { close(p.jobs) }) }

// run calls body for chunks 0..n-1, each once, on up to threads cores, and
// returns when all are done. thread tells apart the cores running at the same
// time, for scratch space; it is below p.threads. Calls do not nest.
func (p *pool) run(n int, body func(chunk, thread int)) {
	if n <= 1 || p.threads == 1 {
		for i := range n {
			body(i, 0)
		}
		return
	}
	j := p.free.Get().(*job)
	j.chunks, j.body = int64(n), body
	j.next.Store(0)
	j.thread.Store(0)
	others := min(p.threads, n) - 1
	j.left.Add(others)
	for range others {
		p.jobs <- j
	}
	j.work(0)
	j.left.Wait()
	j.body = nil
	if e := j.panics.Load(); e != nil {
		panic(e.(thrown).value)
	}
	p.free.Put(j)
}

func (j *job) run() {
	defer j.left.Done()
	j.work(int(j.thread.Add(1)))
}

func (j *job) work(thread int) {
	defer func() {
		if e := recover(); e != nil {
			j.panics.CompareAndSwap(nil, thrown{e})
			j.next.Store(j.chunks)
		}
	}()
	for {
		i := j.next.Add(1) - 1
		if i >= j.chunks {
			return
		}
		j.body(int(i), thread)
	}
}

// perCore is what one core writes while it works, away from the others' (see apart). Side by side, that was half of the
// time of products of seven columns to seven.
type perCore[T any] struct {
	of T
	_  [4 * apart]byte
}

// rowChunk is how many rows of the given number of bytes make a chunk worth
// handing out: about a quarter of a megabyte, within a core's second-level cache.
func rowChunk(rowBytes int) int { return max(1, (256<<10)/max(1, rowBytes)) }

// forRows cuts rows into chunks of about size and runs body on each [lo,hi).
func (p *pool) forRows(rows, size int, body func(lo, hi, chunk, thread int)) {
	if rows == 0 {
		return
	}
	p.run((rows+size-1)/size, func(c, t int) {
		body(c*size, min(rows, (c+1)*size), c, t)
	})
}

// thrown wraps a panic's value, because an atomic.Value holds one type only.
type thrown struct{ value any }
