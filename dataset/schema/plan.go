package schema

import (
	"fmt"
	"slices"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// Plan is a schema whose tables are open: every name is a column's, and every column has a fate.
type Plan struct {
	Schema *Schema
	nodes  []*nodePlan
	edges  []*edgePlan
}

// nodePlan is a type of vertices.
type nodePlan struct {
	*Node
	table    *table.Table // nil: Count vertices without one
	features []featurePlan
	label    *table.Table // that the label is in
	lists    [3]*table.Table
	masks    [3]maskPlan
	opened   map[string]*table.Table // of entries with files of their own
	clock    *table.Clock            // of times; nil: none
	like     *graph.PrepType
}

// featurePlan is a column of features.
type featurePlan struct {
	*Feature
	table *table.Table
	col   table.Column
	like  *graph.PrepColumn // what the column becomes; nil: it is found
}

// edgePlan is a relation.
type edgePlan struct {
	*Edge
	table    *table.Table
	features []featurePlan
	clock    *table.Clock
	like     *graph.PrepEdges
}

// Plan opens the tables and checks what is said of them.
func (s *Schema) Plan() (*Plan, error) {
	p := &Plan{Schema: s}
	for i := range s.Nodes {
		n := &nodePlan{Node: &s.Nodes[i], like: s.Like.Type(s.Nodes[i].Name)}
		if err := n.open(); err != nil {
			return nil, err
		}
		p.nodes = append(p.nodes, n)
	}
	for i := range s.Edges {
		e := &edgePlan{Edge: &s.Edges[i]}
		if s.Untyped && s.Like != nil {
			e.like = s.Like.Edges
		}
		if err := e.open(); err != nil {
			return nil, err
		}
		p.edges = append(p.edges, e)
	}
	return p, nil
}

// open reads the heads of a table. names are columns that it will have.
func (s *Source) open(names ...string) (*table.Table, error) {
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	return table.Open(table.Options{Format: s.Format, Header: s.Header, Names: names, Separator: s.Separator,
		Columns: s.Columns, Rows: s.Rows, RowsBy: s.RowsBy}, s.Files...)
}

// column finds a column; the only one of a table needs no name.
func column(t *table.Table, name string, at place) (table.Column, error) {
	if name == table.All {
		return table.Column{Name: name, Kind: table.Vector, Width: len(t.Columns)}, nil
	}
	if name == "" && len(t.Columns) == 1 {
		return t.Columns[0], nil
	}
	if c := t.Find(name); c != nil {
		return *c, nil
	}
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return table.Column{}, at.wrong(fmt.Sprintf("%q, which is no column of %s", name, t.Pattern),
		"one of "+t.Names(), suggest(name, names, "correct the name"))
}

func (n *nodePlan) open() (err error) {
	if len(n.Table.Files) > 0 {
		if n.table, err = n.Table.open(n.named()...); err != nil {
			return err
		}
	}
	if n.ID != "" {
		c, err := column(n.table, n.ID, n.at.in("id"))
		if err != nil {
			return err
		}
		if err := idKind(c, n.table, n.at.in("id")); err != nil {
			return err
		}
	}
	for i := range n.Features {
		if err := n.openFeature(&n.Features[i]); err != nil {
			return err
		}
	}
	if err := n.openLabel(); err != nil {
		return err
	}
	if err := n.openTime(); err != nil {
		return err
	}
	return n.openSplit()
}

// openTime finds how times are written.
func (n *nodePlan) openTime() error {
	if n.Time == "" {
		return nil
	}
	at := n.at.in("time")
	if n.table == nil {
		return at.wrong("a time of vertices without a table", "files", "add files")
	}
	c, err := column(n.table, n.Time, at)
	if err == nil {
		form := ""
		if n.like != nil && n.like.Time != nil {
			form = n.like.Time.Form
		}
		n.clock, err = table.ClockOf(n.table, &c, form)
	}
	return err
}

// named are the columns of the type's own table that the schema names.
func (n *nodePlan) named() []string {
	names := []string{n.ID, n.Graph}
	for _, f := range n.Features {
		if f.Table.Files == nil {
			names = append(names, f.Col)
		}
	}
	if n.Label != nil && n.Label.Table.Files == nil {
		names = append(names, n.Label.Col)
	}
	if n.Split != nil {
		names = append(names, n.Split.Col)
	}
	return names
}

// idKind refuses columns that cannot be ids.
func idKind(c table.Column, t *table.Table, at place) error {
	if c.Kind == table.Text || c.Kind == table.Whole {
		return nil
	}
	return at.wrong(fmt.Sprintf("%s, which are %s in %s", c.Name, c.String(), t.Pattern), "whole numbers or text",
		"name the column of ids, or save them as text")
}

// own is the table of an entry: its own files, or the type's.
func (n *nodePlan) own(s *Source, col string, at place) (*table.Table, error) {
	if len(s.Files) > 0 {
		if col == table.All {
			col = ""
		}
		return n.once(s, col)
	}
	if n.table == nil {
		return nil, at.wrong("a column of a type without files", "files", "add files to the type, or to this entry")
	}
	return n.table, nil
}

// once opens a table that several columns are of once.
func (n *nodePlan) once(s *Source, col string) (t *table.Table, err error) {
	key := strings.Join(append(slices.Clone(s.Files), s.Format, s.Header), "\x00")
	if t = n.opened[key]; t != nil && (col == "" || t.Find(col) != nil) {
		return t, nil
	}
	if t, err = s.open(col); err != nil {
		return nil, err
	}
	if n.opened == nil {
		n.opened = map[string]*table.Table{}
	}
	n.opened[key] = t
	return t, nil
}

func (n *nodePlan) openFeature(f *Feature) error {
	t, err := n.own(&f.Table, f.Col, f.at)
	if err != nil {
		return err
	}
	var p *featurePlan
	if n.like != nil {
		p, err = f.follow(t, n.like.Features)
	} else {
		p, err = f.plan(t)
	}
	if err != nil {
		return err
	}
	n.features = append(n.features, *p)
	return nil
}

// follow plans a column that becomes what a preparation says.
func (f *Feature) follow(t *table.Table, known []graph.PrepColumn) (*featurePlan, error) {
	c, err := column(t, f.Col, f.at)
	if err != nil {
		return nil, err
	}
	like := graph.Named(known, c.Name)
	if like == nil {
		return nil, f.at.wrong("the feature "+c.Name, "one that the preparation has", "leave it out")
	}
	g := *f
	g.OneHot, g.Standardize, g.Missing = like.Words != nil, like.Mean != nil, ""
	if like.Fill != nil {
		g.Missing = "fill"
	}
	p := &featurePlan{Feature: &g, table: t, col: c, like: like}
	is := max(c.Width, 1)
	switch wide := c.Kind == table.Vector; {
	case g.OneHot && wide, !g.OneHot && c.Kind != table.Text && (wide || like.Width > 1) && is != like.Width:
		return nil, f.at.wrong(fmt.Sprintf("%s, %s in %s", c.Name, c.String(), t.Pattern),
			event.Tally(like.Width, "number")+" of it, as when the preparation was made", "write it as it was then")
	case !g.OneHot && c.Kind == table.Text: // cells are numbers, or missing all of them
		if p.col.Kind = table.Real; like.Width > 1 {
			p.col.Kind, p.col.Width = table.Vector, like.Width
		}
	}
	return p, nil
}

// plan checks a column of features.
func (f *Feature) plan(t *table.Table) (*featurePlan, error) {
	c, err := column(t, f.Col, f.at)
	if err != nil {
		return nil, err
	}
	if f.Vague && c.Kind == table.Text {
		words := *f
		words.OneHot, words.Standardize, f = true, false, &words
	}
	switch {
	case c.Kind == table.Time:
		return nil, f.at.wrong(fmt.Sprintf("%s, a column of times in %s", c.Name, t.Pattern),
			"numbers, vectors, or words with one_hot",
			"save it as a number, such as the year, or leave it out")
	case f.OneHot && c.Kind == table.Vector:
		return nil, f.at.wrong(fmt.Sprintf("one_hot of %s, a column of vectors", c.Name), "a column of words or of numbers",
			"remove one_hot")
	case c.Kind == table.Text && !f.OneHot:
		return nil, f.at.wrong(fmt.Sprintf("%s, a column of text in %s", c.Name, t.Pattern),
			"numbers, vectors, or words with one_hot",
			fmt.Sprintf("write {col: %s, one_hot: true}, or leave it out", c.Name))
	}
	return &featurePlan{Feature: f, table: t, col: c}, nil
}

func (n *nodePlan) openLabel() error {
	if n.Label == nil {
		return nil
	}
	t, err := n.own(&n.Label.Table, n.Label.Col, n.Label.at)
	if err != nil {
		return err
	}
	c, err := column(t, n.Label.Col, n.Label.at)
	if err != nil {
		return err
	}
	if c.Kind == table.Vector || c.Kind == table.Time {
		return n.Label.at.wrong(fmt.Sprintf("%s, which are %s in %s", c.Name, c.String(), t.Pattern),
			"a class or a number per vertex", "name another column")
	}
	n.Label.Col, n.label = c.Name, t
	return nil
}

func (n *nodePlan) openSplit() error {
	s := n.Split
	if s == nil {
		return nil
	}
	if n.Label == nil {
		return s.at.wrong("a split of a type without a label", "a label, which is learnt from the training vertices",
			"add label: COLUMN, or remove split")
	}
	if s.Time != nil {
		return nil
	}
	if s.masked() {
		return n.openMasks()
	}
	if s.Col != "" {
		if n.table == nil {
			return s.at.wrong("a column of a type without files", "files", "add files to the type")
		}
		c, err := column(n.table, s.Col, s.at)
		if err == nil && (c.Kind == table.Vector || c.Kind == table.Time || c.Kind == table.Real) {
			err = s.at.wrong(fmt.Sprintf("%s, which are %s", c.Name, c.String()), "train, val and test, or 0, 1 and 2",
				"name the column of splits")
		}
		return err
	}
	for i, path := range s.Files {
		if path == "" {
			continue
		}
		t, err := table.Open(table.Options{Header: "no"}, path)
		if err != nil {
			return err
		}
		if len(t.Columns) != 1 {
			return s.at.wrong(fmt.Sprintf("%s in %s", event.Tally(len(t.Columns), "column"), path), "one, of ids",
				"write one id per line")
		}
		n.lists[i] = t
	}
	return nil
}

func (e *edgePlan) open() (err error) {
	if e.table, err = e.Table.open(e.named()...); err != nil {
		return err
	}
	for i, name := range []string{e.Src, e.Dst} {
		at := e.at.in([]string{"src", "dst"}[i])
		c, err := column(e.table, name, at)
		if err != nil {
			return err
		}
		if err := idKind(c, e.table, at); err != nil {
			return err
		}
	}
	if e.Untyped == nil {
		return nil
	}
	return e.openUntyped()
}

// named are the columns that the schema names.
func (e *edgePlan) named() []string {
	names := []string{e.Src, e.Dst, e.Graph}
	if u := e.Untyped; u != nil {
		names = append(names, u.Weight, u.Time)
		for _, f := range u.Features {
			names = append(names, f.Col)
		}
	}
	return names
}

// openUntyped checks weight, time and features.
func (e *edgePlan) openUntyped() error {
	u := e.Untyped
	if u.Weight != "" {
		c, err := column(e.table, u.Weight, e.at.in("weight"))
		if err == nil && c.Kind != table.Whole && c.Kind != table.Real {
			err = e.at.in("weight").wrong(fmt.Sprintf("%s, which are %s in %s", c.Name, c.String(), e.table.Pattern),
				"a number per edge", "name another column")
		}
		if err != nil {
			return err
		}
	}
	if u.Time != "" {
		c, err := column(e.table, u.Time, e.at.in("time"))
		if err != nil {
			return err
		}
		form := ""
		if e.like != nil && e.like.Time != nil {
			form = e.like.Time.Form
		}
		if e.clock, err = table.ClockOf(e.table, &c, form); err != nil {
			return err
		}
	}
	for i := range u.Features {
		f := &u.Features[i]
		var p *featurePlan
		var err error
		if e.like != nil {
			p, err = f.follow(e.table, e.like.Features)
		} else {
			p, err = f.plan(e.table)
		}
		if err != nil {
			return err
		}
		e.features = append(e.features, *p)
	}
	if u.Weight != "" && u.Repeats == graph.Count {
		return e.at.in("repeats").wrong("count beside a weight", "count alone: it makes the weights",
			"leave weight out, or take sum or mean")
	}
	return nil
}

// repeats is what repeated edges become. Each stays an edge of its own where it has a time or features, weights are
// added up, and else one stays.
func (u *UntypedEdge) repeats() graph.Repeats {
	switch {
	case u.Repeats != "":
		return u.Repeats
	case u.Time != "" || len(u.Features) > 0:
		return graph.Keep
	case u.Weight != "":
		return graph.Sum
	}
	return graph.First
}

// graph is the schema of the dataset; order is, for each of its relations, the number it had: relation i of the plan
// has number 2i, its reverse 2i+1.
func (p *Plan) graph() (g *graph.Schema, number map[int]int) {
	g, number = &graph.Schema{}, map[int]int{}
	var given []int
	for i := range p.nodes {
		g.Types = append(g.Types, graph.VertexType{Name: p.nodes[i].Name})
	}
	for i, e := range p.edges {
		src, dst := g.Type(e.Source), g.Type(e.Target)
		g.Relations = append(g.Relations, graph.Relation{Source: src, Name: e.Name, Target: dst, Reverse: e.Reverse})
		given = append(given, 2*i)
		if e.Reverse != "" {
			g.Relations = append(g.Relations, graph.Relation{Source: dst, Name: e.Reverse, Target: src,
				Reverse: e.Name})
			given = append(given, 2*i+1)
		}
	}
	for to, old := range g.SortRelations() {
		number[given[old]] = to
	}
	return g, number
}
