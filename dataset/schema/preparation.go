package schema

import (
	"strings"

	"starling/dataset/table"
	"starling/graph"
)

// preparation is what was done to the tables, for those that come later.
func (b *build) preparation(ofEdges []graph.PrepColumn) *graph.Preparation {
	p := graph.NewPreparation()
	for _, d := range b.types {
		p.Types = append(p.Types, d.preparation())
	}
	if b.plan.Schema.Untyped {
		p.Edges = b.plan.edges[0].preparation(ofEdges)
	}
	return p
}

func (d *typeData) preparation() graph.PrepType {
	n := d.plan
	t := graph.PrepType{Name: n.Name, ID: n.ID, IDKind: "number", Features: d.prepared, Time: timeOf(n.clock)}
	if d.ids.text {
		t.IDKind = "text"
	}
	if n.Split != nil {
		t.Split = n.Split.Col
	}
	if d.labels != nil {
		t.Label = &graph.PrepLabel{Column: n.Label.Col, Task: d.labels.Kind(), Classes: d.labels.Names, Count: d.labels.Classes}
	} else if n.like != nil {
		t.Label = n.like.Label
	}
	if n.table != nil {
		t.Dropped = dropped(n.table, func(c *table.Column) string { return n.fate(n.table, c) })
	}
	return t
}

func timeOf(k *table.Clock) *graph.PrepTime {
	if k == nil {
		return nil
	}
	return &graph.PrepTime{Column: k.Column, Dates: k.Dates, Form: k.Date.Form}
}

func (e *edgePlan) preparation(features []graph.PrepColumn) *graph.PrepEdges {
	u := e.Untyped
	p := &graph.PrepEdges{Source: e.Src, Target: e.Dst, Weight: u.Weight, Time: timeOf(e.clock), Features: features,
		Repeats: u.repeats(), Symmetrize: u.Symmetrize, SelfLoops: u.SelfLoops, Negative: u.Negative}
	p.Dropped = dropped(e.table, e.fate)
	return p
}

// mostDropped bounds the names of columns that are kept though nothing becomes of them.
const mostDropped = 1000

// dropped are the columns that nothing becomes of.
func dropped(t *table.Table, fate func(c *table.Column) string) (names []string) {
	for i := range t.Columns {
		if len(names) < mostDropped && strings.HasPrefix(fate(&t.Columns[i]), "dropped") {
			names = append(names, t.Columns[i].Name)
		}
	}
	return names
}
