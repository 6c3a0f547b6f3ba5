package spec

import (
	"fmt"
	"slices"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
)

// typedConfig are the types of a graph as its model sees them; nil: it has none.
func (s *Spec) typedConfig(data *graph.Meta) *nn.TypedConfig {
	if data.Schema == nil || !nn.IsTyped(s.Model.Name) {
		return nil
	}
	c := nn.TypedOf(data.Schema)
	c.Bases, c.Blocks = s.Model.Bases, s.Model.Blocks
	if s.learnsRelations() {
		c.Scored, _ = s.scored(data.Schema) // checked by CheckTypes
	} else if t := data.Schema.Type(s.Target); t >= 0 {
		c.Outputs = []int{t}
	}
	return c
}

// checkRelationWeights refuses bases beside blocks, and blocks that do not divide the width.
func (m *Model) checkRelationWeights() error {
	switch {
	case m.Bases > 0 && m.Blocks > 0:
		return Mistake("--bases", fmt.Sprintf("%d beside --blocks %d", m.Bases, m.Blocks), "one of the two",
			"leave out one of them")
	case m.Blocks > 0 && m.Hidden%m.Blocks != 0:
		return Mistake("--blocks", fmt.Sprint(m.Blocks), fmt.Sprintf("a divisor of --hidden %d", m.Hidden), "")
	}
	return nil
}

// typedEffects are settings that only models of typed graphs have, or that they do not have.
func (s *Spec) typedEffects() []effect {
	m, rgcn, typed := &s.Model, s.Model.Name == "rgcn", nn.IsTyped(s.Model.Name)
	const relations = "only --model rgcn makes the weights of relations of fewer numbers"
	no := func(flag string, given bool, why string) effect { return effect{flag, given && typed, false, why} }
	return []effect{
		{"--bases", m.Bases > 0, rgcn, relations},
		{"--blocks", m.Blocks > 0, rgcn, relations},
		no("--norm", m.Norm == "batch" || m.Norm == "layer", m.Name+" does not normalize"),
		no("--input-dropout", m.InputDropout == On, m.Name+" encodes features by type, and drops none of them"),
		no("--cache-first", s.Machine.CacheFirst == "on", m.Name+" encodes features first, so that its sums change"),
		no("--inductive", s.Training.Inductive, "the subgraph of the training vertices has no other types"),
		no("--learn-embeddings", s.Embeddings.Dim > 0, m.Name+" learns rows of types without features by itself"),
		no("--task", s.Task == nn.TaskUnsupervised,
			m.Name+" learns from the labels of a type or the edges of a relation"),
		no("--sampler", s.Batches.Sampler != "neighbour", "only neighbour draws by relation"),
		no("--weighted", s.Batches.Weighted, "edges of typed graphs have no weights"),
	}
}

// TargetsOf are the types of a dataset that can be learnt: they have labels and training vertices.
func TargetsOf(m *graph.Meta) (list []string) {
	if m.Schema == nil {
		return nil
	}
	for k := range m.Schema.Types {
		t := &m.Schema.Types[k]
		if a := m.Arrays[fmt.Sprintf("train_%d.npy", k)]; t.Task != "" && len(a.Shape) > 0 && a.Shape[0] > 0 {
			list = append(list, t.Name)
		}
	}
	return list
}

// completeTarget chooses the target of a typed graph where only one type can be.
func (s *Spec) completeTarget(data dataset) {
	if s.Target == "" && len(data.targets) == 1 && !s.LearnsPairs() {
		s.Target = data.targets[0]
	}
}

// CheckTypes refuses a model or a target that the graph in dir is not for, and sets the target where there is only one
// to choose. targets are the types that can be learnt.
func (s *Spec) CheckTypes(dir string, schema *graph.Schema, targets []string) error {
	model := "--model " + s.Model.Name
	switch typed := nn.IsTyped(s.Model.Name); {
	case schema == nil && typed:
		return &graph.InputError{File: dir, Field: model, Found: "a graph without types",
			Want: "a typed graph, of several types and relations",
			Fix:  "use --model gcn, sage or gat, or import the tables with starling import schema"}
	case schema == nil && s.Target != "":
		return &graph.InputError{File: dir, Field: "--target " + s.Target, Found: "a graph without types",
			Want: "a typed graph", Fix: "leave out --target"}
	case schema == nil:
		return nil
	case !typed:
		return &graph.InputError{File: dir, Field: model,
			Found: fmt.Sprintf("a typed graph (%s of vertices, %s)", event.Tally(len(schema.Types), "type"),
				event.Tally(len(schema.Relations), "relation")),
			Want: "a graph without types", Fix: "use --model " + orList(nn.TypedModels) +
				", or drop the types: starling import untyped " + dir + " --out DIR"}
	}
	if s.learnsRelations() {
		if _, err := s.scored(schema); err != nil {
			return graph.InFile(dir, err)
		}
		return nil
	}
	s.completeTarget(dataset{targets: targets})
	return s.checkTarget(dir, schema, targets)
}

func (s *Spec) checkTarget(dir string, schema *graph.Schema, targets []string) error {
	bad := func(found, fix string) error {
		return &graph.InputError{File: dir, Field: "--target", Found: found,
			Want: "a type with labels and training vertices", Fix: fix}
	}
	choose := "choose one of " + strings.Join(targets, ", ")
	switch {
	case len(targets) == 0:
		return bad("no type with labels and training vertices", "import the graph with label: and split: of a type")
	case s.Target == "":
		return bad(fmt.Sprintf("no name, and %d types with labels", len(targets)), choose)
	case slices.Contains(targets, s.Target):
		return nil
	case schema.Type(s.Target) < 0:
		return bad(fmt.Sprintf("%q, which is no type", s.Target), choose)
	}
	return bad(s.Target+", which has none of them", choose)
}
