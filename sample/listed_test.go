package sample

import (
	"testing"

	"starling/graph"
)

// TestListedEdges: edges that lists have are held out in either direction, with repeats, and no others; of both lists
// for validation. Of relations it is those of the relation and of its reverse.
func TestListedEdges(t *testing.T) {
	l := &Lists{Val: &Listed{Pairs: Pairs{U: []uint32{4, 1}, V: []uint32{1, 2}}},
		Test: &Listed{Pairs: Pairs{U: []uint32{2, 0}, V: []uint32{1, 3}}}}
	sets := ListedEdges(l)
	for pair, want := range map[[2]uint32]int{{1, 4}: ValEdges, {4, 1}: ValEdges, {2, 1}: ValEdges, {3, 0}: TestEdges,
		{0, 3}: TestEdges, {0, 1}: TrainEdges, {3, 3}: TrainEdges} {
		if got := sets.Of(pair[0], pair[1]); got != want {
			t.Errorf("%v is in set %d, want %d", pair, got, want)
		}
	}
	g, err := graph.FromEdges(5, []uint32{1, 4, 4, 0, 0, 2}, []uint32{4, 1, 1, 3, 1, 4}, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	split, err := HoldOutListed(t.Context(), g, l)
	if err != nil || split.Graph.Edges() != 2 || split.Train.Len() != 2 {
		t.Errorf("%+v, %v", split, err)
	}
	all := &Lists{Val: &Listed{Pairs: Pairs{U: []uint32{0, 2, 1, 0}, V: []uint32{1, 4, 4, 3}}}}
	if _, err := HoldOutListed(t.Context(), g, all); err == nil {
		t.Error("no edge is left to learn from")
	}
}

// TestListedRelations: an edge of the reverse relation that says the same is held out too.
func TestListedRelations(t *testing.T) {
	s := &graph.Schema{Types: []graph.VertexType{{Name: "a", First: 0, Count: 3}, {Name: "b", First: 3, Count: 3}},
		Relations: []graph.Relation{{Name: "to", Source: 0, Target: 1}, {Name: "of", Source: 1, Target: 0, Reverse: "to"},
			{Name: "other", Source: 0, Target: 1}}}
	l := &Lists{Test: &Listed{Pairs: Pairs{U: []uint32{2}, V: []uint32{4}}}}
	sets, err := ListedRelationSets(s, 0, l)
	if err != nil {
		t.Fatal(err)
	}
	reverse := s.ReverseOf(0)
	for _, c := range []struct {
		relation int
		u, v     uint32
		want     int
	}{{0, 2, 4, TestEdges}, {1, 4, 2, TestEdges}, {2, 2, 4, TrainEdges}, {0, 1, 4, TrainEdges}, {1, 4, 1, TrainEdges}} {
		if c.relation == 1 && reverse != 1 {
			t.Fatalf("the reverse is %d", reverse)
		}
		if got := sets.Of(c.relation, c.u, c.v); got != c.want {
			t.Errorf("%+v is in set %d", c, got)
		}
	}
}
