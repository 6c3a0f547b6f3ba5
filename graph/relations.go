package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Edges of a typed graph are sorted by a Sorter that carries their relations:
//
//	s := w.Sorter(n, expected, false, BuildOptions{})
//	s.Typed()                           // before the first Add
//	s.AddRelation(seq, src, dst, r)     // instead of Add
//	…; s.Finish()                       // writes relations.npy too
//
// A relation's number takes the place of a weight in the sort, as the bits of a float.

const relationsFile = "relations.npy"

// Typed makes the sorter keep the relation of each edge. Such edges have no weights, and repeated ones are kept.
func (s *Sorter) Typed() { s.weighted, s.typed = true, true }

// AddRelation is Add for edges of one relation.
func (s *Sorter) AddRelation(seq int64, src, dst []uint32, relation int) error {
	bits := make([]float32, len(src))
	for i := range bits {
		bits[i] = math.Float32frombits(uint32(relation))
	}
	return s.Add(seq, src, dst, bits)
}

// FromTypedEdges builds the graph of the edges src[i] → dst[i] of relation[i] over n vertices. Rows are in the order of
// relations, then of sources.
func FromTypedEdges(n int, src, dst []uint32, relation []uint16) (*CSR, error) {
	bits := make([]float32, len(relation))
	for i, r := range relation {
		bits[i] = math.Float32frombits(uint32(r))
	}
	g, err := FromEdges(n, src, dst, bits, BuildOptions{})
	if err != nil {
		return nil, err
	}
	g.relationsFromWeights()
	return g, nil
}

// relationsFromWeights turns weights that are the bits of relations' numbers into these, and puts rows in order.
func (g *CSR) relationsFromWeights() {
	g.Relations = grown(g.Relations, len(g.Weights))
	for e, w := range g.Weights {
		g.Relations[e] = uint16(math.Float32bits(w))
	}
	g.Weights = nil
	Parallel(int64(g.Nodes()), 1024, func(lo, hi int64) {
		var row []relatedEdge
		for v := lo; v < hi; v++ {
			row = g.orderByRelation(v, row)
		}
	})
}

type relatedEdge struct {
	source   uint32
	relation uint16
}

// orderByRelation sorts a row, if its relations are not in order; row is a buffer.
func (g *CSR) orderByRelation(v int64, row []relatedEdge) []relatedEdge {
	lo, hi := g.Indptr[v], g.Indptr[v+1]
	if slices.IsSorted(g.Relations[lo:hi]) {
		return row
	}
	row = row[:0]
	for e := lo; e < hi; e++ {
		row = append(row, relatedEdge{g.Indices[e], g.Relations[e]})
	}
	slices.SortStableFunc(row, func(a, b relatedEdge) int { return cmp.Compare(a.relation, b.relation) })
	for i, e := range row {
		g.Indices[lo+int64(i)], g.Relations[lo+int64(i)] = e.source, e.relation
	}
	return row
}

// CheckRelations checks that every edge's relation fits the types of its ends, and that rows are in order.
func (g *CSR) CheckRelations(s *Schema) error {
	if len(g.Relations) != len(g.Indices) {
		return &InputError{Field: "relations", Found: fmt.Sprintf("%d of them", len(g.Relations)),
			Want: fmt.Sprintf("one per edge (%d)", len(g.Indices)), Fix: "make the dataset again"}
	}
	for t := range s.Types {
		first, end := s.Types[t].First, s.Types[t].End()
		if err := parallelErr(end-first, grain, func(lo, hi int64) error {
			return g.checkRelations(s, t, first+lo, first+hi)
		}); err != nil {
			return err
		}
	}
	return nil
}

// checkRelations is CheckRelations for vertices lo to hi of a type.
func (g *CSR) checkRelations(s *Schema, target int, lo, hi int64) error {
	for v := lo; v < hi; v++ {
		last := -1
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			r, u := int(g.Relations[e]), int64(g.Indices[e])
			if r >= len(s.Relations) || s.Relations[r].Target != target || r < last {
				return badRelation(e, fmt.Sprintf("relation %d", r), "one that leads to "+s.Types[target].Name+", in ascending order")
			}
			if from := &s.Types[s.Relations[r].Source]; u < from.First || u >= from.End() {
				return badRelation(e, fmt.Sprintf("an edge from %d in relation %q", u, s.RelationName(r)), "a source that is a "+from.Name)
			}
			last = r
		}
	}
	return nil
}

func badRelation(at int64, found, want string) error {
	return &InputError{Field: "relations", Found: fmt.Sprintf("%s at position %d", found, at), Want: want,
		Fix: "make the dataset again"}
}

// Relation returns the place of a relation's edges in the row of v: Indices[lo:hi].
func (g *CSR) Relation(v uint32, r int) (lo, hi int64) {
	first := g.Indptr[v]
	row := g.Relations[first:g.Indptr[v+1]]
	from, _ := slices.BinarySearch(row, uint16(r))
	to, _ := slices.BinarySearchFunc(row[from:], r, func(have uint16, r int) int { return cmp.Compare(int(have), r+1) })
	return first + int64(from), first + int64(from+to)
}
