package spec

import (
	"slices"
	"testing"

	"starling/graph"
)

// TestMiniBatchesOfSeveralWorkersCacheByDefault: without a strategy they take the exact one that keeps rows; distdgl,
// by name, keeps none. A comparison of modes trains what a run would.
func TestMiniBatchesOfSeveralWorkersCacheByDefault(t *testing.T) {
	for strategy, want := range map[string]struct{ name, cache string }{
		"default": {"salient", "auto"}, "distdgl": {"distdgl", "none"}} {
		s := Default()
		s.Mode, s.Cluster.Workers, s.Strategy = "mini", 4, strategy
		s.complete(dataset{})
		c, err := s.Choice()
		if err != nil || c.Name() != want.name || c.Setting("cache") != want.cache || !c.Exact() {
			t.Errorf("%s: %s with cache %s, %v", strategy, c.Name(), c.Setting("cache"), err)
		}
	}
	c := DefaultCompare()
	c.Dataset, c.Cluster.Workers, c.Modes = "graph", 2, []string{"full", "mini"}
	cases, err := c.Cases()
	if err != nil || !slices.ContainsFunc(cases, func(one Case) bool { return one.Spec.Strategy == "salient" }) {
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
