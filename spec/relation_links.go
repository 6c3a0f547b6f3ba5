package spec

import (
	"fmt"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
)

// Link prediction on a typed graph (--task link with a typed model): --target names relations instead of a type.

// learnsRelations reports whether the run learns to predict the edges of relations.
func (s *Spec) learnsRelations() bool { return s.Task == nn.TaskLink && nn.IsTyped(s.Model.Name) }

// LearnsRelations reports whether the run learns to predict the edges of relations of a typed graph.
func (s *Spec) LearnsRelations() bool { return s.learnsRelations() }

// scored are the relations that --target names: each as --fanout takes it, with a ; between them. A name that several
// relations have is all of them.
func (s *Spec) scored(schema *graph.Schema) (list []int, err error) {
	if schema == &unknownSchema {
		return []int{0}, nil
	}
	if list = relationsNamed(schema, s.Target); len(list) > 0 {
		return list, nil
	}
	for _, name := range strings.Split(s.Target, ";") {
		name = strings.TrimSpace(name)
		of := relationsNamed(schema, name)
		if len(of) == 0 {
			return nil, noTarget(schema, name)
		}
		for _, r := range of {
			if !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}

// noTarget refuses a target that is no relation.
func noTarget(s *graph.Schema, name string) error {
	var names []string
	for r := range s.Relations {
		names = append(names, fmt.Sprintf("%q", s.RelationName(r)))
	}
	more := ""
	if len(names) > 20 {
		names, more = names[:20], "; starling info lists all of them"
	}
	found := fmt.Sprintf("%q", name)
	switch {
	case name == "":
		found = "no name"
	case s.Type(name) >= 0:
		found += ", a type of vertices"
	default:
		found += ", which is no relation of the graph"
	}
	return Mistake("--target", found, "the relation whose edges are predicted: one of "+strings.Join(names, ", "),
		fmt.Sprintf("for example --target %s%s", names[0], more))
}
