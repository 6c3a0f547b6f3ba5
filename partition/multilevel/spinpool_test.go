package multilevel

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestPoolUsesIdleCores(t *testing.T) {
	for _, x := range []struct {
		threads, idle int
		pool          bool
	}{{1, 5, false}, {2, 0, false}, {2, 1, true}, {9, 1, true}} {
		r := newRun(context.Background(), 0, x.threads, &memory{})
		r.startPool(x.idle)
		if (r.pool != nil) != x.pool {
			t.Errorf("%d threads, %d idle: pool %v", x.threads, x.idle, r.pool)
		}
		r.stopPool()
	}
}

// Every chunk of every job runs once, and before the next job begins; then the threads end
// (or synctest would report a deadlock).
func TestPoolRunsEveryChunkOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 9} {
		synctest.Test(t, func(t *testing.T) {
			r := newRun(context.Background(), 0, threads, &memory{})
			r.startPool(threads)
			done := make([]int, 100) // by chunk
			for job := range 300 {
				n := job % len(done)
				r.each(n, 1, func(_ *scratch, chunk, _, _ int) { done[chunk]++ })
				for i := range n {
					done[i]--
				}
				if slices.ContainsFunc(done, func(n int) bool { return n != 0 }) {
					t.Fatalf("%d threads, job %d: %v", threads, job, done)
				}
				var a, b int
				r.both(func() { a++ }, func() { b++ })
				if a != 1 || b != 1 {
					t.Fatalf("%d threads: the two functions ran %d and %d times", threads, a, b)
				}
			}
			r.stopPool()
			r.stopPool()
		})
	}
}

// Two threads run at a time: each function waits for the other to start, until a deadline.
func TestPoolRunsInParallel(t *testing.T) {
	r := newRun(context.Background(), 0, 2, &memory{})
	r.startPool(1)
	defer r.stopPool()
	var a, b atomic.Bool
	deadline := time.Now().Add(30 * time.Second)
	await := func(mine, other *atomic.Bool) func() {
		return func() {
			mine.Store(true)
			for !other.Load() && time.Now().Before(deadline) {
				runtime.Gosched()
			}
		}
	}
	r.both(await(&a, &b), await(&b, &a))
	if !time.Now().Before(deadline) {
		t.Error("the functions did not run in parallel within 30 seconds")
	}
}
