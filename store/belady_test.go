package store

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/internal/testseed"
)

// slowBelady is the rule as it is said: before a batch, the rows of the cache; after it, of these and its own those that
// are needed first stay.
type slowBelady struct {
	capacity int
	rows     map[uint32]int32 // by vertex, the batch that brought it
}

// serve returns what is missed of the first of the known batches, and keeps.
func (s *slowBelady) serve(known [][]uint32) (missed int) {
	next := func(v uint32) int {
		for i, list := range known[1:] {
			if slices.Contains(list, v) {
				return i
			}
		}
		return 1 << 30
	}
	all := map[uint32]int32{}
	for _, v := range known[0] {
		if _, ok := s.rows[v]; !ok {
			missed++
		}
		all[v] = 1
	}
	for v := range s.rows {
		all[v] = 1
	}
	var list []uint32
	for v := range all {
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b uint32) int { return cmp.Or(next(a)-next(b), cmp.Compare(a, b)) })
	s.rows = map[uint32]int32{}
	for _, v := range list[:min(s.capacity, len(list))] {
		s.rows[v] = 1
	}
	return missed
}

// drawLists draws batches, some vertices much more often than others.
func drawLists(r *rand.Rand, batches, nodes, size int) (lists [][]uint32) {
	for range batches {
		seen := map[uint32]bool{}
		for range r.IntN(size + 1) {
			seen[uint32(float64(nodes)*r.Float64()*r.Float64()*r.Float64())] = true
		}
		var list []uint32
		for v := range seen {
			list = append(list, v)
		}
		slices.Sort(list)
		lists = append(lists, list)
	}
	return lists
}

// TestBeladyIsTheRule: rows are where the plan says, and with all batches known as many are missed as by the rule said
// plainly; ties do not count, since rows that no batch needs are as good as none.
func TestBeladyIsTheRule(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.New(t), 1))
	for range 60 {
		lists := drawLists(r, 1+r.IntN(30), 1+r.IntN(80), r.IntN(40))
		capacity, window := r.IntN(30), 1+r.IntN(len(lists)+3)
		b, slow := newBelady(capacity), slowBelady{capacity, map[uint32]int32{}}
		holds := make([]uint32, capacity)
		filled := make([]bool, capacity)
		known, missed, want := 0, 0, 0
		for k, list := range lists {
			for ; known < min(len(lists), k+window); known++ {
				b.add(lists[known])
			}
			p := b.plan()
			missed += len(p.missed)
			want += slow.serve(lists[k:])
			for i, v := range list {
				if at := p.slot[i]; at >= 0 && (!filled[at] || holds[at] != v) {
					t.Fatalf("batch %d: slot %d has vertex %d, expected %d", k, at, holds[at], v)
				} else if at < 0 && p.missed[-1-at] != uint32(i) {
					t.Fatalf("batch %d: place %d is missed as %d", k, i, -1-at)
				}
			}
			for _, put := range p.puts {
				holds[put.slot], filled[put.slot] = list[p.missed[put.place]], true
			}
			if b.at.used > capacity+known*40 || k == len(lists)-1 && b.at.used > capacity {
				t.Fatalf("batch %d: %d vertices are known of, of a cache of %d", k, b.at.used, capacity)
			}
		}
		if missed < want || window >= len(lists) && missed != want {
			t.Fatalf("capacity %d, window %d of %d: %d missed, by the rule %d", capacity, window, len(lists), missed, want)
		}
	}
}

// TestBeladyIsAFunctionOfTheDraws: the same lists give the same plans.
func TestBeladyIsAFunctionOfTheDraws(t *testing.T) {
	lists := drawLists(rand.New(rand.NewPCG(testseed.New(t), 2)), 50, 300, 60)
	var all [2][]*planned
	for i := range all {
		b := newBelady(40)
		for k := range lists {
			if b.add(lists[k]); k >= 7 {
				all[i] = append(all[i], b.plan())
			}
		}
	}
	for k := range all[0] {
		if a, b := all[0][k], all[1][k]; !slices.Equal(a.slot, b.slot) || !slices.Equal(a.puts, b.puts) {
			t.Fatalf("batch %d has plans %v and %v", k, a, b)
		}
	}
}
