package inspect

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"starling/event"
	"starling/graph"
)

// TypeInfo is what can be said about a type of vertices.
type TypeInfo struct {
	Name         string   `json:"name"`
	Vertices     int64    `json:"vertices"`
	Isolated     int64    `json:"isolated"` // vertices without in-edges
	Features     int      `json:"features"` // 0: none, rows are learnt
	FeatureKind  string   `json:"feature_kind,omitempty"`
	Standardized bool     `json:"standardized,omitempty"`
	Task         string   `json:"task,omitempty"`
	Classes      int      `json:"classes,omitempty"`
	ClassNames   []string `json:"class_names,omitempty"`
	ClassSizes   []int64  `json:"class_sizes,omitempty"`
	Unlabelled   int64    `json:"unlabelled,omitempty"` // of a type that has labels
	Train        int      `json:"train"`
	Val          int      `json:"val"`
	Test         int      `json:"test"`
}

// RelationInfo is what can be said about a relation.
type RelationInfo struct {
	Source   string  `json:"source"`
	Name     string  `json:"name"`
	Target   string  `json:"target"`
	Reverse  string  `json:"reverse,omitempty"`
	Edges    int64   `json:"edges"`
	InDegree float64 `json:"in_degree"` // mean over the target type's vertices
	Isolated int64   `json:"isolated"`  // vertices of the target type without an edge of this relation
}

// typed looks at the types and relations of a graph.
func (i *Info) typed(d *graph.Dataset) {
	s := d.Meta.Schema
	for k := range s.Types {
		i.Types = append(i.Types, typeInfo(d, k))
	}
	for r := range s.Relations {
		rel := &s.Relations[r]
		i.Relations = append(i.Relations, RelationInfo{Source: s.Types[rel.Source].Name, Name: rel.Name,
			Target: s.Types[rel.Target].Name, Reverse: rel.Reverse, Isolated: s.Types[rel.Target].Count})
	}
	g := d.Graph
	for k := range s.Types {
		for v := s.Types[k].First; v < s.Types[k].End(); v++ {
			if g.Indptr[v] == g.Indptr[v+1] {
				i.Types[k].Isolated++
			}
			i.countRow(g.Relations[g.Indptr[v]:g.Indptr[v+1]])
		}
	}
	for r := range i.Relations {
		n := s.Types[s.Relations[r].Target].Count
		i.Relations[r].InDegree = float64(i.Relations[r].Edges) / float64(max(n, 1))
	}
	i.warnOfTypes(s)
}

// countRow counts the edges of a vertex, which are in the order of relations.
func (i *Info) countRow(row []uint16) {
	last := -1
	for _, r := range row {
		i.Relations[r].Edges++
		if int(r) != last {
			i.Relations[r].Isolated--
			last = int(r)
		}
	}
}

func typeInfo(d *graph.Dataset, k int) TypeInfo {
	t := &d.Meta.Schema.Types[k]
	labels, splits := d.TypeLabels(k)
	out := TypeInfo{Name: t.Name, Vertices: t.Count, Task: t.Task, Classes: t.Classes, ClassNames: t.ClassNames,
		Train: len(splits.Train), Val: len(splits.Val), Test: len(splits.Test)}
	if t.Features != nil {
		out.Features, out.FeatureKind = t.Features.Dim, string(t.Features.Kind)
		out.Standardized = t.Features.Scale != nil
	}
	if labels == nil {
		return out
	}
	if labels.Class != nil {
		out.ClassSizes = make([]int64, labels.Classes)
	}
	for v := range labels.Len() {
		switch {
		case !labels.Has(v):
			out.Unlabelled++
		case labels.Class != nil:
			out.ClassSizes[labels.Class[v]]++
		}
	}
	return out
}

// warnOfTypes tells of types that learn nothing from others, and of rows that are learnt.
func (i *Info) warnOfTypes(s *graph.Schema) {
	var learnt []string
	var rows int64
	for k := range s.Types {
		t := &s.Types[k]
		if t.Features == nil {
			learnt, rows = append(learnt, t.Name), rows+t.Count
		}
		if len(s.Into(k)) > 0 {
			continue
		}
		offer := "add a relation to it"
		if from := s.From(k); len(from) > 0 {
			offer = fmt.Sprintf("add reverse: NAME to %q in the schema, or import with --symmetrize",
				s.RelationName(from[0]))
		}
		i.warn("type %s receives no messages, as no relation leads to it: %s", t.Name, offer)
	}
	if learnt != nil {
		i.warn("no features of %s: a row per vertex is learnt, %s", strings.Join(learnt, ", "), event.Counted(rows,
			"row"))
	}
}

// typeRows are the types as a table, the first row of which is its head.
func (i *Info) typeRows() [][]string {
	types := [][]string{{"type", "vertices", "no in-edges", "features", "labels", "unlabelled", "train", "validation",
		"test"}}
	for k := range i.Types {
		t := &i.Types[k]
		types = append(types, []string{t.Name, event.Count(t.Vertices), event.Count(t.Isolated), t.features(),
			t.labels(),
			known(t.Task, t.Unlabelled), known(t.Task, int64(t.Train)), known(t.Task, int64(t.Val)),
			known(t.Task, int64(t.Test))})
	}
	return types
}

// relationRows are the relations as a table.
func (i *Info) relationRows() [][]string {
	relations := [][]string{{"relation", "edges", "in-degree", "targets without", "reverse"}}
	for k := range i.Relations {
		r := &i.Relations[k]
		relations = append(relations, []string{r.Source + " " + r.Name + " " + r.Target, event.Count(r.Edges),
			fmt.Sprintf("%.2f", r.InDegree), event.Count(r.Isolated), r.Reverse})
	}
	return relations
}

// showTyped prints the schema as two tables.
func (i *Info) showTyped(line func(name, format string, args ...any)) {
	showTable(line, "types", i.typeRows())
	showTable(line, "relations", i.relationRows())
	for k := range i.Types {
		if t := &i.Types[k]; t.ClassSizes != nil {
			balance := Info{ClassSizes: t.ClassSizes, ClassNames: t.ClassNames}
			line("balance", "%s: %s", t.Name, balance.balance())
		}
	}
}

func (t *TypeInfo) features() string {
	if t.Features == 0 {
		return "none"
	}
	text := fmt.Sprintf("%d %s", t.Features, t.FeatureKind)
	if t.Standardized {
		text += ", standardized"
	}
	return text
}

func (t *TypeInfo) labels() string {
	switch t.Task {
	case "":
		return "none"
	case graph.Regression:
		return event.Counted(t.Classes, "number")
	case graph.MultiLabel:
		return event.Counted(t.Classes, "class") + ", several"
	}
	return event.Counted(t.Classes, "class")
}

// known is a number that only types with labels have.
func known(task string, n int64) string {
	if task == "" {
		return ""
	}
	return event.Count(n)
}

// numbers tells whether a column has nothing but numbers.
func numbers(rows [][]string, c int) bool {
	return !slices.ContainsFunc(rows, func(row []string) bool { return strings.Trim(row[c], "0123456789,.") != "" })
}

// showTable prints rows, the first of which is the head; numbers are to the right.
func showTable(line func(name, format string, args ...any), name string, rows [][]string) {
	wide := make([]int, len(rows[0]))
	for _, row := range rows {
		for c, cell := range row {
			wide[c] = max(wide[c], utf8.RuneCountInString(cell))
		}
	}
	for r, row := range rows {
		var b strings.Builder
		for c, cell := range row {
			pad := strings.Repeat(" ", wide[c]-utf8.RuneCountInString(cell))
			if numbers(rows[1:], c) {
				b.WriteString("  " + pad + cell)
			} else {
				b.WriteString("  " + cell + pad)
			}
		}
		if r > 0 {
			name = ""
		}
		line(name, "%s", strings.TrimRight(b.String()[2:], " "))
	}
}
