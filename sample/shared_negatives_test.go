package sample

import (
	"slices"
	"testing"

	"starling/internal/testseed"
	"starling/rng"
)

// TestOthersAreDrawnWithoutReplacement: every k of the others is as likely, none comes twice, and there are all where
// there are no more.
func TestOthersAreDrawnWithoutReplacement(t *testing.T) {
	r := testseed.Rand(t)
	for range 200 {
		n, k := 1+r.IntN(20), 1+r.IntN(30)
		at := r.IntN(n)
		got := othersOf(rng.New(r.Uint64()), at, n, k)
		if len(got) != min(k, n-1) {
			t.Fatalf("%d of %d others, asked for %d", len(got), n-1, k)
		}
		slices.Sort(got)
		if len(slices.Compact(slices.Clone(got))) != len(got) || slices.Contains(got, at) ||
			len(got) > 0 && (got[0] < 0 || got[len(got)-1] >= n) {
			t.Fatalf("%v of %d places other than %d", got, n, at)
		}
	}
	const n, draws = 6, 60000
	var count [n]float64
	for i := range uint64(draws) {
		for _, j := range othersOf(rng.New(5).Fold(i), 2, n, 3) {
			count[j]++
		}
	}
	for j, c := range count {
		if want := draws * 3.0 / (n - 1); j != 2 && (c < 0.97*want || c > 1.03*want) {
			t.Errorf("place %d comes %g times, expected %g", j, c, want)
		}
	}
}

// TestSharedNegativesLeaveEdgesOut: of a batch's pairs, the negatives are what a loop over all that the batch shares
// finds, without the pair's own ends and without edges.
func TestSharedNegativesLeaveEdgesOut(t *testing.T) {
	g := odd(t, 60, 200, false)
	s, err := HoldOut(t.Context(), g, 0.1, 0.1, 5)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNegatives(s.Graph, 0, true, 5)
	if err != nil {
		t.Fatal(err)
	}
	source, pairs := &Edges{s.Train, 5}, []uint32{3, 8, 1, 30, 22, 9, 41}
	isEdge := func(u, w uint32) bool {
		return slices.Contains(s.Graph.Neighbors(u), w) || slices.Contains(s.Graph.Neighbors(w), u)
	}
	for _, shared := range []Shared{{InBatch: true, Each: 99}, {Each: 9}, {Chunk: 3, Each: 9}} {
		var d Drawn
		d.DrawShared(source, n, &shared, 2, 4, pairs)
		var left, right []uint32
		outs := 0
		for at, i := range pairs {
			u, v, _ := source.Pair(2, int(i))
			var all []uint32
			for j, other := range pairs {
				if _, w, _ := source.Pair(2, int(other)); shared.InBatch && j != at {
					all = append(all, w)
				}
			}
			for k := range shared.Each {
				if chunk := at / max(1, shared.Chunk); !shared.InBatch {
					all = append(all, n.Any(n.JointKey(2, 4, chunk*min(shared.Chunk, 1)).Fold(uint64(k))))
				}
			}
			for _, w := range all {
				if w == u || w == v || isEdge(u, w) {
					outs++
					continue
				}
				left, right = append(left, u), append(right, w)
			}
		}
		got := func(list []uint32, of []uint32) []uint64 {
			var pairs []uint64
			for i := range list {
				pairs = append(pairs, uint64(list[i])<<32|uint64(of[i]))
			}
			slices.Sort(pairs)
			return pairs
		}
		if d.Positives != len(pairs) || !slices.Equal(got(d.Left[d.Positives:], d.Right[d.Positives:]),
			got(left, right)) {
			t.Errorf("%+v: %v with %v, want %v with %v", shared, d.Left, d.Right, left, right)
		}
		if outs == 0 {
			t.Errorf("%+v: nothing is left out", shared)
		}
	}
}
