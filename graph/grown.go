package graph

import (
	"cmp"
	"math/bits"
	"slices"
)

// Grown is a typed graph with vertices and edges added to it. Nothing is copied: the vertices of Base keep their ids,
// and vertex v of Added has the id Base.Nodes() + v. A dataset that had both from the start would have, in each type, the
// vertices of Base before those of Added.
type Grown struct {
	Base, Added *Dataset
	types       []int // of Added: their numbers in Base
	edges       []AddedEdge
	first       map[uint32]int // edge of a target
}

// AddedEdge is an edge of a grown graph that is not in its base.
type AddedEdge struct {
	Source, Target uint32
	Relation       uint16 // of Base
}

func (a AddedEdge) compare(b AddedEdge) int {
	return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Source, b.Source))
}

// Grow adds vertices, whose types base has, and edges, which it sorts.
func Grow(base, added *Dataset, edges []AddedEdge) *Grown {
	g := &Grown{Base: base, Added: added, edges: edges, first: map[uint32]int{}}
	for _, t := range added.Meta.Schema.Types {
		g.types = append(g.types, base.Meta.Schema.Type(t.Name))
	}
	slices.SortFunc(edges, AddedEdge.compare)
	for i := len(edges) - 1; i >= 0; i-- {
		g.first[edges[i].Target] = i
	}
	return g
}

// into calls use for the in-edges of v, by relation, then by source.
func (g *Grown) into(v uint32, use func(source uint32, relation uint16)) {
	base, at, end := g.Base.Graph, int64(0), int64(0)
	if int64(v) < g.Base.Meta.Nodes {
		at, end = base.Indptr[v], base.Indptr[v+1]
	}
	more, ok := g.first[v]
	if !ok {
		more = len(g.edges)
	}
	for ; more < len(g.edges) && g.edges[more].Target == v; more++ {
		e := g.edges[more]
		for ; at < end && base.Relations[at] <= e.Relation; at++ {
			use(base.Indices[at], base.Relations[at])
		}
		use(e.Source, e.Relation)
	}
	for ; at < end; at++ {
		use(base.Indices[at], base.Relations[at])
	}
}

// Neighbourhood is the part of a grown graph that some rows depend on, a graph of its own with the types and relations
// of the base. Of each type it has vertices of the base before those that were added, both in ascending order.
type Neighbourhood struct {
	Schema *Schema
	Graph  *CSR
	Base   [][]uint32 // of each type: their numbers in the base's type
	Added  [][]uint32 // in the added type
}

// Around is the neighbourhood of the added vertices of a type of Added, as deep as layers look. The vertices at
// its edge have no in-edges. Of each type that the base has vertices of, one at least is in it.
func (g *Grown) Around(kind, layers int) *Neighbourhood {
	seen := newMembers(g.Base.Meta.Nodes + g.Added.Meta.Nodes)
	var inside []uint32
	next := g.ofAdded(kind)
	for _, v := range next {
		seen.add(v)
	}
	for range layers {
		frontier := next
		inside, next = append(inside, frontier...), nil
		for _, v := range frontier {
			g.into(v, func(u uint32, _ uint16) {
				if seen.add(u) {
					next = append(next, u)
				}
			})
		}
	}
	for _, t := range g.Base.Meta.Schema.Types {
		if t.Count > 0 {
			seen.add(uint32(t.First))
		}
	}
	seen.count()
	return g.part(seen, inside)
}

// ofAdded are the ids of the added vertices of a type of Added.
func (g *Grown) ofAdded(kind int) (ids []uint32) {
	t := &g.Added.Meta.Schema.Types[kind]
	for v := t.First; v < t.End(); v++ {
		ids = append(ids, uint32(g.Base.Meta.Nodes+v))
	}
	return ids
}

// places are the numbers of members in their neighbourhood.
type places struct {
	g           *Grown
	seen        *members
	base, added []uint32 // what is added to the number of members below, by type
}

// of is the place of a vertex of type k.
func (p *places) of(v uint32, k int) uint32 {
	if int64(v) < p.g.Base.Meta.Nodes {
		return p.base[k] + p.seen.below(v)
	}
	return p.added[k] + p.seen.below(v)
}

// kind is the type of a vertex.
func (g *Grown) kind(v uint32) int {
	if n := g.Base.Meta.Nodes; int64(v) >= n {
		return g.types[g.Added.Meta.Schema.TypeOf(v-uint32(n))]
	}
	return g.Base.Meta.Schema.TypeOf(v)
}

// number gives the members of each type their places.
func (g *Grown) number(seen *members, n *Neighbourhood) *places {
	s, types, first := g.Base.Meta.Schema, n.Schema.Types, uint32(g.Base.Meta.Nodes)
	p := &places{g, seen, make([]uint32, len(types)), make([]uint32, len(types))}
	total := uint32(0)
	for k := range types {
		t := &s.Types[k]
		types[k].First, types[k].IDs = int64(total), ""
		n.Base[k] = seen.between(uint32(t.First), uint32(t.End()))
		p.base[k] = total - seen.below(uint32(t.First))
		total += uint32(len(n.Base[k]))
		if j := slices.Index(g.types, k); j >= 0 {
			a := &g.Added.Meta.Schema.Types[j]
			lo, hi := first+uint32(a.First), first+uint32(a.End())
			n.Added[k] = seen.between(lo, hi)
			p.added[k] = total - seen.below(lo)
			total += uint32(len(n.Added[k]))
		}
		types[k].Count = int64(total) - types[k].First
	}
	return p
}

// part is the graph of the members; those inside have their in-edges.
func (g *Grown) part(seen *members, inside []uint32) *Neighbourhood {
	s := g.Base.Meta.Schema
	n := &Neighbourhood{Schema: &Schema{Types: slices.Clone(s.Types), Relations: slices.Clone(s.Relations)},
		Base: make([][]uint32, len(s.Types)), Added: make([][]uint32, len(s.Types))}
	p := g.number(seen, n)
	total := n.Schema.Types[len(s.Types)-1].End()
	rows := make([]int64, total) // 1 + the vertex of the place, if it is inside
	for _, v := range inside {
		rows[p.of(v, g.kind(v))] = int64(v) + 1
	}
	for r := range n.Schema.Relations {
		n.Schema.Relations[r].Edges = 0
	}
	n.Graph = &CSR{Indptr: make([]int64, 1, total+1), Relations: []uint16{}, Indices: []uint32{}}
	for _, v := range rows {
		if v > 0 {
			g.into(uint32(v-1), func(u uint32, relation uint16) {
				n.Graph.Indices = append(n.Graph.Indices, p.of(u, s.Relations[relation].Source))
				n.Graph.Relations = append(n.Graph.Relations, relation)
				n.Schema.Relations[relation].Edges++
			})
		}
		n.Graph.Indptr = append(n.Graph.Indptr, n.Graph.Edges())
	}
	return n
}

// members is a set of ids that knows how many there are below each, in 12 bytes for 64 ids.
type members struct {
	words  []uint64
	before []uint32
}

func newMembers(n int64) *members { return &members{words: make([]uint64, n/64+1)} }

// add tells whether v was not there.
func (m *members) add(v uint32) bool {
	bit := uint64(1) << (v % 64)
	fresh := m.words[v/64]&bit == 0
	m.words[v/64] |= bit
	return fresh
}

// count prepares below and between.
func (m *members) count() {
	m.before = make([]uint32, len(m.words))
	sum := 0
	for i, w := range m.words {
		m.before[i] = uint32(sum)
		sum += bits.OnesCount64(w)
	}
}

// below is how many there are below v.
func (m *members) below(v uint32) uint32 {
	return m.before[v/64] + uint32(bits.OnesCount64(m.words[v/64]&(1<<(v%64)-1)))
}

// between are those from lo to hi, as differences to lo.
func (m *members) between(lo, hi uint32) (list []uint32) {
	for at := lo; at < hi; {
		w := m.words[at/64] >> (at % 64)
		if w == 0 {
			at = at&^63 + 64
			continue
		}
		if at += uint32(bits.TrailingZeros64(w)); at < hi {
			list = append(list, at-lo)
			at++
		}
	}
	return list
}
