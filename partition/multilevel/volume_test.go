package multilevel

import (
	"context"
	"math/rand/v2"
	"testing"

	"starling/graph"
	"starling/partition/graphtest"
	"starling/rng"
)

// The gain in volume of single moves, with and without the table, against a recount.
func TestVolumeGain(t *testing.T) {
	const n, k = 600, 6
	draw := rand.New(rand.NewPCG(1, 11))
	g := graphtest.Blocks(t, draw, n, 12, 40) // degrees large enough for a table
	r := newRun(context.Background(), rng.New(1), 1, &memory{})
	part := make([]uint16, n)
	for v := range part {
		part[v] = uint16(v % 12 / 2) // whole communities, so that some moves gain
	}
	a := newAssignment(r.finestGraph(unweighted(g)), k, part, repeatLimits([]int64{n}, k))
	f := r.newKwayFM(a, nil)
	if len(f.table) == 0 {
		t.Fatal("no table")
	}
	for i := range 600 {
		if i == 300 {
			f.table = f.table[:0]
		}
		v, b := draw.Uint32N(n), uint16(draw.IntN(k))
		if b == a.part[v] {
			continue
		}
		before := volume(g, a.part)
		gain := f.volumeGain(v, b, 1<<30)
		f.move(v, b, false)
		if after := volume(g, a.part); int64(before-after) != gain {
			t.Fatalf("volume %d became %d, predicted a gain of %d", before, after, gain)
		}
	}
}

func volume(g *graph.CSR, part []uint16) (sum int) {
	for v := range uint32(g.Nodes()) {
		seen := map[uint16]bool{part[v]: true}
		for _, u := range g.Neighbors(v) {
			if !seen[part[u]] {
				seen[part[u]] = true
				sum++
			}
		}
	}
	return sum
}
