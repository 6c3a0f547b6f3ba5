package sample_test

import (
	"math"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/rng"
	"starling/sample"
)

// TestAccess beside batches that are drawn: on a random graph the rows that a batch needs, and the share of them that
// the first batches of an epoch did not have, are about as computed.
func TestAccess(t *testing.T) {
	t.Parallel()
	const n, degree, size = 4000, 8, 100
	key, g := rng.New(7), &graph.CSR{Indptr: make([]int64, n+1)}
	for v := range n {
		for k := range 1 + v%(2*degree) {
			at := key.Float64(uint64(v*64 + k))
			g.Indices = append(g.Indices, uint32(at*at*n)) // some are needed far more often
		}
		g.Indptr[v+1] = int64(len(g.Indices))
	}
	var seeds []uint32
	for v := range uint32(n / 2) {
		seeds = append(seeds, v)
	}
	fanouts, batches := []int{4, 3}, len(seeds)/size
	book := &partition.Book{Parts: 1, Offsets: []int64{0, n}}
	part := &partition.Part{Book: book, Meta: partition.PartMeta{Core: n}, In: g}
	seed := make([]float32, n)
	for _, v := range seeds {
		seed[v] = 1 / float32(batches)
	}
	method, err := (&sample.Neighbour{Graph: g, SeedVertices: seeds, Fanouts: fanouts, Size: size, Seed: 3}).Prepare()
	if err != nil {
		t.Fatal(err)
	}
	s := method.Sampler()
	for _, counted := range []int{4, batches} {
		a := sample.NewAccess([]*partition.Part{part}, seed, fanouts, false, counted)
		had, needed, missed, want, wantMissed := make([]bool, n), 0.0, 0.0, 0.0, 0.0
		var b sample.Batch
		for i := range counted {
			s.Sample(&b, 0, i)
			for _, v := range b.Vertices {
				had[v] = true
			}
		}
		for i := range batches {
			s.Sample(&b, 1, i)
			for _, v := range b.Vertices {
				if needed++; !had[v] {
					missed++
				}
			}
		}
		for v := range n {
			p := float64(a.Batch[v]) * float64(batches)
			want, wantMissed = want+p, wantMissed+p*(1-float64(a.Counts[v]))
		}
		if math.Abs(want/needed-1) > 0.1 || math.Abs(wantMissed/want-missed/needed) > 0.04 {
			t.Errorf("%d batches counted: %.0f rows needed and %.0f missed, computed %.0f and %.0f", counted, needed,
				missed, want, wantMissed)
		}
	}
}
