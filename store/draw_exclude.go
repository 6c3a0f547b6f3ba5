package store

import (
	"cmp"
	"slices"

	"starling/sample"
)

// Excluded is an edge, or all of its repeats, that a batch must not draw: a batch of link
// prediction would else find its own pairs among its messages.
type Excluded struct {
	Vertex, Source uint32  // numbers in the partition
	Weight         float64 // that the edges have together, which the vertex's degree is less
	Relation       int     // of a typed graph
}

// excludedEdge is one as a draw takes it: place of its destination among the vertices that draw, and its source.
type excludedEdge struct {
	place, source uint32
	relation      uint16
}

// exclusions are the excluded edges of a batch, by vertex.
type exclusions struct {
	list []Excluded
	from map[uint32]int // of a vertex: its first in the list
}

// newExclusions sorts a list, which is kept.
func newExclusions(list []Excluded) *exclusions {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b Excluded) int {
		return cmp.Or(cmp.Compare(a.Vertex, b.Vertex), cmp.Compare(a.Source, b.Source), a.Relation-b.Relation)
	})
	e := &exclusions{list, make(map[uint32]int, len(list))}
	for i := len(list) - 1; i >= 0; i-- {
		e.from[list[i].Vertex] = i
	}
	return e
}

// edges are all of them; none where there are no exclusions.
func (e *exclusions) edges() []Excluded {
	if e == nil {
		return nil
	}
	return e.list
}

// of are the excluded edges of the vertices at some places of a list: place among them and number of a source.
func (e *exclusions) of(numbers, places []uint32) (out []excludedEdge) {
	if e == nil {
		return nil
	}
	for k, i := range places {
		from, ok := e.from[numbers[i]]
		for ; ok && from < len(e.list) && e.list[from].Vertex == numbers[i]; from++ {
			x := &e.list[from]
			out = append(out, excludedEdge{uint32(k), x.Source, uint16(x.Relation)})
		}
	}
	return out
}

// takeOut takes these edges out of the degrees of a batch's vertices.
func (e *exclusions) takeOut(known *Known, rowOf func(vertex uint32) (row uint32, ok bool)) {
	if e == nil {
		return
	}
	for _, x := range e.list {
		row, ok := rowOf(x.Vertex)
		if !ok {
			continue
		}
		known.NoLoops[row] -= x.Weight
		if int(row) < len(known.All) {
			known.All[row] -= x.Weight
		}
	}
}

// sources turns numbers of sources into the part's own; those it has no edge from are left out.
func (o *Owner) sources(without []excludedEdge) []excludedEdge {
	out := without[:0]
	for _, x := range without {
		if local, ok := o.find(x.source); ok {
			out = append(out, excludedEdge{x.place, local, x.relation})
		}
	}
	slices.SortFunc(out, func(a, b excludedEdge) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.source, b.source))
	})
	return out
}

// find is the part's own number of a vertex, if it has one.
func (o *Owner) find(number uint32) (local uint32, ok bool) {
	if o.at != nil {
		x := o.at.find(number)
		return uint32(x), x >= 0
	}
	core := uint32(o.part.Core())
	if local = number - o.first; local < core {
		return local, true
	}
	at, ok := slices.BinarySearch(o.part.Halo, number)
	return core + uint32(at), ok
}

// excludedRows are excluded edges as sample.Drawer takes them of a graph without types.
func excludedRows(list []excludedEdge) (rows []uint64) {
	for _, x := range list {
		rows = append(rows, uint64(x.place)<<32|uint64(x.source))
	}
	return rows
}

// excludedRelated are the same of a typed graph.
func excludedRelated(list []excludedEdge) (edges []sample.RelatedEdge) {
	for _, x := range list {
		edges = append(edges, sample.RelatedEdge{Row: int(x.place), Relation: int(x.relation), Source: x.source})
	}
	return edges
}
