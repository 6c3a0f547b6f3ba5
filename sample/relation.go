package sample

import (
	"fmt"

	"starling/graph"
	"starling/rng"
)

// RelationSets decides which edges of some relations of a typed graph are held out: a function of the seed and of an
// edge's relation and ends. An edge, its repeats and the edge of the reverse relation that says the same are held out
// together. Where a relation leads from a type to itself and has no reverse, an edge and the opposite edge are, too.
type RelationSets struct {
	EdgeSets
	of []canonical // by relation
}

// canonical is how an edge of a relation is written.
type canonical struct {
	relation  int // that stands for it and its reverse; -1: none of its edges are held out
	turned    bool
	unordered bool
}

// NewRelationSets holds out about the given shares of the edges of relations.
func NewRelationSets(s *graph.Schema, relations []int, val, test float64, seed uint64) (*RelationSets, error) {
	if !(val >= 0 && test >= 0 && val+test < 1) {
		return nil, fmt.Errorf("shares %g and %g of the edges to hold out: they must not be negative, and leave some to "+
			"learn from", val, test)
	}
	out := &RelationSets{EdgeSets: NewEdgeSets(val, test, seed), of: make([]canonical, len(s.Relations))}
	for r := range out.of {
		out.of[r].relation = -1
	}
	for _, r := range relations {
		if r < 0 || r >= len(s.Relations) {
			return nil, fmt.Errorf("relation %d of %d", r, len(s.Relations))
		}
		reverse := Opposite(s, r)
		if reverse < 0 || reverse >= r {
			out.of[r] = canonical{relation: r, unordered: reverse == r}
		} else {
			out.of[r] = canonical{relation: reverse, turned: true}
		}
		if reverse >= 0 && reverse != r {
			out.of[reverse] = canonical{relation: out.of[r].relation, turned: !out.of[r].turned}
		}
	}
	return out, nil
}

// ListedRelationSets holds out the edges of one relation that lists have.
func ListedRelationSets(s *graph.Schema, relation int, l *Lists) (*RelationSets, error) {
	out, err := NewRelationSets(s, []int{relation}, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	out.listed = l.sets(func(u, v uint32) [2]uint32 { return out.of[relation].ends(u, v) })
	return out, nil
}

// ends are the source and the destination of an edge as it is written.
func (c canonical) ends(u, v uint32) [2]uint32 {
	if c.turned || c.unordered && u > v {
		u, v = v, u
	}
	return [2]uint32{u, v}
}

// Opposite is the relation whose edges say the same in the other direction, or -1. Of a relation from a type to itself
// that has no reverse it is the relation itself.
func Opposite(s *graph.Schema, r int) int {
	reverse := s.ReverseOf(r)
	if rel := &s.Relations[r]; reverse < 0 && rel.Source == rel.Target {
		return r
	}
	return reverse
}

// Of is the set of an edge u → v of a relation.
func (s *RelationSets) Of(relation int, u, v uint32) int {
	c := s.of[relation]
	if c.relation < 0 {
		return TrainEdges
	}
	ends := c.ends(u, v)
	if s.listed != nil {
		return s.listed[ends]
	}
	switch x := s.key.Fold(uint64(c.relation)).Fold(uint64(ends[0])).Float64(uint64(ends[1])); {
	case x < s.val:
		return ValEdges
	case x < s.val+s.test:
		return TestEdges
	}
	return TrainEdges
}

// Kept is a graph without the edges that are held out. row and source are the ids of its rows, and of the vertices that
// edges start at.
func (s *RelationSets) Kept(g *graph.CSR, row, source func(uint32) uint32) *graph.CSR {
	out := &graph.CSR{Indptr: make([]int64, 1, g.Nodes()+1), Indices: make([]uint32, 0, g.Edges()),
		Relations: make([]uint16, 0, g.Edges())}
	for v := range uint32(g.Nodes()) {
		id := row(v)
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if s.Of(int(g.Relations[e]), source(g.Indices[e]), id) == TrainEdges {
				out.Indices, out.Relations = append(out.Indices, g.Indices[e]), append(out.Relations, g.Relations[e])
			}
		}
		out.Indptr = append(out.Indptr, int64(len(out.Indices)))
	}
	return out
}

// RelationNegatives draws vertices that replace the destination of an edge of a relation. They are of the destination's
// type, whose first id is First.
type RelationNegatives struct {
	*Negatives
	First uint32
	key   rng.Key
}

// NewRelationNegatives draws uniformly of a relation's destinations. taken reports which ones are no negatives of a
// source, which is as Of is given it, by id; nil: all are.
func NewRelationNegatives(s *graph.Schema, relation int, taken func(u, w uint32) bool, seed uint64) *RelationNegatives {
	return RelationNegativesByDegree(s, relation, 0, nil, taken, seed)
}

// RelationNegativesByDegree draws in proportion to the degree of destinations, which degrees has from First on, to a
// power; uniformly if it is 0.
func RelationNegativesByDegree(s *graph.Schema, relation int, power float64, degrees []float64,
	taken func(u, w uint32) bool, seed uint64) *RelationNegatives {
	t := &s.Types[s.Relations[relation].Target]
	first := uint32(t.First)
	var local func(u, w uint32) bool
	if taken != nil {
		local = func(u, w uint32) bool { return taken(u, first+w) }
	}
	return &RelationNegatives{Negatives: NegativesOf(int(t.Count), power, func(w uint32) int { return int(degrees[w]) },
		local, seed), First: first, key: rng.New(seed).Fold(useNegatives).Fold(uint64(relation))}
}

// Key is the key of an edge's negatives in an epoch; folded with k it is the key of negative k.
func (n *RelationNegatives) Key(epoch int, u, v uint32) rng.Key {
	return n.key.Fold(uint64(epoch)).Fold(uint64(u)).Fold(uint64(v))
}

// Of is negative k of an edge in an epoch. The edge goes by ids; source is what taken is asked about.
func (n *RelationNegatives) Of(epoch int, u, v uint32, k int, source uint32) uint32 {
	return n.First + n.ByKey(n.Key(epoch, u, v).Fold(uint64(k)), source)
}

// Ranked is negative k of an edge of a held-out set, the same in every epoch.
func (n *RelationNegatives) Ranked(set int, u, v uint32, k int, source uint32) uint32 {
	key := n.key.Fold(useRanked).Fold(uint64(set)).Fold(uint64(u)).Fold(uint64(v))
	return n.First + n.ByKey(key.Fold(uint64(k)), source)
}
