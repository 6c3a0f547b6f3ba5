package resume

import (
	"testing"

	"starling/graph"
)

// TestDataOfEarlierVersions: what such checkpoints and partitions know is compared; where they
// know nothing in common, the data count as different.
func TestDataOfEarlierVersions(t *testing.T) {
	mark := func(meta, graphSum, cut string) Identity {
		return Identity{Mark{3, 4, meta, graph.Contents{Graph: graphSum}}, cut}
	}
	for _, c := range []struct {
		one, other Identity
		same       bool
	}{
		{mark("a", "", ""), mark("a", "g", ""), true},
		{mark("a", "", ""), mark("b", "g", ""), false},
		{mark("a", "g", ""), mark("b", "g", "x"), true},
		{mark("", "", "x"), mark("", "g", "x"), true},
		{mark("", "", "x"), mark("", "g", "y"), false},
		{mark("", "", ""), mark("", "", ""), false},
	} {
		if got := c.one.SameAs(c.other) == nil; got != c.same {
			t.Errorf("%v and %v: same %v", c.one, c.other, got)
		}
	}
}
