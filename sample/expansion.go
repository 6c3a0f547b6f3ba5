package sample

import (
	"cmp"
	"slices"
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
// that rows before it picked there reach the fanout. row calls with the neighbours of a row.
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

// KeptWeight is what edges of a vertex count that keeps some of the weight of all its edges.
func KeptWeight(all, kept float64) float32 {
	if kept <= 0 {
		return 1
	}
	return float32(all / kept)
}
