package partition

import (
	"slices"
	"testing"
)

// Growing, against a version that counts everything anew at every step.
func TestGrowthTakesTheBest(t *testing.T) {
	mlGrown(t, func(_ *mlRun, s *mlState, start int, cut int64) {
		slow := newMLState(s.g, 2, make([]uint16, s.g.n), s.limit)
		if want := mlGrowSlowly(slow, start); cut != want || !slices.Equal(s.part, slow.part) {
			t.Fatalf("from %d: cut %d, want %d", start, cut, want)
		}
	})
}

func mlGrowSlowly(s *mlState, start int) int64 {
	taken, touched := make([]bool, s.g.n), make([]int, s.g.n) // touched: when a neighbour last came over
	best, bestCut, bestExcess := slices.Clone(s.part), s.cut(), s.excess()
	for step, misfits := 1, 0; misfits <= 10; step++ {
		v, top := -1, int64(0)
		for u := range s.g.n {
			if gain := mlGainOf(s, uint32(u)); !taken[u] && touched[u] > 0 && (v < 0 || gain > top || gain == top && touched[u] < touched[v]) {
				v, top = u, gain
			}
		}
		for i := 0; v < 0 && i < s.g.n; i++ {
			if u := (start + i) % s.g.n; !taken[u] {
				v = u
			}
		}
		if v < 0 {
			break
		}
		taken[v] = true
		if !s.open(uint32(v), 1) {
			misfits++
			continue
		}
		s.shift(uint32(v), 1)
		for i, u := range s.g.adj[s.g.off[v]:s.g.off[v+1]] {
			touched[u] = step*s.g.n*s.g.n + i
		}
		if mlBetter(s.excess(), s.cut(), bestExcess, bestCut) {
			best, bestCut, bestExcess = slices.Clone(s.part), s.cut(), s.excess()
		}
	}
	copy(s.part, best)
	s.weigh()
	return bestCut
}

// mlGainOf is what the cut loses if v comes to side 1.
func mlGainOf(s *mlState, v uint32) (gain int64) {
	for e := s.g.off[v]; e < s.g.off[v+1]; e++ {
		switch u := s.g.adj[e]; {
		case u == v:
		case s.part[u] == 1:
			gain += int64(s.g.edgeWeight(e))
		default:
			gain -= int64(s.g.edgeWeight(e))
		}
	}
	return gain
}
