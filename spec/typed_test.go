package spec

import (
	"testing"

	"starling/graph"
	"starling/nn"
)

var shop = graph.Schema{Types: []graph.VertexType{{Name: "user"}, {Name: "item", First: 0}},
	Relations: []graph.Relation{{Source: 0, Name: "buys", Target: 1}}}

// TestTypedModelsHaveDefaults: a run that names a typed model alone is complete, and its settings make sense.
func TestTypedModelsHaveDefaults(t *testing.T) {
	for _, model := range nn.TypedModels {
		for _, mode := range []string{"full", "mini"} {
			s := Default()
			s.Model.Name, s.Mode = model, mode
			s.complete(dataset{schema: &shop, targets: []string{"user"}})
			opt, err := s.Options(&graph.Meta{Classes: 2, Schema: &shop})
			if err != nil || s.Validate() != nil || s.Target != "user" || opt.Model.Typed == nil || opt.Model.In != 0 {
				t.Errorf("%s, %s: %v, %v, %+v", model, mode, err, s.Validate(), opt.Model)
			}
		}
	}
}

// TestTypedModelsRefuseWhatTheyDoNotHave: no setting is left without effect.
func TestTypedModelsRefuseWhatTheyDoNotHave(t *testing.T) {
	for want, set := range map[string]func(s *Spec){
		"--norm":             func(s *Spec) { s.Model.Norm = "layer" },
		"--heads":            func(s *Spec) { s.Model.Heads = 2 },
		"--input-dropout":    func(s *Spec) { s.Model.InputDropout = On },
		"--cache-first":      func(s *Spec) { s.Machine.CacheFirst = "on" },
		"--inductive":        func(s *Spec) { s.Training.Inductive = true },
		"--task":             func(s *Spec) { s.Task = "link" },
		"--aggregator":       func(s *Spec) { s.Model.Aggregator = "gcn" },
		"--sampler":          func(s *Spec) { s.Mode, s.Batches.Sampler = "mini", "ladies" },
		"--learn-embeddings": func(s *Spec) { s.Mode, s.Embeddings.Dim = "mini", 8 },
		"one of the two":     func(s *Spec) { s.Model.Bases, s.Model.Blocks = 2, 2 },
		"a divisor":          func(s *Spec) { s.Model.Blocks = 3 },
	} {
		s := Default()
		s.Model.Name = "rgcn"
		set(&s)
		if err := s.Validate(); !isMistake(err, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s := Default()
	s.Model.Name, s.Model.Bases = "rgat", 2
	if err := s.Validate(); !isMistake(err, "only --model rgcn") {
		t.Error(err)
	}
}

// TestModelsAndTargetsOfAGraph: a model fits a graph, or the message names what does.
func TestModelsAndTargetsOfAGraph(t *testing.T) {
	for _, c := range []struct {
		model, target string
		schema        *graph.Schema
		targets       []string
		want          string
	}{
		{"gcn", "", &shop, []string{"user"}, "use --model rgcn, hsage or rgat"},
		{"rgcn", "", nil, nil, "a graph without types"},
		{"gcn", "user", nil, nil, "leave out --target"},
		{"rgcn", "", &shop, []string{"user", "item"}, "choose one of user, item"},
		{"rgcn", "", &shop, nil, "label:"},
		{"rgcn", "item", &shop, []string{"user"}, "choose one of user"},
		{"rgcn", "shop", &shop, []string{"user"}, "which is no type"},
		{"rgcn", "user", &shop, []string{"user"}, ""},
		{"gcn", "", nil, nil, ""},
	} {
		s := Default()
		s.Model.Name, s.Target = c.model, c.target
		err := s.CheckTypes("DIR", c.schema, c.targets)
		if c.want == "" && err != nil || c.want != "" && !isMistake(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
