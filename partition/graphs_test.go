package partition

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"starling/graph"
)

// seeds runs a test on many random cases; a failing one says its seed.
func seeds(t *testing.T, n int, test func(t *testing.T, r *rand.Rand)) {
	for seed := range n {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { test(t, rand.New(rand.NewPCG(uint64(seed), 7))) })
	}
}

// randomGraph has communities, a hub, isolated vertices, self-loops and repeated
// edges, and is symmetric or not, weighted or not, as chance has it.
func randomGraph(t testing.TB, r *rand.Rand, n int) *graph.CSR {
	m := r.IntN(6 * n)
	src, dst := make([]uint32, m), make([]uint32, m)
	for i := range m {
		v := r.IntN(n)
		src[i], dst[i] = uint32(v), uint32(r.IntN(n))
		switch r.IntN(10) {
		case 0: // the hub
			dst[i] = 0
		case 1, 2, 3, 4, 5: // near by
			dst[i] = uint32(min(max(v+r.IntN(9)-4, 0), n-1))
		case 6:
			if i > 0 { // again
				src[i], dst[i] = src[i-1], dst[i-1]
			}
		}
	}
	var w []float32
	if r.IntN(3) == 0 {
		w = make([]float32, m)
		for i := range w {
			w[i] = r.Float32()
		}
	}
	g, err := graph.FromEdges(n, src, dst, w,
		graph.BuildOptions{Symmetrize: r.IntN(3) > 0, DropSelfLoops: r.IntN(2) == 0, DropDuplicates: r.IntN(2) == 0})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// randomDataset writes a dataset of such a graph with whatever else it may have.
func randomDataset(t testing.TB, r *rand.Rand, n int) string {
	d := &graph.Dataset{Meta: graph.Meta{Name: "random"}, Graph: randomGraph(t, r, n)}
	d.Features = &graph.Features{Rows: n, Cols: 1 + r.IntN(5)}
	switch r.IntN(4) {
	case 0:
		d.Features.F32 = make([]float32, n*d.Features.Cols)
		for i := range d.Features.F32 {
			d.Features.F32[i] = r.Float32()
		}
	case 1:
		d.Features.BF16 = make([]uint16, n*d.Features.Cols)
		for i := range d.Features.BF16 {
			d.Features.BF16[i] = uint16(r.IntN(0x7f00))
		}
	case 2:
		d.Features.Indptr = make([]int64, n+1)
		for v := range n {
			for c := range d.Features.Cols {
				if r.IntN(2) == 0 {
					d.Features.Indices = append(d.Features.Indices, uint32(c))
					d.Features.Values = append(d.Features.Values, r.Float32())
				}
			}
			d.Features.Indptr[v+1] = int64(len(d.Features.Indices))
		}
	case 3:
		d.Features = nil
	}
	if r.IntN(4) > 0 {
		d.Labels = &graph.Labels{Classes: 3, Class: make([]int32, n)}
		for v := range n {
			d.Labels.Class[v] = int32(r.IntN(3))
			switch r.IntN(5) {
			case 0, 1:
				d.Splits.Train = append(d.Splits.Train, uint32(v))
			case 2:
				d.Splits.Val = append(d.Splits.Val, uint32(v))
			case 3:
				d.Splits.Test = append(d.Splits.Test, uint32(v))
			}
		}
		if len(d.Splits.Train) == 0 {
			d.Splits = graph.Splits{}
		}
		d.Labels = []*graph.Labels{d.Labels, severalOf(d.Labels), numbersOf(d.Labels)}[n%3]
	}
	if g := d.Graph; r.IntN(2) == 0 && g.Edges() > 0 { // which tell what edge they are of
		g.EdgeDim = 3
		for v := range uint32(n) {
			for i, u := range g.Neighbors(v) {
				g.EdgeFeatures = append(g.EdgeFeatures, float32(u), float32(v), float32(g.Indptr[v]+int64(i)))
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "dataset")
	if err := graph.Save(dir, d, graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, dir string) *graph.Dataset {
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// blocks is a graph of communities that are shuffled among the vertices.
func blocks(r *rand.Rand, n, communities, degree int, inside float64) *graph.CSR {
	home := make([]int, n)
	members := make([][]uint32, communities)
	for v := range n {
		home[v] = r.IntN(communities)
		members[home[v]] = append(members[home[v]], uint32(v))
	}
	var src, dst []uint32
	for v := range n {
		for range degree / 2 {
			u := uint32(r.IntN(n))
			if r.Float64() < inside {
				u = members[home[v]][r.IntN(len(members[home[v]]))]
			}
			src, dst = append(src, uint32(v)), append(dst, u)
		}
	}
	g, _ := graph.FromEdges(n, src, dst, nil,
		graph.BuildOptions{Symmetrize: true, DropDuplicates: true, DropSelfLoops: true})
	return g
}

// severalOf has a vertex belong to its class and the one before.
func severalOf(one *graph.Labels) *graph.Labels {
	l := &graph.Labels{Classes: one.Classes, Multi: make([]uint8, len(one.Class)*one.Classes)}
	for v, c := range one.Class {
		l.Row(v)[c], l.Row(v)[max(c-1, 0)] = 1, 1
	}
	return l
}

// numbersOf has two numbers per vertex.
func numbersOf(one *graph.Labels) *graph.Labels {
	l := &graph.Labels{Classes: 2}
	for v, c := range one.Class {
		l.Values = append(l.Values, float32(v), float32(c)/3)
	}
	return l
}
