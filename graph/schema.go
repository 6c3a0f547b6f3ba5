package graph

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"starling/event"
)

// MaxTypes bounds the types of vertices, and the relations, of one graph: a relation's number fits a uint16.
const MaxTypes = 1 << 16

// Schema names the types of vertices and edges of a typed graph.
//
// There is one id space: the vertices of a type are a range of ids, the types follow each other. An edge has a relation,
// which fixes the types of its ends. Relations are in ascending order of their targets' types, then of their sources',
// and the in-edges of a vertex are in the order of relations, then of sources: a relation's share of a row is a slice.
type Schema struct {
	Types     []VertexType `json:"types"`
	Relations []Relation   `json:"relations"`
}

// VertexType is one type of vertices.
type VertexType struct {
	Name     string       `json:"name"`
	First    int64        `json:"first"` // its first id
	Count    int64        `json:"count"`
	Features *FeatureMeta `json:"features,omitempty"` // nil: none
	// Task, Classes and ClassNames are the labels'; no Task: no labels.
	Task       string   `json:"task,omitempty"`
	Classes    int      `json:"classes,omitempty"`
	ClassNames []string `json:"class_names,omitempty"`
	// IDs is the checksum of the names that the vertices had before import: another dataset with the same has the same
	// vertices. Empty: they had none but their numbers.
	IDs string `json:"ids,omitempty"`
}

// End is the id after the type's last.
func (t *VertexType) End() int64 { return t.First + t.Count }

// Relation is one type of edges.
type Relation struct {
	Source  int    `json:"source"` // numbers of types
	Name    string `json:"name"`
	Target  int    `json:"target"`
	Reverse string `json:"reverse,omitempty"` // the relation that has the same edges turned round, if there is one
	Edges   int64  `json:"edges"`
}

// Type is the number of the type of that name, or -1.
func (s *Schema) Type(name string) int {
	return slices.IndexFunc(s.Types, func(t VertexType) bool { return t.Name == name })
}

// TypeOf is the number of the type of a vertex.
func (s *Schema) TypeOf(v uint32) int {
	i, _ := slices.BinarySearchFunc(s.Types, int64(v), func(t VertexType, v int64) int {
		switch {
		case t.End() <= v:
			return -1
		case t.First > v:
			return 1
		}
		return 0
	})
	return i
}

// Into lists the relations that lead to a type, in ascending order; From lists those that start at it.
func (s *Schema) Into(t int) []int {
	return s.relations(func(r *Relation) bool { return r.Target == t })
}
func (s *Schema) From(t int) []int {
	return s.relations(func(r *Relation) bool { return r.Source == t })
}

func (s *Schema) relations(is func(*Relation) bool) (list []int) {
	for r := range s.Relations {
		if is(&s.Relations[r]) {
			list = append(list, r)
		}
	}
	return list
}

// RelationName is source, name and target of a relation, as users write it.
func (s *Schema) RelationName(r int) string {
	rel := &s.Relations[r]
	return fmt.Sprintf("%s %s %s", s.Types[rel.Source].Name, rel.Name, s.Types[rel.Target].Name)
}

// ReverseOf is the relation that has the edges of r turned round, or -1.
func (s *Schema) ReverseOf(r int) int {
	rel := &s.Relations[r]
	return slices.IndexFunc(s.Relations, func(o Relation) bool {
		named := rel.Reverse != "" && o.Name == rel.Reverse || rel.Reverse == "" && o.Reverse == rel.Name
		return named && o.Source == rel.Target && o.Target == rel.Source
	})
}

// RelationOf is the number of the relation that users write as source, name and target, or by the name alone where one
// relation has it; -1: none.
func (s *Schema) RelationOf(text string) int {
	found := -1
	for r := range s.Relations {
		switch {
		case s.RelationName(r) == text:
			return r
		case s.Relations[r].Name == text && found == -1:
			found = r
		case s.Relations[r].Name == text:
			found = -2
		}
	}
	return max(found, -1)
}

// Run is consecutive rows of vertices of one type.
type Run struct{ Type, Lo, Hi int }

// Runs cuts a list of vertices where the type changes.
func (s *Schema) Runs(ids []uint32) (runs []Run) {
	for lo := 0; lo < len(ids); {
		t := s.TypeOf(ids[lo])
		first, end := s.Types[t].First, s.Types[t].End()
		hi := lo + 1
		for hi < len(ids) && int64(ids[hi]) >= first && int64(ids[hi]) < end {
			hi++
		}
		runs = append(runs, Run{t, lo, hi})
		lo = hi
	}
	return runs
}

// AllRuns are the runs of all vertices; types without any have none.
func (s *Schema) AllRuns() (runs []Run) {
	for t := range s.Types {
		if v := &s.Types[t]; v.Count > 0 {
			runs = append(runs, Run{t, int(v.First), int(v.End())})
		}
	}
	return runs
}

// Validate checks that types are ranges that cover n vertices, that names are told apart, and that relations are of
// types there are, in order.
func (s *Schema) Validate(n int64) error {
	if len(s.Types) < 1 || len(s.Types) > MaxTypes || len(s.Relations) > MaxTypes {
		return badMeta("schema", fmt.Sprintf("%s and %s", event.Tally(len(s.Types), "type"),
			event.Tally(len(s.Relations), "relation")),
			"1 to 65536 types, and no more relations")
	}
	if err := s.validateTypes(n); err != nil {
		return err
	}
	return s.validateRelations()
}

func (s *Schema) validateTypes(n int64) error {
	var at int64
	for i := range s.Types {
		t := &s.Types[i]
		field := fmt.Sprintf("schema.types[%d]", i)
		switch {
		case badTypeName(t.Name):
			return badMeta(field+".name", fmt.Sprintf("%.60q", t.Name), "a name without control characters")
		case s.Type(t.Name) != i:
			return badMeta(field+".name", fmt.Sprintf("%q a second time", t.Name), "a name of its own for every type")
		case t.First != at || t.Count < 0 || t.Count > n-at:
			return badMeta(field, fmt.Sprintf("vertices %d to %d", t.First, t.End()), fmt.Sprintf("a range from %d on, of at most %d", at, n-at))
		case t.Features != nil && (t.Features.Dim < 1 || t.Features.Dim > 1<<31-1):
			return badMeta(field+".features.dim", fmt.Sprint(t.Features.Dim), "1 to 2^31-1")
		case t.Features != nil && t.Features.Kind != Dense && t.Features.Kind != BFloat16:
			return badMeta(field+".features.kind", fmt.Sprintf("%q", t.Features.Kind), `"float32" or "bfloat16"`)
		}
		if err := t.Features.validate(); err != nil {
			return err
		}
		if err := validateTask(field+".", t.Task, t.Classes, t.ClassNames); err != nil {
			return err
		}
		at = t.End()
	}
	if at != n {
		return badMeta("schema.types", event.Tally(at, "vertex"), fmt.Sprintf("%d, as nodes says", n))
	}
	return nil
}

func (s *Schema) validateRelations() error {
	for i := range s.Relations {
		r := &s.Relations[i]
		field := fmt.Sprintf("schema.relations[%d]", i)
		switch {
		case badTypeName(r.Name):
			return badMeta(field+".name", fmt.Sprintf("%.60q", r.Name), "a name without control characters")
		case r.Source < 0 || r.Source >= len(s.Types) || r.Target < 0 || r.Target >= len(s.Types):
			return badMeta(field, fmt.Sprintf("types %d and %d", r.Source, r.Target), fmt.Sprintf("0 to %d", len(s.Types)-1))
		case i > 0 && compareRelations(&s.Relations[i-1], r) >= 0:
			return badMeta(field, "a relation before its place, or a second time", "relations by target, source and name")
		}
	}
	return nil
}

// compareRelations is the order of relations.
func compareRelations(a, b *Relation) int {
	switch {
	case a.Target != b.Target:
		return a.Target - b.Target
	case a.Source != b.Source:
		return a.Source - b.Source
	}
	return strings.Compare(a.Name, b.Name)
}

// SortRelations puts relations in their order and returns, for each, the number that it had.
func (s *Schema) SortRelations() (old []int) {
	old = make([]int, len(s.Relations))
	for i := range old {
		old[i] = i
	}
	before := slices.Clone(s.Relations)
	slices.SortStableFunc(old, func(a, b int) int { return compareRelations(&before[a], &before[b]) })
	for i, o := range old {
		s.Relations[i] = before[o]
	}
	return old
}

// Count is how many types there are; of none 0.
func (s *Schema) Count() int {
	if s == nil {
		return 0
	}
	return len(s.Types)
}

// IDSums are the checksums of the names of the vertices of each type; nil: there are no types.
func (s *Schema) IDSums() (list []string) {
	if s != nil {
		for k := range s.Types {
			list = append(list, s.Types[k].IDs)
		}
	}
	return list
}

// badTypeName reports whether a terminal could not show a name, or there is none.
func badTypeName(name string) bool {
	return name == "" || len(name) > 1<<10 || strings.ContainsFunc(name, unicode.IsControl)
}
