package spec

import (
	"strings"
	"testing"
)

// TestDefaultsOfStrategies: salient has a cache where distdgl has none, and --cache none turns it off, given before
// the strategy or after, and in a text.
func TestDefaultsOfStrategies(t *testing.T) {
	read := func(text string) *Spec {
		s, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return &s
	}
	flags := func(strategy, cache string) *Spec {
		s := Default()
		if err := s.Set("cache", cache); err != nil {
			t.Fatal(err)
		}
		s.Strategy = strategy
		return &s
	}
	for _, c := range []struct {
		s    *Spec
		want string
	}{
		{read("strategy: salient"), "auto"}, {read("strategy: salient\ncache: none"), "none"},
		{read("cache: none\nstrategy: salient"), "none"}, {read("strategy: distdgl"), "none"},
		{flags("salient", "none"), "none"}, {flags("salient", "degree"), "degree"}, {flags("distdgl", "none"), "none"},
	} {
		for _, s := range []*Spec{c.s, read(c.s.String())} { // as written, and as a worker reads it
			text := s.String()
			if !strings.Contains(text, "cache: "+c.want+"\n") {
				t.Errorf("found no cache: %s in\n%s", c.want, text)
			}
			choice, err := s.Choice()
			if err != nil {
				t.Fatal(err)
			}
			if got := choice.Setting("cache"); got != c.want {
				t.Errorf("%s, cache %v, want %s", s.Strategy, got, c.want)
			}
		}
	}
	if halo := flags("halo", "none"); halo.checkOptions() != nil {
		t.Error("halo refuses the cache that it does not have anyway")
	}
}
