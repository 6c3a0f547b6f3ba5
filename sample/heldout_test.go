package sample

import (
	"maps"
	"slices"
	"testing"

	"starling/graph"
)

// unordered are the pairs of a graph, each once, without loops.
func unordered(g *graph.CSR) map[[2]uint32]bool {
	set := map[[2]uint32]bool{}
	for v := range uint32(g.Nodes()) {
		for _, u := range g.Neighbors(v) {
			if u != v {
				set[[2]uint32{min(u, v), max(u, v)}] = true
			}
		}
	}
	return set
}

// TestHoldOut: every pair is in one part, and the graph that is left has every edge
// of the training pairs and the loops, as often as before, and no other.
func TestHoldOut(t *testing.T) {
	for name, g := range map[string]*graph.CSR{"directed": odd(t, 200, 1500, false),
		"weighted": odd(t, 200, 1500, true), "both ways": bothWays(t, odd(t, 200, 1500, false))} {
		s, err := HoldOut(t.Context(), g, 0.1, 0.2, 7)
		if err != nil {
			t.Fatal(err)
		}
		part := map[[2]uint32]int{}
		for k, pairs := range []Pairs{s.Train, s.Val, s.Test} {
			for i := range pairs.U {
				p := [2]uint32{pairs.U[i], pairs.V[i]}
				if _, twice := part[p]; twice || p[0] >= p[1] {
					t.Fatalf("%s: pair %v comes twice, or reversed", name, p)
				}
				part[p] = k
			}
		}
		all := unordered(g)
		if len(part) != len(all) {
			t.Fatalf("%s: %d pairs, want %d", name, len(part), len(all))
		}
		for i, want := range []float64{0.1, 0.2} {
			if share := float64([]Pairs{s.Val, s.Test}[i].Len()) / float64(len(all)); share < want*0.7 ||
				share > want*1.4 {
				t.Errorf("%s: a share of %.3f, want about %.1f", name, share, want)
			}
		}
		for v := range uint32(g.Nodes()) {
			var want []uint32
			for _, u := range g.Neighbors(v) {
				if u == v || part[[2]uint32{min(u, v), max(u, v)}] == 0 {
					want = append(want, u)
				}
			}
			if !slices.Equal(want, s.Graph.Neighbors(v)) {
				t.Fatalf("%s: vertex %d keeps %v, want %v", name, v, s.Graph.Neighbors(v), want)
			}
		}
		if (g.Weights == nil) != (s.Graph.Weights == nil) || s.Graph.Weights != nil &&
			len(s.Graph.Weights) != len(s.Graph.Indices) {
			t.Errorf("%s: %d weights of %d edges", name, len(s.Graph.Weights), len(s.Graph.Indices))
		}
	}
}

// TestHoldOutOneByOne: a pair is held out or not whatever other edges there are, and
// in whatever order its graph lists them.
func TestHoldOutOneByOne(t *testing.T) {
	g := odd(t, 100, 600, false)
	s, err := HoldOut(t.Context(), g, 0.1, 0.1, 3)
	if err != nil {
		t.Fatal(err)
	}
	reversed := &graph.CSR{Indptr: g.Indptr, Indices: slices.Clone(g.Indices)}
	for v := range uint32(g.Nodes()) {
		slices.Reverse(reversed.Neighbors(v))
	}
	again, err := HoldOut(t.Context(), reversed, 0.1, 0.1, 3)
	if err != nil || !slices.Equal(again.Val.U, s.Val.U) || !slices.Equal(again.Graph.Indices, s.Graph.Indices) {
		t.Errorf("the order of neighbours changes what is held out (%v)", err)
	}
	half := g.Subgraph(slices.Repeat([]bool{true, true, false, true}, 25))
	fewer, err := HoldOut(t.Context(), half, 0.1, 0.1, 3)
	if err != nil {
		t.Fatal(err)
	}
	held := pairSet(s.Test)
	left := unordered(half)
	maps.DeleteFunc(held, func(p [2]uint32, _ bool) bool { return !left[p] })
	if !maps.Equal(held, pairSet(fewer.Test)) {
		t.Error("other edges change which pairs are held out")
	}
}

func pairSet(p Pairs) map[[2]uint32]bool {
	set := map[[2]uint32]bool{}
	for i := range p.U {
		set[[2]uint32{p.U[i], p.V[i]}] = true
	}
	return set
}

func TestHoldOutRefuses(t *testing.T) {
	loops := &graph.CSR{Indptr: []int64{0, 1, 2}, Indices: []uint32{0, 1}}
	edge := &graph.CSR{Indptr: []int64{0, 1, 2}, Indices: []uint32{1, 0}}
	for name, f := range map[string]func() (*EdgeSplit, error){
		"only loops": func() (*EdgeSplit, error) { return HoldOut(t.Context(), loops, 0, 0, 1) },
		"no edges": func() (*EdgeSplit,
			error) {
			return HoldOut(t.Context(), &graph.CSR{Indptr: []int64{0}}, 0, 0, 1)
		},
		"all of them":  func() (*EdgeSplit, error) { return HoldOut(t.Context(), edge, 0.5, 0.5, 1) },
		"none to test": func() (*EdgeSplit, error) { return HoldOut(t.Context(), edge, 0, 1e-9, 1) },
	} {
		if _, err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if s, err := HoldOut(t.Context(), edge, 0, 0, 1); err != nil || s.Train.Len() != 1 || s.Graph.Edges() != 2 {
		t.Errorf("one edge, nothing held out: %+v, %v", s, err)
	}
}

// bothWays adds the reverse of every edge.
func bothWays(t *testing.T, g *graph.CSR) *graph.CSR {
	t.Helper()
	var src, dst []uint32
	for v := range uint32(g.Nodes()) {
		for _, u := range g.Neighbors(v) {
			src, dst = append(src, u), append(dst, v)
		}
	}
	both, err := graph.FromEdges(g.Nodes(), src, dst, nil, graph.BuildOptions{Symmetrize: true})
	if err != nil {
		t.Fatal(err)
	}
	return both
}

// TestHoldOutKeepsFeaturesOfEdges, of a graph whose rows do not ascend too.
func TestHoldOutKeepsFeaturesOfEdges(t *testing.T) {
	for _, reversed := range []bool{false, true} {
		g := odd(t, 60, 400, false)
		for v := range uint32(g.Nodes()) {
			if reversed {
				slices.Reverse(g.Indices[g.Indptr[v]:g.Indptr[v+1]])
			}
			for _, u := range g.Neighbors(v) {
				g.EdgeFeatures = append(g.EdgeFeatures, float32(u), float32(v))
			}
		}
		g.EdgeDim = 2
		s, err := HoldOut(t.Context(), g, 0.1, 0.2, 7)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Graph.Validate(); err != nil {
			t.Fatal(err)
		}
		for v := range uint32(g.Nodes()) {
			for e := s.Graph.Indptr[v]; e < s.Graph.Indptr[v+1]; e++ {
				if f := s.Graph.EdgeRows(e, e+1); f[0] != float32(s.Graph.Indices[e]) || f[1] != float32(v) {
					t.Fatalf("the edge %d → %d has the features %v", s.Graph.Indices[e], v, f)
				}
			}
		}
	}
}
