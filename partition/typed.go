package partition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/graph"
)

// What partitioning a typed graph adds: every vertex type is balanced by itself, and so are the training vertices of the
// target type, so that all workers have a share of each.

// typedModels are the models of typed graphs; the first is planned for where none is named.
var typedModels = []string{"rgcn", "hsage", "rgat", "hgt", "simplehgn"}

// typedBalance is what methods that look at constraints balance of a typed graph by default, beside their own.
var typedBalance = []string{"types:0.1", "train:0.1"}

// mostTypes is how many types have a constraint of their own; those with fewest vertices share one beyond that.
const mostTypes = 16

// setTarget makes the labels and splits of a typed graph those of a type; "": of the only type that has any.
func setTarget(d *graph.Dataset, name string) error {
	s := d.Meta.Schema
	if s == nil && name == "" {
		return nil
	}
	if s == nil {
		return badTarget(d, name, "a typed graph", "leave out the target")
	}
	var names []string
	for _, k := range d.Targets() {
		names = append(names, s.Types[k].Name)
	}
	choose := "choose one of " + strings.Join(names, ", ")
	switch {
	case name == "" && len(names) == 0: // only its structure is cut
		return nil
	case name == "" && len(names) > 1:
		return badTarget(d, fmt.Sprintf("no name, and %d types with labels", len(names)), "one of them", choose)
	case name == "":
		name = names[0]
	case !slices.Contains(names, name):
		return badTarget(d, fmt.Sprintf("%q", name), "a type with labels and training vertices", choose)
	}
	d.SetTarget(s.Type(name))
	return nil
}

func badTarget(d *graph.Dataset, found, want, fix string) error {
	return &graph.InputError{File: d.Dir, Field: "--target", Found: found, Want: want, Fix: fix}
}

// usualOfTypes is what a method balances of a typed graph beside its own. Those that place vertices without looking at
// what parts have are not asked to.
func (j *job) usualOfTypes(e entry) (list []string) {
	if !j.d.Typed() || slices.Contains([]string{"random", "hash", "chunk"}, e.name) {
		return nil
	}
	for _, item := range typedBalance {
		name, _, _ := strings.Cut(item, ":")
		if j.has(name) && !strings.Contains(e.balance, name) {
			list = append(list, item)
		}
	}
	return list
}

// expand is the constraint with its weights; one for each type where it is of all types.
func (c Constraint) expand(d *graph.Dataset) (list []Constraint, err error) {
	if c.Name != "types" {
		c.Weight, err = weights(c.Name, d)
		return []Constraint{c}, err
	}
	if !d.Typed() {
		return nil, &graph.InputError{File: d.Dir, Field: "balance", Found: c.Name, Want: "a typed graph", Fix: "leave it out"}
	}
	own, rest := largestTypes(d.Meta.Schema)
	for _, t := range own {
		c.Name, c.Weight = typeConstraint+t.Name, make([]uint32, d.Graph.Nodes())
		mark(c.Weight, t)
		list = append(list, c)
	}
	if len(rest) > 0 {
		c.Name, c.Weight = fmt.Sprintf("%d other types", len(rest)), make([]uint32, d.Graph.Nodes())
		for _, t := range rest {
			mark(c.Weight, t)
		}
		list = append(list, c)
	}
	return list, nil
}

// typeConstraint begins the name of the constraint of a type.
const typeConstraint = "type "

// asked is how the constraint is asked for.
func (c *Constraint) asked() string {
	if slices.Contains(ConstraintNames, c.Name) {
		return c.Name
	}
	return "types"
}

// largestTypes are the types that have vertices, in the schema's order: those with most by themselves, and the rest.
func largestTypes(s *graph.Schema) (own, rest []*graph.VertexType) {
	for k := range s.Types {
		if s.Types[k].Count > 0 {
			own = append(own, &s.Types[k])
		}
	}
	if len(own) <= mostTypes {
		return own, nil
	}
	slices.SortStableFunc(own, func(a, b *graph.VertexType) int { return cmp.Compare(b.Count, a.Count) })
	return own[:mostTypes-1], own[mostTypes-1:]
}

func mark(weight []uint32, t *graph.VertexType) {
	for v := t.First; v < t.End(); v++ {
		weight[v] = 1
	}
}

// Constraints are the names in Balance, in order.
func (r *Report) Constraints() []string { return r.constraints }

func (m *Model) typed() bool { return slices.Contains(typedModels, m.Name) }

// fitTypes fills in the sizes of a typed dataset.
func (m *Model) fitTypes(d *graph.Dataset) error {
	s := d.Meta.Schema
	if (s != nil) != m.typed() {
		found, want := "a graph without types", "one that is not for typed graphs"
		if s != nil {
			found, want = "a typed graph", "one of "+strings.Join(typedModels, ", ")
		}
		return &graph.InputError{Field: "model", Found: fmt.Sprintf("%s for %s", m.Name, found), Want: want,
			Fix: "choose a model that is for this graph"}
	}
	if s == nil {
		return nil
	}
	m.Types, m.Relations, m.FeatureLen = len(s.Types), len(s.Relations), 0
	for _, f := range d.TypeFeatures {
		if f != nil {
			m.TypeWidths += f.Cols
			m.FeatureLen += featureLen(f) * f.Rows
		}
	}
	m.FeatureLen /= max(d.Graph.Nodes(), 1)
	return nil
}
