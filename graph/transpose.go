package graph

import (
	"runtime"
	"slices"
	"sort"
	"sync"
)

// Transpose returns the graph with every edge reversed, and for each of its
// edges the position of that edge in g: t.Weights[e] == g.Weights[perm[e]]. Rows
// are in ascending order, equal edges in the order they have in g. The
// work is split over cores by edges; the result does not depend on how. If g is
// Mirrored, t is g itself.
func (g *CSR) Transpose() (t *CSR, perm []uint32) {
	n := g.Nodes()
	cuts := g.cutByEdges(int(max(1, min(int64(runtime.GOMAXPROCS(0)), g.Edges()/int64(max(n, 1)), g.Edges()/grain))))
	next := make([][]uint32, len(cuts)-1)
	each := func(f func(next []uint32, lo, hi int)) {
		var wg sync.WaitGroup
		for k := range next {
			wg.Go(func() { f(next[k], cuts[k], cuts[k+1]) })
		}
		wg.Wait()
	}
	for k := range next {
		next[k] = newArray[uint32](int64(n))
	}
	each(func(deg []uint32, lo, hi int) {
		for _, u := range g.Indices[g.Indptr[lo]:g.Indptr[hi]] {
			deg[u]++
		}
	})
	t = g
	if !g.Mirrored() {
		t = &CSR{Indptr: make([]int64, n+1), Indices: newArray[uint32](g.Edges())}
	}
	var at int64
	for u := range n {
		for _, deg := range next {
			c := deg[u]
			deg[u] = uint32(at)
			at += int64(c)
		}
		if t != g {
			t.Indptr[u+1] = at
		}
	}
	perm = newArray[uint32](g.Edges())
	if t != g && g.Weights != nil {
		t.Weights = newArray[float32](g.Edges())
	}
	each(func(next []uint32, lo, hi int) { g.scatter(t, perm, next, lo, hi) })
	return t, perm
}

// Mirrored reports whether g is its own transpose: it is Symmetric and its rows ascend. A
// graph with edge weights or edge features never is.
func (g *CSR) Mirrored() bool {
	if g.Weights != nil || g.EdgeFeatures != nil {
		return false
	}
	for v := range g.Nodes() {
		if !slices.IsSorted(g.Neighbors(uint32(v))) {
			return false
		}
	}
	return g.Symmetric()
}

// scatter writes the edges of rows lo..hi of g to their positions in t.
func (g *CSR) scatter(t *CSR, perm, next []uint32, lo, hi int) {
	for v := lo; v < hi; v++ {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u := g.Indices[e]
			p := next[u]
			next[u]++
			perm[p] = uint32(e)
			if t == g {
				continue
			}
			t.Indices[p] = uint32(v)
			if g.Weights != nil {
				t.Weights[p] = g.Weights[e]
			}
		}
	}
}

// cutByEdges splits the vertices into parts of about equal numbers of edges.
func (g *CSR) cutByEdges(parts int) []int {
	n := g.Nodes()
	cuts := make([]int, parts+1)
	for k := 1; k < parts; k++ {
		want := g.Edges() * int64(k) / int64(parts)
		cuts[k] = max(cuts[k-1], sort.Search(n, func(v int) bool { return g.Indptr[v] >= want }))
	}
	cuts[parts] = n
	return cuts
}
