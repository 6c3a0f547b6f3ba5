package store

import (
	"cmp"
	"slices"
)

// Excluded is an edge, or all of its repeats, that a batch must not draw: a batch of link
// prediction would else find its own pairs among its messages.
type Excluded struct {
	Vertex, Source uint32  // numbers in the partition
	Weight         float64 // that the edges have together, which the vertex's degree is less
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
		return cmp.Or(cmp.Compare(a.Vertex, b.Vertex), cmp.Compare(a.Source, b.Source))
	})
	e := &exclusions{list, make(map[uint32]int, len(list))}
	for i := len(list) - 1; i >= 0; i-- {
		e.from[list[i].Vertex] = i
	}
	return e
}

// of are the excluded edges of the vertices at some places of a list: place among them << 32 | number of a
// source.
func (e *exclusions) of(numbers, places []uint32) (out []uint64) {
	if e == nil {
		return nil
	}
	for k, i := range places {
		from, ok := e.from[numbers[i]]
		for ; ok && from < len(e.list) && e.list[from].Vertex == numbers[i]; from++ {
			out = append(out, uint64(k)<<32|uint64(e.list[from].Source))
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
func (o *Owner) sources(without []uint64) []uint64 {
	out := without[:0]
	for _, x := range without {
		number, core := uint32(x), uint32(o.part.Core())
		local := number - o.first
		if local >= core {
			at, ok := slices.BinarySearch(o.part.Halo, number)
			if !ok {
				continue
			}
			local = core + uint32(at)
		}
		out = append(out, x>>32<<32|uint64(local))
	}
	slices.Sort(out)
	return out
}
