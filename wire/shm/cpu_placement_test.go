package shm

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

func TestLessBusyCPU(t *testing.T) {
	for _, c := range []struct {
		name       string
		here, rank int
		cpus       map[int]int
		all        []int
		want       int
	}{
		{"three and one", 1, 3, map[int]int{0: 0, 1: 1, 2: 1}, []int{0, 1}, 0},
		{"not the last here", 1, 2, map[int]int{0: 0, 1: 1, 3: 1}, []int{0, 1}, -1},
		{"two and two", 1, 3, map[int]int{0: 0, 1: 0, 2: 1}, []int{0, 1}, -1},
		{"two and one", 0, 1, map[int]int{0: 0, 2: 1}, []int{0, 1}, -1},
		{"alone", 0, 0, nil, []int{0, 1}, -1},
		{"nowhere else to go", 0, 3, map[int]int{0: 0, 1: 0}, []int{0}, -1},
		{"the processors are not known", 0, 3, map[int]int{0: 0, 1: 0}, nil, -1},
		{"a peer where this one may not be", 0, 3, map[int]int{0: 0, 1: 1 << 30}, []int{0, 1}, 1},
	} {
		if got := lessBusyCPU(c.here, c.rank, c.cpus, c.all); got != c.want {
			t.Errorf("%s: processor %d, expected %d", c.name, got, c.want)
		}
	}
}

// Whichever worker decides to move first, workers end up evenly spread, after
// no more moves than there are workers.
func TestPlacementEndsEven(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		workers, cpus := 1+rnd.IntN(12), 1+rnd.IntN(5)
		on, count := make([]int, workers), make([]int, cpus)
		for r := range on {
			on[r] = rnd.IntN(cpus)
			count[on[r]]++
		}
		all := make([]int, cpus)
		for c := range all {
			all[c] = c
		}
		moves := 0
		for range 100 * workers {
			r := rnd.IntN(workers)
			others := map[int]int{}
			for q := range on {
				if q != r {
					others[q] = on[q]
				}
			}
			if to := lessBusyCPU(on[r], r, others, all); to >= 0 {
				count[on[r]]--
				count[to]++
				on[r] = to
				moves++
			}
		}
		if slices.Max(count)-slices.Min(count) > 1 || moves > workers {
			t.Fatalf("%d workers on %d processors end as %v after %d moves", workers, cpus, count, moves)
		}
	}
}

func TestMoveTo(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all := processors()
	if len(all) == 0 {
		t.Skip("this system does not say which processors there are")
	}
	for _, cpu := range all {
		if !moveTo(cpu) {
			t.Errorf("could not move to processor %d", cpu)
		}
		if got := processors(); !slices.Equal(got, all) {
			t.Errorf("after moving to processor %d the thread may run on %v, expected %v", cpu, got, all)
		}
	}
	if moveTo(1 << 20) {
		t.Error("moved to a processor that does not exist")
	}
}
