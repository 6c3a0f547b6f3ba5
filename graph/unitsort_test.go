package graph

import (
	"cmp"
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
	if !slices.Equal(d.Graph.Indptr, g.Indptr) || !slices.Equal(d.Graph.Indices, g.Indices) ||
		!slices.Equal(d.Graph.Weights, g.Weights) {
		t.Error("another graph than FromEdges builds")
	}
}

// A unit is sorted alike whether the highest digit of sources leaves little to do or
// nothing, as where the sources of a target are near each other. The twin sorts stably by
// comparing.
func TestUnitSort(t *testing.T) {
	const n, rows, edges = 10_000_000, 300, 6000
	r := rand.New(rand.NewPCG(9, 9))
	for _, near := range []bool{false, true} {
		for _, opt := range []BuildOptions{{}, {DropDuplicates: true}} {
			ends, weights := make([]uint64, edges), make([]float32, edges)
			for i := range ends {
				row, source := r.IntN(rows), r.IntN(n)
				if near {
					source = row*9973 + r.IntN(50)
				}
				ends[i], weights[i] = uint64(row)<<32|uint64(source), r.Float32()
				if i%10 == 9 {
					ends[i] = ends[r.IntN(i)]
				}
			}
			for _, weighted := range []bool{false, true} {
				s := &Sorter{n: n, opt: opt, weighted: weighted,
					buckets: []bucket{{rows: rows, edges: edges, ends: ends}}}
				if weighted {
					s.buckets[0].weights = weights
				}
				var x unitSort
				if err := x.sort(s, unit{0, 1}); err != nil {
					t.Fatal(err)
				}
				want := sortedUnit(ends, weights, rows, opt.DropDuplicates)
				if x.thorough != near {
					t.Errorf("near %v: thorough %v", near, x.thorough)
				}
				if !slices.Equal(x.g.Indptr, want.Indptr) || !slices.Equal(x.g.Indices, want.Indices) || weighted &&
					!slices.Equal(x.g.Weights, want.Weights) {
					t.Errorf("near %v, %+v, weighted %v: another unit", near, opt, weighted)
				}
				if !weighted {
					want.Weights = nil
				}
				if x.asymmetry != want.asymmetry(0, rows) {
					t.Errorf("near %v, %+v, weighted %v: another hash", near, opt, weighted)
				}
			}
		}
	}
}

// sortedUnit is the dumb twin of unitSort.
func sortedUnit(ends []uint64, weights []float32, rows int, drop bool) *CSR {
	order := make([]int, len(ends))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ends[a], ends[b]) })
	g := &CSR{Indptr: make([]int64, rows+1)}
	for k, i := range order {
		if drop && k > 0 && ends[i] == ends[order[k-1]] {
			continue
		}
		g.Indptr[ends[i]>>32+1]++
		g.Indices, g.Weights = append(g.Indices, uint32(ends[i])), append(g.Weights, weights[i])
	}
	for v := range rows {
		g.Indptr[v+1] += g.Indptr[v]
	}
	return g
}

// One core sorts a unit, again and again: sources anywhere, or within a thousand of each
// other where the target is the same.
func BenchmarkUnitSort(b *testing.B) {
	for _, degree := range []int{5, 50} {
		for _, near := range []bool{false, true} {
			b.Run(fmt.Sprintf("degree=%d/near=%v", degree, near), func(b *testing.B) {
				const n, edges = 10_000_000, unitEdges
				r := rand.New(rand.NewPCG(8, 8))
				rows := edges / degree
				ends := make([]uint64, edges)
				for i := range ends {
					row, source := r.IntN(rows), r.IntN(n)
					if near {
						source = (row*7919 + r.IntN(1000)) % n
					}
					ends[i] = uint64(row)<<32 | uint64(source)
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
}
