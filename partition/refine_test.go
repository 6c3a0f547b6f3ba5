package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/graph"
)

// TestRefineLowersTheCut: the cut is never larger, nor is what parts weigh over their limits, in windows of any size,
// with and without reverse edges; and what passes say they gained is what they did.
func TestRefineLowersTheCut(t *testing.T) {
	lower := 0
	seeds(t, 60, func(t *testing.T, r *rand.Rand) {
		g := randomGraph(t, r, 2+r.IntN(300))
		p := &Problem{Graph: g, Parts: 1 + r.IntN(min(8, g.Nodes())), Symmetric: g.Symmetric()}
		p.Constraints = []Constraint{{Name: "vertices", Tolerance: 0.1}}
		if r.IntN(2) == 0 {
			p.Constraints = append(p.Constraints, Constraint{Name: "edges", Weight: degreeWeights(g), Tolerance: 0.3})
		}
		parts := make([]uint32, g.Nodes())
		for v := range parts {
			parts[v] = uint32(r.IntN(p.Parts))
		}
		cut, excess := cutOf(g, parts), newLoads(p).of(parts).excess()
		f := newRefiner(p, parts, newLoads(p).of(parts))
		f.most.edges, f.most.nodes = 1+r.IntN(2000), 1+r.IntN(400)
		for k := range 3 {
			gained, err := f.pass(t.Context(), "test", k)
			if err != nil {
				t.Fatal(err)
			}
			if p.Symmetric {
				gained *= 2
			}
			after := cutOf(g, parts)
			if after != cut-gained || gained < 0 {
				t.Fatalf("cut %d became %d, said to be %d less", cut, after, gained)
			}
			if gained > 0 {
				lower++
			}
			cut = after
		}
		l := newLoads(p).of(parts)
		if over := l.excess(); over > excess {
			t.Fatalf("%g over the limits became %g", excess, over)
		}
		for k := range l.weight {
			if !slices.Equal(l.weight[k], f.loads.weight[k]) {
				t.Fatalf("part %d weighs %d, counted %d", k, l.weight[k], f.loads.weight[k])
			}
		}
	})
	if lower == 0 {
		t.Error("nothing was lowered")
	}
}

func cutOf(g *graph.CSR, parts []uint32) int64 { return Measure(g, parts, 1<<8, nil, false, 1).EdgeCut }

// TestRefinedStreams: streams that are refined keep their limits and cut less than without.
func TestRefinedStreams(t *testing.T) {
	g := blocks(rand.New(rand.NewPCG(1, 2)), 3000, 40, 16, 0.7)
	for _, name := range []string{"ldg", "fennel"} {
		p := &Problem{Graph: g, Parts: 8, Symmetric: g.Symmetric()}
		var cut [2]int64
		for i := range cut {
			p.Refine = 2 * i
			parts := by(t, name, p)
			cut[i] = Measure(g, parts, p.Parts, nil, true, 1).EdgeCut
			if err := newLoads(p).of(parts).unbalanced(parts); err != nil {
				t.Error(err)
			}
		}
		if cut[1] >= cut[0] {
			t.Errorf("%s: cut %d, refined %d", name, cut[0], cut[1])
		}
		t.Logf("%s: cut %d, refined %d", name, cut[0], cut[1])
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := refine(ctx, p, make([]uint32, g.Nodes()), newLoads(p), name); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// TestGainQueue: the greatest first, of equals the first number, whatever was raised.
func TestGainQueue(t *testing.T) {
	seeds(t, 20, func(t *testing.T, r *rand.Rand) {
		n := 1 + r.IntN(50)
		var q gainQueue
		q.grow(n)
		bound := map[uint32]int32{}
		for range 300 {
			if r.IntN(3) > 0 {
				x, b := uint32(r.IntN(n)), int32(r.IntN(20))
				if old, in := bound[x]; !in || b > old {
					q.raise(x, b)
					bound[x] = b
				}
				continue
			}
			if q.empty() {
				if len(bound) > 0 {
					t.Fatal("empty")
				}
				continue
			}
			x, b := q.pop()
			for y, c := range bound {
				if c > b || c == b && y < x {
					t.Fatalf("%d of %d before %d of %d", x, b, y, c)
				}
			}
			if bound[x] != b {
				t.Fatal("another bound")
			}
			delete(bound, x)
		}
	})
}
