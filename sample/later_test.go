package sample

import (
	"cmp"
	"slices"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
)

// TestHoldOutLater: sets equal those of pairs sorted by their earliest time, and messages are all edges from before the
// first pair that is held out, and no others, repeats, reverses and loops too.
func TestHoldOutLater(t *testing.T) {
	draw := testseed.Rand(t)
	for range 30 {
		n := 5 + draw.IntN(20)
		g := &graph.CSR{Indptr: []int64{0}}
		first := map[[2]uint32]int64{}
		for v := range uint32(n) {
			for range draw.IntN(6) {
				u, at := uint32(draw.IntN(n)), int64(draw.IntN(40))
				if at == 0 {
					at = graph.NoTime
				}
				g.Indices, g.EdgeTimes = append(g.Indices, u), append(g.EdgeTimes, at)
				pair := [2]uint32{min(u, v), max(u, v)}
				if old, ok := first[pair]; u != v && (!ok || at < old) {
					first[pair] = at
				}
			}
			g.Indptr = append(g.Indptr, int64(len(g.Indices)))
		}
		type timed struct {
			pair [2]uint32
			at   int64
		}
		var all []timed
		for pair, at := range first {
			all = append(all, timed{pair, at})
		}
		slices.SortFunc(all, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
		want := map[[2]uint32]int{}
		set, border := 0, int64(1<<62)
		for i, p := range all {
			if i == 0 || p.at != all[i-1].at {
				switch share := float64(i) / float64(len(all)); {
				case share >= 0.8:
					set = 2
				case share >= 0.5:
					set = 1
				}
			}
			if want[p.pair] = set; set > 0 {
				border = min(border, p.at)
			}
		}
		s, err := HoldOutLater(t.Context(), g, LaterEdges{0.5, 0.8})
		counts := [3]int{}
		for _, set := range want {
			counts[set]++
		}
		if slices.Contains(counts[:], 0) {
			if err == nil {
				t.Errorf("sets of %v pairs are not refused", counts)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for k, pairs := range []Pairs{s.Train, s.Val, s.Test} {
			if pairs.Len() != counts[k] {
				t.Errorf("set %d has %d pairs, want %d", k, pairs.Len(), counts[k])
			}
			for i := range pairs.U {
				if want[[2]uint32{pairs.U[i], pairs.V[i]}] != k {
					t.Errorf("%d - %d is in set %d", pairs.U[i], pairs.V[i], k)
				}
			}
		}
		for v := range uint32(n) {
			var kept []uint32
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				if g.EdgeTimes[e] < border {
					kept = append(kept, g.Indices[e])
				}
			}
			slices.Sort(kept)
			if !slices.Equal(s.Graph.Neighbors(v), kept) {
				t.Errorf("messages to %d come from %v, want %v", v, s.Graph.Neighbors(v), kept)
			}
		}
	}
}
