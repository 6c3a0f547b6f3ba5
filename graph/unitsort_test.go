package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Hubs that are neighbours fill one bucket, which is split, and those of it again that
// are still too large. The twin is FromEdges.
func TestSorterSplits(t *testing.T) {
	const n, m = 300_000, 2 * splitFrom
	r := rand.New(rand.NewPCG(7, 7))
	src, dst, w := make([]uint32, m), make([]uint32, m), make([]float32, m)
	for i := range src {
		src[i], dst[i], w[i] = uint32(r.IntN(n)), uint32(r.IntN(1+r.IntN(3000))), r.Float32()
		if i%2 == 0 {
			dst[i] = 1234 // more than a bucket should hold, but not to be split
		}
	}
	d, err := sortedBy(t, n, src, dst, w, BuildOptions{}, m)
	if err != nil {
		t.Fatal(err)
	}
	g, err := FromEdges(n, src, dst, w, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Graph.Indptr, g.Indptr) || !slices.Equal(d.Graph.Indices, g.Indices) || !slices.Equal(d.Graph.Weights, g.Weights) {
		t.Error("another graph than FromEdges builds")
	}
}

// One core sorts a unit, again and again.
func BenchmarkUnitSort(b *testing.B) {
	for _, degree := range []int{5, 50} {
		b.Run(fmt.Sprintf("degree=%d", degree), func(b *testing.B) {
			const n, edges = 10_000_000, unitEdges
			r := rand.New(rand.NewPCG(8, 8))
			rows := edges / degree
			ends := make([]uint64, edges)
			for i := range ends {
				ends[i] = uint64(r.IntN(rows))<<32 | uint64(r.IntN(n))
			}
			s := &Sorter{n: n, opt: BuildOptions{DropDuplicates: true}, buckets: make([]bucket, 1)}
			var x unitSort
			for b.Loop() {
				s.buckets[0] = bucket{rows: rows, ends: ends, edges: edges}
				if err := x.sort(s, unit{0, 1}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/edges, "ns/edge")
		})
	}
}
