package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/dataset"
	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// Lines say what every column becomes.
func (p *Plan) Lines() []string {
	var b lines
	for _, n := range p.nodes {
		n.describe(&b)
	}
	for _, e := range p.edges {
		e.describe(&b)
	}
	for _, note := range p.Schema.Notes {
		b.add("note: %s", note)
	}
	return b.text
}

type lines struct{ text []string }

func (b *lines) add(format string, args ...any) {
	b.text = append(b.text, fmt.Sprintf(format, args...))
}

// fates lists the columns of a table in two aligned columns, with what becomes of each.
func (b *lines) fates(t *table.Table, fate func(c *table.Column) string) {
	wide, kinds := 0, 0
	for i := range t.Columns {
		wide, kinds = max(wide, min(len([]rune(t.Columns[i].Name)), 40)), max(kinds, len(t.Columns[i].String()))
	}
	const most = 60
	for i := range t.Columns[:min(len(t.Columns), most)] {
		c := &t.Columns[i]
		b.add("  %-*.40s  %-*s  %s", wide, c.Name, kinds, c.String(), fate(c))
	}
	if len(t.Columns) > most {
		b.add("  and %s more", event.Tally(len(t.Columns)-most, "column"))
	}
}

// size says what a table is: its files and rows.
func size(t *table.Table) string {
	text := t.Pattern
	if len(t.Files) > 1 {
		text += fmt.Sprintf(" (%s)", event.Tally(len(t.Files), "file"))
	}
	switch {
	case t.Rows >= 0:
		text += fmt.Sprintf(", %s", event.Tally(t.Rows, "row"))
	case t.About > 0:
		text += fmt.Sprintf(", about %s", event.Tally(t.About, "row"))
	}
	return text
}

func (n *nodePlan) describe(b *lines) {
	if n.Edges {
		b.add("vertices: the ids of the edges")
		return
	}
	if n.table == nil {
		b.add("%s: %s", cmp.Or(n.Name, "vertices"), event.Tally(n.Count, "vertex"))
	} else {
		b.add("%s: %s", cmp.Or(n.Name, "vertices"), size(n.table))
		b.fates(n.table, func(c *table.Column) string { return n.fate(n.table, c) })
	}
	var seen []*table.Table
	for i := range n.features {
		if t := n.features[i].table; t != n.table && !slices.Contains(seen, t) {
			seen = append(seen, t)
			b.add("  with %s", size(t))
			if n.features[i].col.Name == table.All {
				b.add("  %s  %s", event.Tally(len(t.Columns), "column"), n.features[i].fate())
				continue
			}
			b.fates(t, func(c *table.Column) string { return n.fate(t, c) })
		}
	}
	if n.label != nil && n.label != n.table && !slices.Contains(seen, n.label) {
		b.add("  with %s", size(n.label))
		b.fates(n.label, func(c *table.Column) string { return n.fate(n.label, c) })
	}
	if s := n.Split; s != nil && s.Col == "" && !s.masked() {
		b.add("  split: %s", s.describe())
	}
	for i, m := range n.masks {
		if m.table != nil && m.table != n.table {
			b.add("  split: %s where it is 1: %s", splitNames[i], size(m.table))
		}
	}
	switch {
	case n.Label == nil || n.Split != nil:
	case n.like != nil:
		b.add("  split: none, as --like asks for what is to be predicted")
	default:
		b.add("  split: drawn, %g to train on, %g to validate, %g to test", dataset.UsualSplit.Train,
			dataset.UsualSplit.Val, dataset.UsualSplit.Test)
	}
	if len(n.features) == 0 && n.Name != "" {
		b.add("  no features: a row per vertex is learnt")
	}
}

// describe says how vertices are divided.
func (s *Split) describe() string {
	if s.Time != nil {
		return fmt.Sprintf("by time, the earliest %g to train on, up to %g to validate, the rest to test", s.Time.Train,
			s.Time.Val)
	}
	if s.Files[0] != "" {
		return "ids in " + strings.Join(slices.DeleteFunc(slices.Clone(s.Files[:]),
			func(f string) bool { return f == "" }), ", ")
	}
	return fmt.Sprintf("drawn, %g to train on, %g to validate, %g to test", s.Train, s.Val, s.Test)
}

// fate is what becomes of a column.
func (n *nodePlan) fate(t *table.Table, c *table.Column) string {
	var all []string
	if c.Name == "" && n.why[""] != "" {
		return "dropped: " + n.why[""]
	}
	if t == n.table && c.Name == n.ID {
		all = append(all, "id")
	}
	for i := range n.features {
		if f := &n.features[i]; f.table == t && f.col.Name == c.Name {
			all = append(all, f.fate())
		}
	}
	if n.Label != nil && n.label == t && n.Label.Col == c.Name {
		all = append(all, n.Label.fate())
	}
	if n.Split != nil && t == n.table && n.Split.Col == c.Name {
		all = append(all, "split")
	}
	for i, m := range n.masks {
		if m.table == t && m.col == c.Name {
			all = append(all, "split: "+splitNames[i])
		}
	}
	if t == n.table && n.Graph == c.Name {
		all = append(all, "which graph: one")
	}
	if n.clock != nil && t == n.table && n.Time == c.Name {
		all = append(all, fmt.Sprintf("time (%s)", n.clock))
	}
	if len(all) == 0 && n.why[c.Name] != "" {
		return "dropped: " + n.why[c.Name]
	}
	if len(all) == 0 {
		return "dropped: the schema does not name it"
	}
	return strings.Join(all, ", ")
}

func (l *Label) fate() string {
	switch l.Task {
	case "classify":
		return "label (classes)"
	case "regression":
		return "label (numbers to predict)"
	}
	return "label (classes, or numbers to predict if they have fractions)"
}

func (f *featurePlan) fate() string {
	text := "1 feature"
	switch {
	case f.OneHot:
		text = "features, one per word (0 or 1)"
	case f.col.Kind == table.Vector && f.col.Width > 0:
		text = event.Tally(f.col.Width, "feature")
	case f.col.Kind == table.Vector:
		text = "features"
	}
	if f.Standardize {
		text += " (standardized)"
	}
	if !f.OneHot && (f.Missing == "zero" || f.Missing == "mean") {
		text += ", missing: " + f.Missing
	}
	if f.like != nil {
		text += ", as prepared"
	}
	return text
}

func (e *edgePlan) describe(b *lines) {
	if e.Untyped != nil {
		e.describeUntyped(b)
		return
	}
	b.add("%s %s %s: %s", e.Source, e.Name, e.Target, size(e.table))
	b.fates(e.table, func(c *table.Column) string {
		var all []string
		if c.Name == e.Src {
			all = append(all, "source, an id of "+e.Source)
		}
		if c.Name == e.Dst {
			all = append(all, "target, an id of "+e.Target)
		}
		if c.Name == e.Graph {
			all = append(all, "which graph: one")
		}
		if len(all) == 0 {
			return "dropped: edges of typed graphs have no features"
		}
		return strings.Join(all, ", ")
	})
	if e.Reverse != "" {
		b.add("  and reversed: %s %s %s", e.Target, e.Reverse, e.Source)
	}
}

// repeatsInWords say what becomes of edges that are listed more than once.
var repeatsInWords = map[graph.Repeats]string{
	graph.First: "the first stays",
	graph.Keep:  "all stay",
	graph.Sum:   "become one, with the sum of their numbers",
	graph.Mean:  "become one, with the mean of their numbers",
	graph.Count: "become one, whose weight says how many there were",
}

func (e *edgePlan) describeUntyped(b *lines) {
	u := e.Untyped
	b.add("edges: %s", size(e.table))
	b.fates(e.table, e.fate)
	text := fmt.Sprintf("  repeated edges: %s (repeats: %s)", repeatsInWords[u.repeats()], u.repeats())
	if u.Time != "" && u.repeats().Joins() {
		text += ", and the latest of their times"
	}
	b.add("%s", text)
	if u.Symmetrize {
		b.add("  and the reverse of every edge")
	}
	if !u.SelfLoops {
		b.add("  edges from a vertex to itself are left out")
	}
}

// fate is what becomes of a column of edges.
func (e *edgePlan) fate(c *table.Column) string {
	var all []string
	u := e.Untyped
	if c.Name == e.Src {
		all = append(all, "source")
	}
	if c.Name == e.Dst {
		all = append(all, "target")
	}
	if c.Name == e.Graph {
		all = append(all, "which graph: one")
	}
	if c.Name == u.Weight {
		all = append(all, "weight")
	}
	if c.Name == u.Time && e.clock != nil {
		all = append(all, fmt.Sprintf("time (%s)", e.clock))
	}
	for i := range e.features {
		if e.features[i].col.Name == c.Name {
			all = append(all, e.features[i].fate())
		}
	}
	switch {
	case len(all) > 0:
		return strings.Join(all, ", ")
	case u.why[c.Name] != "":
		return "dropped: " + u.why[c.Name]
	}
	return "dropped: the schema does not name it"
}
