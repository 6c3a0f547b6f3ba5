package sample

import (
	"fmt"
	"slices"

	"starling/graph"
	"starling/rng"
)

// Types are how the edges of a typed graph are drawn: every destination draws up to a fanout of its in-edges of each
// relation, as it does of all of them in a graph without types. The draws of a relation are keyed by it, so that they do
// not depend on the others.
//
// The vertices that a layer adds to a batch are in the order of their types, so that a batch has few runs of one type.
type Types struct {
	Schema *graph.Schema
	// Fanouts are by hop and relation, where they are not the hop's for all; an entry of 0 is the hop's.
	Fanouts [][]int
	// TypeOf is the type of a vertex of the batch.
	TypeOf func(v uint32) int
}

// check refuses what has no meaning by relation.
func (t *Types) check(n *Neighbour) error {
	for hop, list := range t.Fanouts {
		for r, f := range list {
			if f < 0 && f != All {
				return fmt.Errorf("fanout %d of relation %q in hop %d: it must be at least 1, or %d for all neighbours", f,
					t.Schema.RelationName(r), hop+1, All)
			}
		}
	}
	switch {
	case n.Graph.Relations == nil:
		return fmt.Errorf("the graph has no relations to draw by")
	case n.Weighted:
		return fmt.Errorf("edges of a typed graph are not drawn by weight")
	}
	return nil
}

// Of are the fanouts of a hop by relation; nil: the hop's for all.
func (t *Types) Of(hop int) []int {
	if hop < len(t.Fanouts) {
		return t.Fanouts[hop]
	}
	return nil
}

// fanoutOf is the fanout of a relation, where some have their own.
func fanoutOf(own []int, relation, all int) int {
	if relation < len(own) && own[relation] != 0 {
		return own[relation]
	}
	return all
}

// pickRelations draws edges of every relation of a vertex, whose key it is given.
func (s *neighbours) pickRelations(x *Block, key rng.Key, first int64, degree, fanout int) {
	relations := s.of.Graph.Relations[first : first+int64(degree)]
	for lo := 0; lo < degree; {
		r := relations[lo]
		hi := lo + 1
		for hi < degree && relations[hi] == r {
			hi++
		}
		from, most := len(s.picked), fanoutOf(s.fanouts, int(r), fanout)
		if gone := s.excluded.of(len(x.Indptr)-1, r); len(gone) > 0 {
			s.pickOthers(key, uint32(r), first, first+int64(lo), hi-lo, most, gone)
		} else {
			s.pickRelation(key.Fold(uint64(r)), first+int64(lo), hi-lo, most)
		}
		for range s.picked[from:] {
			x.Relations = append(x.Relations, r)
		}
		lo = hi
	}
}

// pickRelation draws some of consecutive edges.
func (s *neighbours) pickRelation(key rng.Key, first int64, degree, fanout int) {
	switch {
	case s.of.Replace && fanout != All:
		s.picked = s.choose.repeated(s.picked, key, first, degree, fanout)
	case fanout == All || degree <= fanout:
		s.picked = s.choose.all(s.picked, first, degree)
	default:
		s.picked = s.choose.distinct(s.picked, key, first, degree, fanout)
	}
}

// Arranger puts the vertices of batches in the order of their types.
type Arranger struct {
	TypeOf func(v uint32) int

	types, next   []int
	order, places []uint32
}

// Arrange puts the vertices that a layer added to a batch in the order of their types; those of one type keep their
// order. move is told the new row of each.
func (a *Arranger) Arrange(b *Batch, layer int, move func(v, row uint32)) {
	x := &b.Blocks[layer]
	added := b.Vertices[x.Dst:]
	if x.ByID || a.count(added) {
		return
	}
	a.order, a.places = slices.Grow(a.order[:0], len(added))[:len(added)], a.places[:0]
	for i, v := range added {
		at := a.next[a.types[i]]
		a.next[a.types[i]]++
		a.order[at], a.places = v, append(a.places, uint32(x.Dst+at))
	}
	for i, v := range a.order {
		move(v, uint32(x.Dst+i))
	}
	copy(added, a.order)
	for e, u := range x.Indices {
		if int(u) >= x.Dst {
			x.Indices[e] = a.places[int(u)-x.Dst]
		}
	}
}

// count finds the types of vertices and the place of each type's first. It reports whether they are in order already.
func (a *Arranger) count(list []uint32) (ordered bool) {
	a.types, a.next, ordered = a.types[:0], a.next[:0], true
	last := 0
	for _, v := range list {
		t := a.TypeOf(v)
		ordered, last = ordered && last <= t, t
		a.types = append(a.types, t)
		for len(a.next) <= t+1 {
			a.next = append(a.next, 0)
		}
		a.next[t+1]++
	}
	for t := 1; t < len(a.next); t++ {
		a.next[t] += a.next[t-1]
	}
	return ordered
}
