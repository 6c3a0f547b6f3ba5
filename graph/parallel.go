package graph

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Parallel calls f on ranges of about grain that together cover [0,n), on all
// cores. Ranges are assigned dynamically, so uneven ones balance; f
// must not depend on which worker runs which range or in which order.
func Parallel(n, grain int64, f func(lo, hi int64)) {
	grain = max(grain, 1)
	chunks := (n + grain - 1) / grain
	workers := min(int64(runtime.GOMAXPROCS(0)), chunks)
	if workers <= 1 {
		if n > 0 {
			f(0, n)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				c := next.Add(1) - 1
				if c >= chunks {
					return
				}
				f(c*grain, min((c+1)*grain, n))
			}
		})
	}
	wg.Wait()
}

// parallelErr is Parallel for work that can fail; it returns the error of the
// lowest range, so that the same bad input gives the same message every time.
func parallelErr(n, grain int64, f func(lo, hi int64) error) error {
	var mu sync.Mutex
	var first error
	at := n
	Parallel(n, grain, func(lo, hi int64) {
		if err := f(lo, hi); err != nil {
			mu.Lock()
			defer mu.Unlock()
			if first == nil || lo < at {
				first, at = err, lo
			}
		}
	})
	return first
}
