package store

import (
	"math/rand/v2"
	"testing"

	"starling/internal/testseed"
)

// TestPlaces: vertices are found where a map has them, whatever comes and goes.
func TestPlaces(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.New(t), 0))
	for _, vertices := range []int{3, 200, 5000} {
		p, want := newPlaces(), map[uint32]int32{}
		for i := range 20000 {
			v := uint32(r.IntN(vertices)) * 4096 // many of one home
			if _, ok := want[v]; ok && r.IntN(2) == 0 {
				p.remove(v)
				delete(want, v)
			} else if !ok {
				p.put(v, int32(i))
				want[v] = int32(i)
			}
			u := uint32(r.IntN(vertices)) * 4096
			if place, ok := want[u]; !ok && p.find(u) != -1 || ok && p.find(u) != place {
				t.Fatalf("vertex %d: %d, want %d %v", u, p.find(u), place, ok)
			}
		}
		if p.used != len(want) {
			t.Errorf("%d vertices, want %d", p.used, len(want))
		}
	}
}
