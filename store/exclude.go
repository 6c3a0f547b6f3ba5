package store

import (
	"cmp"
	"fmt"
	"slices"
)

// Excluded is an edge, or all of its repeats, that a batch must not draw: a batch of link
// prediction would else find its own pairs among its messages.
type Excluded struct {
	Vertex, Source uint32  // numbers in the partition
	Weight         float64 // that the edges have together, which the vertex's degree is less
}

// exclusions are those of a batch, by vertex.
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

// of are those of the vertices at some places of a list: place among them << 32 | number of a
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

// takeOut makes the degrees of a batch's vertices those of a graph without these edges.
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

// splitWithout divides the numbers of a request where it excludes edges.
func splitWithout(all []uint32, excludes bool) (numbers []uint32, without []uint64, err error) {
	if !excludes {
		return all, nil, nil
	}
	if len(all) == 0 || uint64(all[0]) >= uint64(len(all)) || (len(all)-1-int(all[0]))%2 != 0 {
		return nil, nil, fmt.Errorf("a request of %d numbers with excluded edges", len(all))
	}
	n := int(all[0])
	numbers, all = all[1:1+n], all[1+n:]
	for pair := range slices.Chunk(all, 2) {
		if int(pair[0]) >= n {
			return nil, nil, fmt.Errorf("an excluded edge of vertex %d of %d", pair[0], n)
		}
		without = append(without, uint64(pair[0])<<32|uint64(pair[1]))
	}
	return numbers, without, nil
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
