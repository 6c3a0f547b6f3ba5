package spec

import (
	"fmt"
	"slices"
	"strings"

	"starling/graph"
)

// Fanout is the text of --fanout: numbers for all relations, and then those of single relations of a typed graph, as
// "15,10; writes=5,2". The flag may be given once for all, and once for each relation.
type Fanout string

func (f Fanout) parts() []string {
	list := strings.Split(string(f), ";")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// all are the numbers for all relations.
func (f Fanout) all() string {
	if first := f.parts()[0]; !strings.Contains(first, "=") {
		return first
	}
	return "auto"
}

// relations are the parts of single relations.
func (f Fanout) relations() []string {
	return slices.DeleteFunc(f.parts(), func(part string) bool { return !strings.Contains(part, "=") })
}

// numbers are those that say how many layers there are: for all relations, or for one.
func (f Fanout) numbers() string {
	if own := f.relations(); f.all() == "auto" && len(own) > 0 {
		_, numbers := cutRelation(own[0])
		return numbers
	}
	return f.all()
}

// cutRelation is the relation and the numbers of a part. A relation's name may have a = in it, numbers have none.
func cutRelation(part string) (relation, numbers string) {
	at := strings.LastIndex(part, "=")
	return strings.TrimSpace(part[:at]), strings.TrimSpace(part[at+1:])
}

func (f *Fanout) String() string { return string(*f) }

// Type is what a command's help calls the value.
func (f *Fanout) Type() string { return "string" }

// Set takes the numbers for all relations, or adds those of one; a text of several parts replaces all.
func (f *Fanout) Set(text string) error {
	switch own := f.relations(); {
	case strings.Contains(text, ";"):
		*f = Fanout(text)
	case strings.Contains(text, "="):
		*f = joinFanout(f.all(), append(own, text))
	default:
		*f = joinFanout(text, own)
	}
	return nil
}

func joinFanout(all string, own []string) Fanout {
	return Fanout(strings.Join(append([]string{all}, own...), "; "))
}

// relationFanouts are by hop and relation, 0 where a relation has the numbers of all; nil: all have. Without a schema,
// only the numbers are checked.
func (s *Spec) relationFanouts(schema *graph.Schema) (out [][]int, err error) {
	own := s.Batches.Fanout.relations()
	if len(own) == 0 {
		return nil, nil
	}
	known := schema != nil && schema != &unknownSchema
	for _, part := range own {
		name, numbers := cutRelation(part)
		list, err := s.layerFanouts(numbers)
		if err != nil {
			return nil, err
		}
		if !known {
			continue
		}
		of := relationsNamed(schema, name)
		if len(of) == 0 {
			return nil, noRelation(schema, name)
		}
		for hop, n := range list {
			if hop == len(out) {
				out = append(out, make([]int, len(schema.Relations)))
			}
			for _, r := range of {
				out[hop][r] = n
			}
		}
	}
	return out, nil
}

// relationsNamed are the relations of a name, or of source, name and target.
func relationsNamed(s *graph.Schema, name string) (list []int) {
	for r := range s.Relations {
		if s.Relations[r].Name == name || s.RelationName(r) == name {
			list = append(list, r)
		}
	}
	return list
}

func noRelation(s *graph.Schema, name string) error {
	var names []string
	for r := range s.Relations {
		if !slices.Contains(names, s.Relations[r].Name) {
			names = append(names, s.Relations[r].Name)
		}
	}
	fix := ""
	if len(names) > 20 {
		names, fix = names[:20], "starling info lists all of them"
	}
	return Mistake("--fanout", fmt.Sprintf("%q, which is no relation of the graph", name),
		"one of "+strings.Join(names, ", "), fix)
}
