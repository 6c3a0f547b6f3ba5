package run

import (
	"strings"
	"testing"

	"starling/event"
	"starling/setup"
	"starling/setup/setuptest"
)

// TestOptionsWithoutEffect: an option of another that is off is refused, by its name, and so is the correction of stale
// rows where there are none; with the other on, both are taken. A comparison leaves out what a strategy of it would
// refuse.
func TestOptionsWithoutEffect(t *testing.T) {
	dir := setuptest.Block(t, nil)
	ofStale := map[string]bool{"--means": true, "--skip-gradients": true} // refused for what the strategy's text says
	for _, c := range []struct{ strategy, set, says string }{
		{"distdgl", "dgs_every=5", "--dgs-every"}, {"distdgl", "dgs,dgs_every=5", ""},
		{"distdgl", "dgs_masks=nodes", "--dgs-masks"}, {"distdgl", "drop_features_of=all", "--drop-features-of"},
		{"distdgl", "drop_features=0.5,drop_features_of=all", ""}, {"distdgl", "cache_budget=1MiB", "--cache-budget"},
		{"distdgl", "cache=degree,cache_budget=1MiB", ""}, {"salient", "cache_budget=1MiB", ""},
		{"bytegnn", "dgs_loss=0.5", "--dgs-loss"},
		{"pipegcn:0", "smooth=0.5", "--smooth"}, {"pipegcn", "smooth=0.5", ""}, {"pipegcn:0", "means", "--means"},
		{"pipegcn", "means", ""}, {"sancus:epoch:0", "means", "--means"}, {"sancus:relative:0", "means", "--means"},
		{"sancus:epoch:1", "means", ""}, {"sancus:epoch:0", "skip_gradients", "--skip-gradients"},
		{"bns:0.5", "means", "--means"},
	} {
		s := setuptest.Quick(dir)
		s.Cluster.Workers, s.Cluster.Servers, s.Strategy = 2, 2, c.strategy
		if s.StrategyName() == "distdgl" || s.StrategyName() == "salient" || s.StrategyName() == "bytegnn" {
			s.Mode, s.Model.Name = "mini", "sage"
		}
		set(&s, strings.Split(c.set, ",")...)
		err := s.Validate()
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s with %s: %v, want %q", c.strategy, c.set, err, c.says)
		}
		if one := s.ForStrategy(c.strategy); c.says != "" && !ofStale[c.says] && one.Validate() != nil {
			t.Errorf("%s with %s compared: %v", c.strategy, c.set, one.Validate())
		}
	}
}

// TestPulledOnOneHost: settings of rows of other hosts are no mistake where there are none, and a warning says so.
func TestPulledOnOneHost(t *testing.T) {
	for servers, want := range map[int]int{0: 2, 2: 0} {
		s, said := setuptest.Quick("graph"), 0
		s.Cluster.Workers, s.Cluster.Servers, s.Mode = 2, servers, "mini"
		set(&s, "cache=degree", "pull_dtype=bf16")
		setup.NotePulled(&s, event.Func(func(e event.Event) {
			if n, ok := e.(event.Note); ok && strings.Contains(n.Text, "has no effect here") {
				said++
			}
		}))
		if said != want {
			t.Errorf("%d servers: %d warnings, want %d", servers, said, want)
		}
	}
}
