package graph

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// edgeFeatured is a random graph with loops and repeats, whose edges' features tell
// which edge they are of.
func edgeFeatured(t *testing.T, n, m, dim int) *CSR {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), uint64(m)))
	var src, dst []uint32
	for range m {
		src, dst = append(src, r.Uint32N(uint32(n))), append(dst, r.Uint32N(uint32(n)))
	}
	g, err := FromEdges(n, src, dst, nil, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g.EdgeDim = dim
	for range dim * m {
		g.EdgeFeatures = append(g.EdgeFeatures, float32(r.NormFloat64()))
	}
	return g
}

// TestLoopsHaveTheMeanOfEdges, and other edges keep their features, in subgraphs too.
func TestLoopsHaveTheMeanOfEdges(t *testing.T) {
	const n, dim = 30, 3
	g := edgeFeatured(t, n, 80, dim)
	out := g.WithSelfLoops()
	if err := out.Validate(); err != nil {
		t.Fatal(err)
	}
	for v := range uint32(n) {
		mean, count := make([]float64, dim), 0.0
		var others [][]float32
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if g.Indices[e] == v {
				continue
			}
			count++
			others = append(others, g.edgeRow(e))
			for c, x := range g.edgeRow(e) {
				mean[c] += float64(x)
			}
		}
		for e := out.Indptr[v]; e < out.Indptr[v+1]; e++ {
			if out.Indices[e] != v {
				if !slices.Equal(out.edgeRow(e), others[0]) {
					t.Fatalf("an edge of vertex %d has %v, had %v", v, out.edgeRow(e), others[0])
				}
				others = others[1:]
				continue
			}
			for c, x := range out.edgeRow(e) {
				if want := mean[c] / max(count, 1); math.Abs(float64(x)-want) > 1e-6 {
					t.Fatalf("the loop of vertex %d has %g, want %g", v, x, want)
				}
			}
		}
	}
	half := g.Subgraph(slices.Concat(slices.Repeat([]bool{true}, n/2), make([]bool, n-n/2)))
	if err := half.Validate(); err != nil || half.EdgeDim != dim || half.Edges() == 0 {
		t.Fatal(half.Edges(), err)
	}
}

// TestEdgeFeaturesInAFolder: they are written and read, may be added to a folder
// later, and are refused where they do not fit.
func TestEdgeFeaturesInAFolder(t *testing.T) {
	g := edgeFeatured(t, 20, 50, 4)
	write := func(g *CSR) string {
		dir := filepath.Join(t.TempDir(), "data")
		w, err := Create(dir, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Graph(g); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir := write(g)
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Meta.EdgeDim != 4 || !slices.Equal(d.Graph.EdgeFeatures, g.EdgeFeatures) {
		t.Fatalf("%d numbers per edge, %d in all", d.Meta.EdgeDim, len(d.Graph.EdgeFeatures))
	}
	// Nothing but self-loops, which were dropped: there are features, but of no edge.
	if none, err := Open(write(&CSR{Indptr: []int64{0, 0}, EdgeDim: 3, EdgeFeatures: []float32{}})); err != nil ||
		none.Graph.EdgeDim != 3 {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "edge_features.npy"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "edge_features.npy")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrInput) {
		t.Fatal(err)
	}
	plain := *g
	plain.EdgeFeatures, plain.EdgeDim = nil, 0
	later := write(&plain)
	for i, content := range [][]byte{file, file[:len(file)-4]} {
		if err := os.WriteFile(filepath.Join(later, "edge_features.npy"), content, 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := Open(later)
		if ok := i == 0; ok != (err == nil) {
			t.Fatalf("file %d: %v", i, err)
		}
		if err == nil {
			if d.Graph.EdgeDim != 4 {
				t.Fatal(d.Graph.EdgeDim)
			}
			d.Close()
		}
	}
}
