package spec

import (
	"reflect"
	"slices"
	"testing"

	"github.com/spf13/pflag"

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
		"--task":             func(s *Spec) { s.Task = "unsupervised" },
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

// TestTargetRelations: --target names relations as --fanout does, several with a ; between them.
func TestTargetRelations(t *testing.T) {
	schema := &graph.Schema{Types: []graph.VertexType{{Name: "user"}, {Name: "item"}}, Relations: []graph.Relation{
		{Source: 1, Name: "bought by", Target: 0}, {Source: 0, Name: "knows", Target: 0},
		{Source: 0, Name: "buys", Target: 1}}}
	s := Default()
	s.Task, s.Model.Name = "link", "rgcn"
	for target, want := range map[string][]int{"buys": {2}, "user buys item": {2},
		"buys; item bought by user": {0, 2}} {
		s.Target = target
		s.complete(dataset{})
		o, err := s.Options(&graph.Meta{Schema: schema})
		if err != nil || s.CheckTypes("shop", schema, nil) != nil || !slices.Equal(o.Pairs.Relations, want) ||
			!slices.Equal(o.Model.Typed.Scored, want) || o.Model.Typed.Outputs != nil {
			t.Errorf("%s: %+v, %v", target, o.Pairs, err)
		}
	}
	for target, want := range map[string]string{"": "no name", "user": `"user", a type of vertices`,
		"sells": "no relation", "buys; sells": `"sells"`} {
		s.Target = target
		if err := s.CheckTypes("shop", schema, nil); !isMistake(err, want) || !isMistake(err, `"user buys item"`) {
			t.Errorf("%q: %v", target, err)
		}
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
		{"gcn", "", &shop, []string{"user"}, "use --model rgcn, hsage, rgat, hgt or simplehgn"},
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

// TestFanoutsByRelation: given for all and again for one, on the command line and in a file; an unknown relation is
// refused with those that exist.
func TestFanoutsByRelation(t *testing.T) {
	schema := graph.Schema{Types: []graph.VertexType{{Name: "a"}, {Name: "b"}}, Relations: []graph.Relation{
		{Source: 0, Name: "writes", Target: 0}, {Source: 1, Name: "is <= than", Target: 0},
		{Source: 0, Name: "writes", Target: 1}}}
	data := &graph.Meta{Classes: 2, Schema: &schema}
	read := func(flags ...string) (Spec, error) {
		s := Default()
		s.Mode, s.Model.Name = "mini", "rgcn"
		fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
		s.Flags(fs)
		if err := fs.Parse(flags); err != nil {
			return s, err
		}
		s.complete(dataset{schema: &schema})
		return s, s.Validate()
	}
	s, err := read("--fanout", "15,10", "--fanout", "writes=5,2", "--fanout", "is <= than=all,1",
		"--fanout", "a writes b=7,7")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse([]byte(s.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Spec{s, again} {
		b, err := s.BatchSettings(data)
		if want := [][]int{{5, -1, 7}, {2, 1, 7}}; err != nil || !reflect.DeepEqual(b.RelationFanouts, want) ||
			!reflect.DeepEqual(b.Fanouts, []int{15, 10}) {
			t.Errorf("%q: %+v, %v", s.Batches.Fanout, b, err)
		}
	}
	if s, err := read("--fanout", "writes=5,2,1"); err != nil || s.Model.Layers != 3 {
		t.Errorf("%d layers, %v", s.Model.Layers, err)
	}
	if s, err = read("--fanout", "buys=5,2"); err != nil {
		t.Error(err)
	}
	if _, err := s.BatchSettings(data); !isMistake(err, "one of writes, is <= than") {
		t.Error(err)
	}
	for _, bad := range []string{"writes=5,x", "writes=5,2,3", "writes=0,1"} {
		if _, err := read("--fanout", "15,10", "--fanout", bad); !isMistake(err, "--fanout") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
