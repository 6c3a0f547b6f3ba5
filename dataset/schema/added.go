package schema

import (
	"fmt"
	"math"
	"strings"

	"starling/dataset"
	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// ImportAdded reads the tables of vertices and edges that a typed graph gets. It writes the vertices, of the types that
// the schema has, as a dataset without edges to out, and returns the edges, whose ids are the graph's and, after these,
// those of that dataset. An edge has an added vertex at one end at least, and its reverse where the graph has a relation
// for it.
func (p *Plan) ImportAdded(opt Options, known *graph.Dataset, out string) (dataset.Summary, []graph.AddedEdge, error) {
	b := &build{plan: p, opt: opt, known: known, schema: &graph.Schema{}}
	relations, err := p.among(known)
	if err != nil {
		return dataset.Summary{}, nil, err
	}
	if b.w, err = graph.Create(out, graph.WriterOptions{}); err != nil {
		return dataset.Summary{}, nil, err
	}
	defer b.w.Abort()
	b.w.Meta.Name, b.w.Meta.Source = opt.Name, "added by "+p.Schema.File
	for _, n := range p.nodes {
		b.schema.Types = append(b.schema.Types, graph.VertexType{Name: n.Name})
	}
	if err := b.vertices(); err != nil {
		return dataset.Summary{}, nil, err
	}
	total := b.schema.Types[len(p.nodes)-1].End()
	if total+known.Meta.Nodes > graph.MaxNodes {
		return dataset.Summary{}, nil, place{p.Schema.File, "nodes"}.wrong(fmt.Sprintf("%s and those of the graph",
			event.Tally(total, "vertex")), "fewer than 2^32 in all", "predict for fewer at a time")
	}
	edges, err := b.addedEdges(relations)
	if err == nil {
		err = b.w.Graph(&graph.CSR{Indptr: make([]int64, total+1), Relations: []uint16{}})
	}
	if err != nil {
		return dataset.Summary{}, nil, err
	}
	b.w.Meta.Notes = b.notes
	sum, err := dataset.Commit(b.w, graph.Splits{})
	return sum, edges, err
}

// among are the graph's numbers of the relations of the plan. It refuses types and relations that the graph has not.
func (p *Plan) among(known *graph.Dataset) (list []int, err error) {
	s := known.Meta.Schema
	var types, relations []string
	for k := range s.Types {
		types = append(types, s.Types[k].Name)
	}
	for r := range s.Relations {
		relations = append(relations, s.RelationName(r))
	}
	for _, n := range p.nodes {
		if s.Type(n.Name) < 0 {
			return nil, n.at.wrong(fmt.Sprintf("%q, which is no type of %s", n.Name, known.Dir),
				"one of "+strings.Join(types, ", "), suggest(n.Name, types, "correct the name"))
		}
	}
	seen := map[int]bool{}
	for _, e := range p.edges {
		name := e.Source + " " + e.Name + " " + e.Target
		r := s.RelationOf(name)
		if r < 0 {
			return nil, e.at.in("type").wrong(fmt.Sprintf("%q, which is no relation of %s", name, known.Dir),
				"one of "+strings.Join(relations, ", "), suggest(name, relations, "correct the name"))
		}
		back := s.ReverseOf(r)
		if e.Reverse != "" && (back < 0 || s.Relations[back].Name != e.Reverse) {
			return nil, e.at.in("reverse").wrong(fmt.Sprintf("%q, which is not the reverse of %s in %s", e.Reverse, e.Name,
				known.Dir), "the graph's", "leave it out: the graph knows")
		}
		if seen[r] {
			return nil, e.at.wrong("the reverse of a relation that is listed too", "one of the two, which gives both",
				"remove this one")
		}
		seen[r], list = true, append(list, r)
		if back >= 0 {
			seen[back] = true
		}
	}
	return list, nil
}

// addedTo finds the ids that a type has already, if vertices are added to it.
func (b *build) addedTo(d *typeData) error {
	if b.known == nil {
		return nil
	}
	d.known = knownIDs(b.known, d.plan.Name)
	if d.plan.ID == "" && !d.known.plain {
		return d.plan.at.in("id").wrong("no column of ids", "one, as the vertices of "+b.known.Dir+" have names",
			"add id: COLUMN")
	}
	return nil
}

// knownIDs are the ids of a type of a dataset.
func knownIDs(d *graph.Dataset, kind string) *ids {
	k := d.Meta.Schema.Type(kind)
	of := d.OfType(k)
	if !of.HasIDs() {
		return counted(int(of.Meta.Nodes))
	}
	x := newIDs()
	for v := range uint32(of.Meta.Nodes) {
		x.addText(of.ID(v))
	}
	return x
}

// counted are vertices that are named by numbers: from 0 on, or from the vertices on that there are already.
func (d *typeData) counted(n int) *ids {
	if d.known == nil {
		return counted(n)
	}
	x := newIDs()
	for i := range n {
		x.addNumber(int64(d.known.n + i))
	}
	return x
}

// refuse refuses ids that are there already.
func (x *ids) refuse(b *table.Batch, v *table.Values, column string) error {
	if x == nil {
		return nil
	}
	for i := range b.Rows {
		if v.IsMissing(i) {
			continue
		}
		if at, ok := x.find(v, i); ok {
			return place{b.File, fmt.Sprintf("%s, column %s", b.Place(i), column)}.wrong(fmt.Sprintf("%.60q, which the graph has",
				x.name(int(at))), "the id of a new vertex", "remove the row")
		}
	}
	return nil
}

// both are the vertices of a type that edges may name.
type both struct {
	kind         string
	old          *ids
	added        *ids // nil: none
	first, fresh int64
}

// find is the vertex of row i, and whether it was added.
func (x *both) find(v *table.Values, i int) (id int64, added, ok bool) {
	if v.IsMissing(i) {
		return 0, false, false
	}
	if at, ok := x.old.find(v, i); ok {
		return x.first + int64(at), false, true
	}
	if x.added != nil {
		if at, ok := x.added.find(v, i); ok {
			return x.fresh + int64(at), true, true
		}
	}
	return 0, false, false
}

// addedEdges reads the edges of all relations.
func (b *build) addedEdges(relations []int) (edges []graph.AddedEdge, err error) {
	all := map[string]*both{}
	of := func(kind string) *both {
		if x := all[kind]; x != nil {
			return x
		}
		s := b.known.Meta.Schema
		x := &both{kind: kind, first: s.Types[s.Type(kind)].First}
		for k, d := range b.types {
			if d.plan.Name == kind {
				x.old, x.added, x.fresh = d.known, d.ids, b.known.Meta.Nodes+b.schema.Types[k].First
			}
		}
		if x.old == nil {
			x.old = knownIDs(b.known, kind)
		}
		all[kind] = x
		return x
	}
	for i, e := range b.plan.edges {
		back := b.known.Meta.Schema.ReverseOf(relations[i])
		from, to := of(e.Source), of(e.Target)
		want, one := e.wants()
		err := e.table.Read(want,
			func(x *table.Batch) error {
				if err := one.last(x); err != nil {
					return err
				}
				for row := range x.Rows {
					edge, err := b.addedEdge(e, x, row, from, to)
					if err != nil {
						return err
					}
					if edge.Relation = uint16(relations[i]); int64(len(edges)) >= math.MaxInt32 {
						return place{x.File, x.Place(row)}.wrong("more than 2^31 edges", "fewer", "predict for fewer at a time")
					}
					if edges = append(edges, edge); back >= 0 {
						edges = append(edges, graph.AddedEdge{Source: edge.Target, Target: edge.Source, Relation: uint16(back)})
					}
				}
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	return edges, nil
}

// addedEdge is the edge of a row.
func (b *build) addedEdge(e *edgePlan, x *table.Batch, row int, from, to *both) (edge graph.AddedEdge, err error) {
	at := func(c int) place {
		return place{x.File, fmt.Sprintf("%s, column %s", x.Place(row), []string{e.Src, e.Dst}[c])}
	}
	src, a, ok := from.find(&x.Columns[0], row)
	if !ok {
		return edge, at(0).wrong(shown(&x.Columns[0], row), b.either(from), "correct it, or remove the edge")
	}
	dst, c, ok := to.find(&x.Columns[1], row)
	if !ok {
		return edge, at(1).wrong(shown(&x.Columns[1], row), b.either(to), "correct it, or remove the edge")
	}
	if !a && !c {
		return edge, place{x.File, x.Place(row)}.wrong("an edge between two vertices that the graph has",
			"edges of new vertices", "remove the row")
	}
	return graph.AddedEdge{Source: uint32(src), Target: uint32(dst)}, nil
}

// either says whose ids an end may be.
func (b *build) either(x *both) string {
	text := "an id of type " + x.kind + " in " + b.known.Dir
	if x.added != nil {
		text += " or of its new vertices"
	}
	return text
}

// shown is an id as a message has it.
func shown(v *table.Values, i int) string {
	switch {
	case v.IsMissing(i):
		return "no id"
	case v.Text != nil:
		return fmt.Sprintf("%.60q", v.Text[i])
	}
	return fmt.Sprint(v.Whole[i])
}
