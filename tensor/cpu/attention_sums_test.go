package cpu

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"starling/tensor/ref"
)

// Groups end in any order and wait for each other at each piece of the result; it is the same
// for any number of threads.
func TestScoreSumsIgnoreThreads(t *testing.T) {
	g := randomEdges(rand.New(rand.NewPCG(2, 3)), 2*pieceRows+100, 300, 12, 0)
	heads, some := []int{1, 3, 4, 8}, []int{1, 2, 5}
	if testing.Short() {
		heads, some = heads[1:2], some[1:]
	}
	for _, heads := range heads {
		var first []float32
		for _, threads := range some {
			d := New(threads)
			if n := scoreGroups(g.sparse(d, false), Attention{Heads: heads}); n != 16 {
				t.Fatalf("%d groups", n)
			}
			dright := attentionResults(d, ref.New(), rand.New(rand.NewPCG(1, 1)), g, heads, 4)[4]
			if first == nil {
				first = slices.Clone(f32Of(dright))
			} else if !slices.Equal(first, f32Of(dright)) {
				t.Errorf("%d heads: %d threads have other sums than %d", heads, threads, some[0])
			}
			d.Close()
		}
	}
}

// A core that is done with its group goes on while one before it is still at work.
func TestScoreSumsDoNotWait(t *testing.T) {
	d := New(2)
	defer d.Close()
	dst := d.New(F32, 10, 1)
	s := d.newScoreSums([2]int{scoreSlots(8, 2) * dst.Rows, 1}, dst, 8)
	third := make(chan bool)
	d.sumScores(s, 8, func(k int, sums []float32) {
		switch k {
		case 0:
			select {
			case <-third:
			case <-time.After(10 * time.Second):
				t.Error("the third group waits for the first")
			}
		case 2:
			close(third)
		}
		sums[k]++
	})
	if want := []float32{1, 1, 1, 1, 1, 1, 1, 1, 0, 0}; !slices.Equal(f32Of(dst), want) {
		t.Errorf("%v", f32Of(dst))
	}
}

// No core waits for a group that will not come.
func TestScoreSumsPanic(t *testing.T) {
	d := New(3)
	defer d.Close()
	dst := d.New(F32, 10, 1)
	s := d.newScoreSums([2]int{3 * 10, 1}, dst, 8)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	d.sumScores(s, 8, func(k int, _ []float32) {
		if k == 1 {
			panic("one")
		}
	})
}
