package sample

import (
	"math"
	"slices"
	"testing"

	"starling/rng"
)

// TestPinSAGETakesTheMostVisited compares with walks that are counted in a map: neighbours are the most visited, the
// most visited first, and count their share of the degree.
func TestPinSAGETakesTheMostVisited(t *testing.T) {
	const nodes, fanout = 60, 4
	g := odd(t, nodes, 500, false)
	by := Visits{Walks: 12, Length: 5, Restart: 0.3}
	m, err := NewPinSAGE(g, everyThird(nodes), 10, []int{fanout}, by, 7)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	m.Sampler().Sample(&b, 2, 1)
	x := &b.Blocks[0]
	for i, v := range b.Vertices[:x.Dst] {
		times, all := map[uint32]int{}, []int{}
		for k := range by.Walks {
			key, steps := by.Walk(LayerKey(7, 2, 1, 0).Fold(uint64(v)), k)
			at := v
			for s := 0; s < steps && g.Degree(at) > 0; s++ {
				if at = g.Neighbors(at)[key.IntN(uint64(s)+1, g.Degree(at))]; at != v {
					times[at]++
				}
			}
		}
		for _, n := range times {
			all = append(all, n)
		}
		slices.Sort(all)
		slices.Reverse(all)
		all = all[:min(fanout, len(all))]
		sum, weight := 0, 0.0
		for _, n := range all {
			sum += n
		}
		lo, hi := x.Indptr[i], x.Indptr[i+1]
		if int(hi-lo) != len(all) {
			t.Fatalf("vertex %d has %d neighbours, want %d", v, hi-lo, len(all))
		}
		for k, row := range x.Indices[lo:hi] {
			want := float64(g.Degree(v)) * float64(all[k]) / float64(sum)
			if times[b.Vertices[row]] != all[k] || math.Abs(float64(x.Weights[int(lo)+k])-want) > 1e-5 {
				t.Errorf("neighbour %d of vertex %d, visited %d times, counts %g; want one visited %d times, counting %g", k,
					v, times[b.Vertices[row]], x.Weights[int(lo)+k], all[k], want)
			}
			weight += float64(x.Weights[int(lo)+k])
		}
		if len(all) > 0 && math.Abs(weight-float64(g.Degree(v))) > 1e-4 {
			t.Errorf("the neighbours of vertex %d count %g together, want its degree %d", v, weight, g.Degree(v))
		}
	}
}

// TestWalksRestart: a walk takes i steps with probability (1-a)^(i-1)·a, and at most its length.
func TestWalksRestart(t *testing.T) {
	const n = 20000
	by := Visits{Walks: n, Length: 4, Restart: 0.5}
	count := map[int]int{}
	for k := range n {
		_, steps := by.Walk(rng.New(3), k)
		count[steps]++
	}
	for steps, want := range map[int]float64{1: 0.5, 2: 0.25, 3: 0.125, 4: 0.125} {
		if got := float64(count[steps]) / n; math.Abs(got-want) > 0.015 {
			t.Errorf("%.3f of walks have %d steps, want %.3f", got, steps, want)
		}
	}
	for _, bad := range []Visits{{0, 1, 0.5}, {1, 0, 0.5}, {1, 1, 1}, {1, 1, -0.1}, {1, 1, math.NaN()}} {
		if bad.Check() == nil {
			t.Errorf("%+v is not refused", bad)
		}
	}
}

// TestTiesAreNotByID: of vertices visited equally often, those with low ids are not taken more often.
func TestTiesAreNotByID(t *testing.T) {
	low := 0
	for i := range 1000 {
		list := []Visited{{Vertex: 5, ID: 1}, {Vertex: 6, ID: 2}}
		top, sum := Top(list, rng.New(uint64(i)), 1)
		if len(top) != 1 || sum != 1 {
			t.Fatal(top, sum)
		}
		if top[0].ID == 1 {
			low++
		}
	}
	if low < 400 || low > 600 {
		t.Errorf("%d of 1000 ties go to the lower id", low)
	}
}
