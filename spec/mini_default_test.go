package spec

import (
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// TestMiniBatchesOfSeveralWorkersLookAheadByDefault: without a strategy they take the one that draws batches ahead, and
// salient with what that cannot do, which is said; distdgl, by name, keeps no row. All are exact where no option is
// approximate. A comparison of modes trains what a run would.
func TestMiniBatchesOfSeveralWorkersLookAheadByDefault(t *testing.T) {
	for _, x := range []struct{ strategy, option, value, name, cache, lacks string }{
		{"default", "", "", "lookahead", "belady", ""},
		{"default", "pull_dtype", "bf16", "lookahead", "belady", ""},
		{"default", "cache", "belady", "lookahead", "belady", ""},
		{"default", "cache_window", "8", "lookahead", "belady", ""},
		{"default", "roots", "random", "lookahead", "belady", ""},
		{"default", "cache", "degree", "salient", "degree", "--cache degree"},
		{"default", "cache", "none", "salient", "none", "--cache none"},
		{"default", "dgs", "true", "salient", "auto", "--dgs"},
		{"default", "drop_features", "0.2", "salient", "auto", "--drop-features"},
		{"distdgl", "", "", "distdgl", "none", ""},
		{"salient", "", "", "salient", "auto", ""},
	} {
		s := Default()
		s.Mode, s.Cluster.Workers, s.Strategy = "mini", 4, x.strategy
		if x.option != "" {
			if err := s.Set(x.option, x.value); err != nil {
				t.Fatal(err)
			}
		}
		s.complete(dataset{})
		c, err := s.Choice()
		if err != nil || c.Name() != x.name || c.Setting("cache") != x.cache {
			t.Errorf("%v: %s with cache %s, %v", x, c.Name(), c.Setting("cache"), err)
		}
		if exact := x.option != "dgs" && x.option != "drop_features" && x.value != "bf16"; c.Exact() != exact {
			t.Errorf("%v: exact is %v", x, c.Exact())
		}
		if err := s.checkOptions(); err != nil {
			t.Errorf("%v: %v", x, err)
		}
		if why := s.Lacking(); !strings.HasSuffix(why, x.lacks) || (why == "") != (x.lacks == "") {
			t.Errorf("%v: the reason is %q", x, why)
		}
	}
	c := DefaultCompare()
	c.Dataset, c.Cluster.Workers, c.Modes = "graph", 2, []string{"full", "mini"}
	cases, err := c.Cases()
	if err != nil || !slices.ContainsFunc(cases, func(one Case) bool { return one.Spec.Strategy == "lookahead" }) {
		t.Errorf("%v, %v", cases, err)
	}
}

// TestFeaturesTravelInEveryEpoch: cagnet keeps no sums over features unless it is asked to; halo does.
func TestFeaturesTravelInEveryEpoch(t *testing.T) {
	for _, c := range []struct{ strategy, given, want string }{{"cagnet", "auto", "off"}, {"cagnet:2d", "auto", "off"},
		{"cagnet", "on", "on"}, {"halo", "auto", "on"}} {
		s := Default()
		s.Strategy, s.Cluster.Workers, s.Machine.CacheFirst = c.strategy, 4, c.given
		s.ForData(&graph.Meta{Nodes: 10, Features: &graph.FeatureMeta{Kind: graph.Dense, Dim: 4}}, "avx2")
		if s.Machine.CacheFirst != c.want {
			t.Errorf("%s, --cache-first %s: %s, want %s", c.strategy, c.given, s.Machine.CacheFirst, c.want)
		}
	}
}
