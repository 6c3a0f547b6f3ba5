package sample

import (
	"cmp"
	"slices"

	"starling/graph"
)

// Expansion picks neighbours as expansion-aware sampling does (Song et al., "GraNNDIS", PACT 2024,
// §5.3.1): beyond some inner vertices at most H hops, and for each vertex at most F neighbours, those
// first that have most neighbours which were not selected, as they stand for most of what is left out;
// ties go to the lower id. A batch is the inner vertices, those that were picked, and all edges between
// them, one block for every layer; edges that a vertex keeps count for those it lost.
type Expansion struct {
	links map[uint32]float64 // edges to selected vertices, by candidate
	row   []Candidate
	taken map[uint32]bool
}

// Candidate is a neighbour that may be picked.
type Candidate struct {
	Vertex, ID uint32
	Degree     float64 // without loops
}

// Begin forgets all that was picked.
func (x *Expansion) Begin() {
	x.links, x.taken = map[uint32]float64{}, map[uint32]bool{}
}

// Selected adds vertices to those that were selected.
func (x *Expansion) Selected(vertices []uint32) {
	for _, v := range vertices {
		x.taken[v] = true
	}
}

// Link counts an edge between a candidate and a selected vertex.
func (x *Expansion) Link(v uint32) { x.links[v]++ }

// Pick picks neighbours of rows, one after the other: of each those with most left, until with those
// that rows before it picked the fanout is reached. row calls with the neighbours of a row.
func (x *Expansion) Pick(rows, fanout int, row func(i int, add func(Candidate))) (picked []uint32) {
	chosen := map[uint32]bool{}
	for i := range rows {
		x.row = x.row[:0]
		row(i, func(c Candidate) {
			if !x.taken[c.Vertex] {
				x.row = append(x.row, c)
			}
		})
		slices.SortFunc(x.row, func(a, b Candidate) int {
			return cmp.Or(cmp.Compare(b.Degree-x.links[b.Vertex], a.Degree-x.links[a.Vertex]), cmp.Compare(a.ID, b.ID))
		})
		x.row = slices.CompactFunc(x.row, func(a, b Candidate) bool { return a.Vertex == b.Vertex })
		left := fanout
		for _, c := range x.row {
			if chosen[c.Vertex] {
				left--
			}
		}
		for _, c := range x.row {
			if left > 0 && !chosen[c.Vertex] {
				chosen[c.Vertex] = true
				picked = append(picked, c.Vertex)
				left--
			}
		}
	}
	return picked
}

// Expand fills b with the expansion of inner vertices of a graph that is all here. The batch's scale is
// the caller's.
func Expand(g *graph.CSR, b *Batch, inner []uint32, hops, fanout, epoch, number int) {
	b.Reset(epoch, number, 1)
	b.Vertices = append(b.Vertices, inner...)
	b.FirstSeeds(len(inner))
	var x Expansion
	x.Begin()
	x.Selected(inner)
	last := inner
	for range hops {
		for _, v := range last {
			for _, u := range g.Neighbors(v) {
				if u != v {
					x.Link(u)
				}
			}
		}
		last = x.Pick(len(last), fanout, func(i int, add func(Candidate)) {
			for _, u := range g.Neighbors(last[i]) {
				_, noLoops := degree(g, u)
				add(Candidate{u, u, noLoops})
			}
		})
		x.Selected(last)
		b.Vertices = append(b.Vertices, last...)
	}
	induceExpansion(g, b)
}

// induceExpansion makes the block of all edges between a batch's vertices.
func induceExpansion(g *graph.CSR, b *Batch) {
	x, at := &b.Blocks[0], map[uint32]uint32{}
	for i, v := range b.Vertices {
		at[v] = uint32(i)
	}
	x.Dst, x.Src = len(b.Vertices), len(b.Vertices)
	for _, v := range b.Vertices {
		kept := 0.0
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u, ok := at[g.Indices[e]]
			if !ok {
				continue
			}
			x.Indices = append(x.Indices, u)
			kept += weight(g, e)
			if g.EdgeDim > 0 {
				x.Places = append(x.Places, uint32(e))
			}
			if g.Weights != nil {
				x.Weights = append(x.Weights, g.Weights[e])
			}
		}
		all, _ := degree(g, v)
		x.RowWeights = append(x.RowWeights, KeptWeight(all, kept))
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
}

// KeptWeight is what edges of a vertex count that keeps some of the weight of all its edges.
func KeptWeight(all, kept float64) float32 {
	if kept <= 0 {
		return 1
	}
	return float32(all / kept)
}

// degree is a vertex's by weight, with and without loops.
func degree(g *graph.CSR, v uint32) (all, noLoops float64) {
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		w := weight(g, e)
		all += w
		if g.Indices[e] != v {
			noLoops += w
		}
	}
	return all, noLoops
}
