package multilevel

import (
	"slices"
	"testing"
)

// Growing, against a version that recounts everything at every step.
func TestGrowTakesTheBest(t *testing.T) {
	eachGrown(t, func(_ *run, a *assignment, start int, cut int64) {
		slow := newAssignment(a.g, 2, make([]uint16, a.g.n), a.limit)
		if want := growSlowly(slow, start); cut != want || !slices.Equal(a.part, slow.part) {
			t.Fatalf("from %d: cut %d, want %d", start, cut, want)
		}
	})
}

func growSlowly(a *assignment, start int) int64 {
	taken, touched := make([]bool, a.g.n), make([]int, a.g.n) // touched: when a neighbour last moved
	best, bestCut, bestExcess := slices.Clone(a.part), a.cut(), a.excess()
	for step, misfits := 1, 0; misfits <= 10; step++ {
		v, top := -1, int64(0)
		for u := range a.g.n {
			if gain := gainOf(a, uint32(u)); !taken[u] && touched[u] > 0 &&
				(v < 0 || gain > top || gain == top && touched[u] < touched[v]) {
				v, top = u, gain
			}
		}
		for i := 0; v < 0 && i < a.g.n; i++ {
			if u := (start + i) % a.g.n; !taken[u] {
				v = u
			}
		}
		if v < 0 {
			break
		}
		taken[v] = true
		if !a.hasSpace(uint32(v), 1) {
			misfits++
			continue
		}
		a.reassign(uint32(v), 1)
		for i, u := range a.g.adj[a.g.off[v]:a.g.off[v+1]] {
			touched[u] = step*a.g.n*a.g.n + i
		}
		if better(a.excess(), a.cut(), bestExcess, bestCut) {
			best, bestCut, bestExcess = slices.Clone(a.part), a.cut(), a.excess()
		}
	}
	copy(a.part, best)
	a.recount()
	return bestCut
}

// gainOf is by how much the cut falls if v moves to side 1.
func gainOf(a *assignment, v uint32) (gain int64) {
	for e := a.g.off[v]; e < a.g.off[v+1]; e++ {
		switch u := a.g.adj[e]; {
		case u == v:
		case a.part[u] == 1:
			gain += int64(a.g.edgeWeight(e))
		default:
			gain -= int64(a.g.edgeWeight(e))
		}
	}
	return gain
}
