// Package graphtest makes the graphs that tests of partitioners use.
package graphtest

import (
	"math/rand/v2"
	"testing"

	"starling/graph"
)

// Shapes are graphs with what usually goes wrong.
func Shapes(t testing.TB, r *rand.Rand) map[string]*graph.CSR {
	n := 50 + r.IntN(400)
	build := func(edge func(i int) (int, int), m int, opt graph.BuildOptions) *graph.CSR {
		src, dst := make([]uint32, m), make([]uint32, m)
		for i := range m {
			u, v := edge(i)
			src[i], dst[i] = uint32(u), uint32(v)
		}
		return fromEdges(t, n, src, dst, opt)
	}
	anywhere := func(int) (int, int) { return r.IntN(n), r.IntN(n) }
	clique := func(int) (int, int) { c := 10 * r.IntN(n/10); return c + r.IntN(10), c + r.IntN(10) }
	both := graph.BuildOptions{Symmetrize: true}
	return map[string]*graph.CSR{
		"symmetric":    build(anywhere, 4*n, both),
		"directed":     build(anywhere, 4*n, graph.BuildOptions{}),
		"no edges":     build(anywhere, 0, both),
		"sparse":       build(anywhere, n/4, both),
		"star":         build(func(i int) (int, int) { return 0, 1 + i%(n-1) }, n-1, both),
		"repeated":     build(func(i int) (int, int) { return i % 7, i % 11 }, 5*n, both),
		"path":         build(func(i int) (int, int) { return i, i + 1 }, n-1, both),
		"cliques":      build(clique, 8*n, both),
		"skewed":       build(func(i int) (int, int) { return r.IntN(n), r.IntN(1 + r.IntN(1+r.IntN(n))) }, 6*n, both),
		"only loops":   build(func(i int) (int, int) { return i, i }, n, graph.BuildOptions{}),
		"two vertices": {Indptr: []int64{0, 1, 2}, Indices: []uint32{1, 0}},
	}
}

// Blocks is a graph of equal communities, four fifths of the edges inside. Vertex v is in
// community v modulo communities.
func Blocks(t testing.TB, r *rand.Rand, n, communities, degree int) *graph.CSR {
	m := n * degree / 2
	src, dst := make([]uint32, m), make([]uint32, m)
	for i := range m {
		v := r.IntN(n)
		src[i], dst[i] = uint32(v), uint32(r.IntN(n))
		if r.IntN(5) > 0 {
			dst[i] = uint32(v%communities + communities*r.IntN(n/communities))
		}
	}
	return fromEdges(t, n, src, dst, graph.BuildOptions{Symmetrize: true, DropDuplicates: true, DropSelfLoops: true})
}

// Mesh is a grid with one diagonal per square.
func Mesh(t testing.TB, wide, high int) *graph.CSR {
	var src, dst []uint32
	add := func(ok bool, v, u int) {
		if ok {
			src, dst = append(src, uint32(v)), append(dst, uint32(u))
		}
	}
	for v := range wide * high {
		right, up := v%wide+1 < wide, v/wide+1 < high
		add(right, v, v+1)
		add(up, v, v+wide)
		add(right && up, v, v+wide+1)
	}
	return fromEdges(t, wide*high, src, dst, graph.BuildOptions{Symmetrize: true})
}

func fromEdges(t testing.TB, n int, src, dst []uint32, opt graph.BuildOptions) *graph.CSR {
	g, err := graph.FromEdges(n, src, dst, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Between counts stored edges between vertices of different groups.
func Between(g *graph.CSR, group func(v uint32) uint32) (edges int64) {
	for v := range uint32(g.Nodes()) {
		for _, u := range g.Neighbors(v) {
			if group(u) != group(v) {
				edges++
			}
		}
	}
	return edges
}
