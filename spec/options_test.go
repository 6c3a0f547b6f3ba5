package spec

import (
	"errors"
	"strings"
	"testing"

	"starling/graph"
	"starling/train"
	_ "starling/train/full" // registers the strategies
	_ "starling/train/mini" // likewise
)

// set sets options of strategies, as NAME or NAME=VALUE.
func set(s *Spec, options ...string) {
	for _, option := range options {
		name, value, ok := strings.Cut(option, "=")
		if !ok {
			value = "true"
		}
		if err := s.Set(name, value); err != nil {
			panic(err)
		}
	}
}

// get is an option's value.
func get(s Spec, name string) any {
	for _, o := range train.AllOptions() {
		if o.Name == name {
			return s.Settings.Get(o)
		}
	}
	panic("no option is called " + name)
}

// chosen are the options of a spec's strategy.
func chosen(t *testing.T, s Spec) map[string]any {
	t.Helper()
	c, err := s.Choice()
	if err != nil {
		t.Fatal(err)
	}
	return c.Report()
}

func isMistake(err error, field string) bool {
	return errors.Is(err, graph.ErrInput) && strings.Contains(err.Error(), field)
}

// TestHelp: every setting is in a topic with a help text, and every topic's settings exist.
func TestHelp(t *testing.T) {
	s := Default()
	own := s.ownFields()
	for _, f := range s.fields() {
		if f.help == "" && f.name != "dataset" {
			t.Errorf("%s has no help", f.name)
		}
		if strings.Contains(f.help, "{}") {
			t.Errorf("%s has no values for %q", f.name, f.help)
		}
		if !f.value.IsValid() {
			t.Errorf("help for %s, which is no setting", f.name)
		}
		delete(own, f.name)
	}
	for name := range own {
		t.Errorf("%s is in no topic of the help", name)
	}
}
