package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/graph"
	"starling/partition/graphtest"
)

var engines = map[string]Method{"kaminpar": KaMinPar, "ptscotch": PTScotch}

func engineOrSkip(t *testing.T, method Method, p *Problem) []uint32 {
	t.Helper()
	parts, err := method(t.Context(), p)
	if errors.Is(err, ErrNoEngine) {
		t.Skip(err)
	}
	var u *Unbalanced
	if err != nil && !errors.As(err, &u) {
		t.Fatal(err)
	}
	return parts
}

// TestEngines: the real programs find the communities of a graph, meet several constraints, and take edges of both
// directions, repeated ones and vertices without any.
func TestEngines(t *testing.T) {
	for name, method := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := graphtest.Blocks(t, rand.New(rand.NewPCG(1, 9)), 2000, 4, 20)
			p := &Problem{Graph: g, Parts: 4, Seed: 3, Threads: 1}
			parts := engineOrSkip(t, method, p)
			cut := graphtest.Between(g, func(v uint32) uint32 { return parts[v] })
			if between := graphtest.Between(g, func(v uint32) uint32 { return v % 4 }); cut > 2*between {
				t.Errorf("cut %d, between communities %d", cut/2, between/2)
			}
			train := make([]uint32, g.Nodes())
			for v := range 300 {
				train[v] = 1
			}
			p.Constraints = []Constraint{{Name: "vertices", Tolerance: 0.05}, {Name: "train", Weight: train, Tolerance: 0.1},
				{Name: "edges", Weight: degreeWeights(g), Tolerance: 0.1}}
			parts = engineOrSkip(t, method, p)
			if err := newLoads(p).of(parts).unbalanced(parts); err != nil {
				t.Error(err)
			}
			if name == "kaminpar" && !slices.Equal(parts, engineOrSkip(t, method, p)) {
				t.Error("another partition from the same seed")
			}
			directed := randomGraph(t, rand.New(rand.NewPCG(1, 2)), 60)
			if parts := engineOrSkip(t, method, &Problem{Graph: directed, Parts: 2, Threads: 1}); len(parts) != directed.Nodes() {
				t.Error(len(parts))
			}
		})
	}
}

func TestEnginesEdgeCases(t *testing.T) {
	none := &graph.CSR{Indptr: make([]int64, 9)}
	for name, method := range engines {
		if parts, err := method(t.Context(), &Problem{Graph: none, Parts: 1}); err != nil || len(parts) != 8 {
			t.Errorf("%s: %v %v", name, parts, err)
		}
		if _, err := method(t.Context(), &Problem{Graph: none, Parts: 9}); !errors.Is(err, graph.ErrInput) {
			t.Errorf("%s: more parts than vertices: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := method(ctx, &Problem{Graph: none, Parts: 2}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled: %v", name, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("STARLING_PYTHON", "")
	for name, method := range engines {
		if _, err := method(t.Context(), &Problem{Graph: none, Parts: 2}); !errors.Is(err, ErrNoEngine) {
			t.Errorf("%s: without it: %v", name, err)
		}
	}
}
