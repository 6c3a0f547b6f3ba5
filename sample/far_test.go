//go:build linux

package sample

import (
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"starling/graph"
	"starling/internal/testseed"
)

// far is how many edges lie before those that are drawn: positions need more than 32 bits.
const far = 1<<33 + 11

// farGraphs are two graphs that differ in vertex 0 alone, which no edge comes from: in the second it has 2^33 in-edges,
// so that all others' positions are beyond. Memory of edges that are not looked at is never there.
func farGraphs(t *testing.T, edgeDim int) (near, beyond *graph.CSR) {
	t.Helper()
	r := testseed.Rand(t)
	const n = 60
	var src, dst []uint32
	for range 900 {
		src, dst = append(src, 1+uint32(r.IntN(n-1))), append(dst, 1+uint32(r.IntN(n-1)))
	}
	near, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{DropDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	near.Weights = make([]float32, near.Edges())
	for e := range near.Weights {
		near.Weights[e] = float32(1 + r.IntN(5))
	}
	near.EdgeDim = edgeDim
	beyond = &graph.CSR{Indptr: slices.Clone(near.Indptr), Indices: reserve[uint32](t, far+near.Edges()),
		Weights: reserve[float32](t, far+near.Edges()), EdgeDim: edgeDim}
	for v := range beyond.Indptr[1:] {
		beyond.Indptr[1+v] += far
	}
	copy(beyond.Indices[far:], near.Indices)
	copy(beyond.Weights[far:], near.Weights)
	return near, beyond
}

// reserve is an array whose pages exist when they are touched.
func reserve[T uint32 | float32](t *testing.T, n int64) []T {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, int(4*n), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		t.Skipf("no address space for %d bytes: %v", 4*n, err)
	}
	t.Cleanup(func() { syscall.Munmap(b) })
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}

// TestBeyond32BitPositions: every sampler draws the same edges when 2^33 others are stored before them.
func TestBeyond32BitPositions(t *testing.T) {
	near, beyond := farGraphs(t, 1)
	seeds := []uint32{3, 7, 11, 20, 33, 41, 52}
	methods := map[string]func(g *graph.CSR) Method{
		"distinct": func(g *graph.CSR) Method { return farNeighbour(g, seeds, Neighbour{}) },
		"replace":  func(g *graph.CSR) Method { return farNeighbour(g, seeds, Neighbour{Replace: true}) },
		"weighted": func(g *graph.CSR) Method { return farNeighbour(g, seeds, Neighbour{Weighted: true}) },
		"weighted, replace": func(g *graph.CSR) Method {
			return farNeighbour(g, seeds, Neighbour{Weighted: true, Replace: true})
		},
		"ladies": func(g *graph.CSR) Method {
			return &LADIES{&layerwise{graph: g, draws: []int{12, 20}, seed: 5, degrees: make([]float64, g.Nodes()),
				order: NewOrder(seeds, 4, 5)}}
		},
		"cluster": func(g *graph.CSR) Method {
			of := make([]uint32, g.Nodes())
			for v := range of {
				of[v] = uint32(min(v, 1) + v%2)
			}
			return NewClusterOf(g, seeds, of, 3, 1, 5)
		},
	}
	for name, method := range methods {
		want, got := method(near), method(beyond)
		var a, b Batch
		ours, theirs := want.Sampler(), got.Sampler()
		for number := range want.Batches() {
			if name == "cluster" && slices.Contains(ClusterOrder(5, 1, 3)[number:number+1], 0) {
				continue // that of vertex 0: all of its edges would be read
			}
			ours.Sample(&a, 1, number)
			theirs.Sample(&b, 1, number)
			sameFar(t, name, &a, &b)
		}
	}
}

// farNeighbour is prepared without a pass over all weights.
func farNeighbour(g *graph.CSR, seeds []uint32, n Neighbour) Method {
	n.Graph, n.SeedVertices, n.Size, n.Fanouts, n.Seed = g, seeds, 4, []int{5, 3}, 5
	n.order = NewOrder(seeds, n.Size, n.Seed)
	return &n
}

func sameFar(t *testing.T, name string, a, b *Batch) {
	t.Helper()
	if !slices.Equal(a.Vertices, b.Vertices) {
		t.Fatalf("%s: vertices %v and %v", name, a.Vertices, b.Vertices)
	}
	for i := range a.Blocks {
		x, y := &a.Blocks[i], &b.Blocks[i]
		if !slices.Equal(x.Indptr, y.Indptr) || !slices.Equal(x.Indices, y.Indices) || !slices.Equal(x.Weights, y.Weights) {
			t.Errorf("%s: block %d differs", name, i)
		}
		if len(x.Places) == 0 || len(x.Places) != len(y.Places) {
			t.Fatalf("%s: %d and %d places", name, len(x.Places), len(y.Places))
		}
		for k := range x.Places {
			if y.Places[k] != x.Places[k]+far {
				t.Fatalf("%s: place %d and %d", name, x.Places[k], y.Places[k])
			}
		}
	}
}
