package sample

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"starling/graph"
)

func pairBatches(t *testing.T, g *graph.CSR, fanouts []int) (*EdgeSplit, *PairBatches) {
	t.Helper()
	s, err := HoldOut(t.Context(), g, 0.1, 0.1, 5)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNegatives(s.Graph, 0.75, true, 5)
	if err != nil {
		t.Fatal(err)
	}
	p := &PairBatches{Graph: s.Graph, Source: &Edges{s.Train, 5}, Size: 50, Fanouts: fanouts, Negatives: n,
		PerPair: 3, Without: true, Seed: 5}
	if _, err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	return s, p
}

// TestPairBatches: an epoch has every training pair once, with its negatives; no
// message of a batch passes over one of its own pairs, and all other edges are there.
func TestPairBatches(t *testing.T) {
	g := bothWays(t, odd(t, 200, 900, true))
	s, p := pairBatches(t, g, []int{All, All})
	seen := map[[2]uint32]int{}
	sampler := p.Sampler()
	var b Batch
	for number := range p.Batches() {
		sampler.Sample(&b, 1, number)
		var fresh Batch
		p.Sampler().Sample(&fresh, 1, number)
		if !reflect.DeepEqual(b.Vertices, fresh.Vertices) || !reflect.DeepEqual(b.Left, fresh.Left) {
			t.Fatalf("batch %d depends on the batches before", number)
		}
		if len(b.Left) != b.Positives*4 || len(b.Right) != len(b.Left) {
			t.Fatalf("%d pairs of %d positives", len(b.Left), b.Positives)
		}
		own := map[[2]uint32]bool{}
		for i := range b.Positives {
			u, v := b.Vertices[b.Left[i]], b.Vertices[b.Right[i]]
			pair := [2]uint32{min(u, v), max(u, v)}
			own[pair] = true
			seen[pair]++
		}
		for i := b.Positives; i < len(b.Left); i++ {
			k := (i - b.Positives) / 3
			if b.Left[i] != b.Left[k] {
				t.Fatalf("negative %d keeps another end", i)
			}
		}
		for _, x := range b.Blocks {
			for i := range x.Dst {
				v := b.Vertices[i]
				var want, got []uint32
				for _, u := range s.Graph.Neighbors(v) {
					if !own[[2]uint32{min(u, v), max(u, v)}] {
						want = append(want, u)
					}
				}
				for _, j := range x.Indices[x.Indptr[i]:x.Indptr[i+1]] {
					got = append(got, b.Vertices[j])
				}
				if !slices.Equal(got, want) {
					t.Fatalf("batch %d, vertex %d: messages from %v, want %v", number, v, got, want)
				}
			}
		}
	}
	if len(seen) != s.Train.Len() {
		t.Fatalf("%d pairs in an epoch, want %d", len(seen), s.Train.Len())
	}
	for pair, times := range seen {
		if times != 1 {
			t.Fatalf("pair %v comes %d times", pair, times)
		}
	}
}

// TestPairBatchesDraw: with fanouts own pairs stay out too, and what is drawn counts
// as the edges that are left.
func TestPairBatchesDraw(t *testing.T) {
	g := bothWays(t, odd(t, 200, 3000, false))
	_, p := pairBatches(t, g, []int{3, 2})
	var b Batch
	sampler := p.Sampler()
	for number := range p.Batches() {
		sampler.Sample(&b, 0, number)
		own := map[[2]uint32]bool{}
		for i := range b.Positives {
			u, v := b.Vertices[b.Left[i]], b.Vertices[b.Right[i]]
			own[[2]uint32{u, v}], own[[2]uint32{v, u}] = true, true
		}
		for _, x := range b.Blocks {
			for i := range x.Dst {
				v, left := b.Vertices[i], 0
				for _, u := range p.Graph.Neighbors(v) {
					if !own[[2]uint32{u, v}] {
						left++
					}
				}
				drawn := x.Indices[x.Indptr[i]:x.Indptr[i+1]]
				for _, j := range drawn {
					if own[[2]uint32{b.Vertices[j], v}] {
						t.Fatalf("batch %d: a message over its own pair %d, %d", number, b.Vertices[j], v)
					}
				}
				if sum := float32(len(drawn)) * x.RowWeights[i]; sum < float32(left)*0.999 ||
					sum > float32(left)*1.001 {
					t.Fatalf("vertex %d: edges that count %g, want %d", v, sum, left)
				}
			}
		}
	}
}

// TestWalks: on a path of three the walk from its end is known, and starts and ends
// of walks differ.
func TestWalks(t *testing.T) {
	const draws = 20000
	path := &graph.CSR{Indptr: []int64{0, 1, 3, 4, 4}, Indices: []uint32{1, 0, 2, 1}}
	w := &Walks{Graph: path, PerVertex: 2, Length: 3, Seed: 4}
	if w.Len() != 8 {
		t.Fatalf("%d walks, want 8", w.Len())
	}
	count := map[uint32]float64{}
	for epoch := range draws / 2 {
		for i := range 2 {
			if start, met, ok := w.Pair(epoch, i); ok {
				if count[met]++; start != 0 {
					t.Fatalf("walk %d starts at %d", i, start)
				}
			}
		}
	}
	// From 0: one step meets 1, two steps 0 or 2, three steps 1; each a third.
	for met, p := range map[uint32]float64{0: 0, 1: 2. / 3, 2: 1. / 6} {
		within(t, fmt.Sprintf("walks that meet %d", met), count[met], count[met], p, draws)
	}
	if _, _, ok := w.Pair(0, 6); ok {
		t.Error("a vertex without neighbours meets another")
	}
}
