package partition

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"starling/rng"
)

func TestCrewIsOfIdleCores(t *testing.T) {
	for _, x := range []struct {
		threads, idle int
		crew          bool
	}{{1, 5, false}, {2, 0, false}, {2, 1, true}, {9, 1, true}} {
		r := newMLRun(context.Background(), 0, x.threads, &mlMemory{})
		r.hire(x.idle)
		if (r.crew != nil) != x.crew {
			t.Errorf("%d threads, %d idle: a crew of %v", x.threads, x.idle, r.crew)
		}
		r.dismiss()
	}
}

// Every chunk of every job is done once, and before the next job begins; then the crew
// goes (or synctest would wait for it).
func TestCrewDoesEverythingOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 9} {
		synctest.Test(t, func(t *testing.T) {
			r := newMLRun(context.Background(), 0, threads, &mlMemory{})
			r.hire(threads)
			done := make([]int, 100) // by chunk
			for job := range 300 {
				n := job % len(done)
				r.each(n, 1, func(_ *mlScratch, chunk, _, _ int) { done[chunk]++ })
				for i := range n {
					done[i]--
				}
				if slices.ContainsFunc(done, func(n int) bool { return n != 0 }) {
					t.Fatalf("%d threads, job %d: %v", threads, job, done)
				}
				var a, b int
				r.both(func() { a++ }, func() { b++ })
				if a != 1 || b != 1 {
					t.Fatalf("%d threads: both were done %d and %d times", threads, a, b)
				}
			}
			r.dismiss()
			r.dismiss()
		})
	}
}

// Two threads work at a time: each chunk waits for the other.
func TestCrewWorksSideBySide(t *testing.T) {
	r := newMLRun(context.Background(), 0, 2, &mlMemory{})
	r.hire(1)
	defer r.dismiss()
	var a, b atomic.Bool
	await := func(mine, other *atomic.Bool) func() {
		return func() {
			mine.Store(true)
			for !other.Load() {
				runtime.Gosched()
			}
		}
	}
	r.both(await(&a, &b), await(&b, &a))
}

// The favourite of a vertex as small graphs find it, against that of large ones.
func TestFavouritesAgree(t *testing.T) {
	for seed := range uint64(5) {
		r, fine, coarse, _ := mlWeighted(t, seed)
		draw := rand.New(rand.NewPCG(seed, 14))
		graphs := []*mlGraph{fine, coarse}
		for _, g := range mlShapes(t, draw) {
			graphs = append(graphs, r.newMLGraph(&Problem{Graph: g}, []Constraint{{Name: "vertices"}}))
		}
		for _, g := range graphs {
			c := &mlClustering{r: r, g: g, key: rng.New(seed)}
			c.start()
			for v := range c.label {
				if draw.IntN(3) > 0 {
					c.label[v] = uint32(draw.IntN(g.n))
				}
			}
			sum := make([]uint32, g.n)
			for v := range uint32(g.n) {
				if got, want := c.favouriteFew(v, sum), c.favourite(r.scratch[0], v); got != want {
					t.Fatalf("vertex %d of %d: %d instead of %d", v, g.n, got, want)
				}
			}
			if slices.ContainsFunc(sum, func(n uint32) bool { return n != 0 }) {
				t.Fatal("sums are not zero")
			}
		}
		r.mem.freeAll()
	}
}
