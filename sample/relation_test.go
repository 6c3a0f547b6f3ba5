package sample

import (
	"maps"
	"testing"

	"starling/graph"
)

// related is a schema of users and items: they buy, are bought, users know and trust each other.
func related() *graph.Schema {
	s := &graph.Schema{Types: []graph.VertexType{{Name: "user", Count: 40}, {Name: "item", First: 40, Count: 60}},
		Relations: []graph.Relation{
			{Source: 0, Name: "buys", Target: 1, Reverse: "bought by"}, {Source: 1, Name: "bought by", Target: 0, Reverse: "buys"},
			{Source: 0, Name: "knows", Target: 0}, {Source: 0, Name: "trusts", Target: 0, Reverse: "trusted by"},
			{Source: 0, Name: "trusted by", Target: 0}}}
	s.SortRelations()
	return s
}

// TestRelationsAreHeldOutWithTheirReverse: an edge and the one that says the same are in one set, whichever relation is
// scored; other relations lose nothing; sets have about their shares.
func TestRelationsAreHeldOutWithTheirReverse(t *testing.T) {
	s := related()
	of := s.RelationOf
	for _, scored := range [][]int{{of("buys")}, {of("bought by")}, {of("buys"), of("bought by")}} {
		sets, err := NewRelationSets(s, scored, 0.2, 0.1, 5)
		if err != nil {
			t.Fatal(err)
		}
		count := [3]int{}
		for u := range uint32(40) {
			for v := uint32(40); v < 100; v++ {
				set := sets.Of(of("buys"), u, v)
				if count[set]++; set != sets.Of(of("bought by"), v, u) {
					t.Fatalf("scored %v: %d buys %d and is bought by are in different sets", scored, u, v)
				}
			}
			if sets.Of(of("knows"), u, 39-u) != TrainEdges {
				t.Fatal("an edge of another relation is held out")
			}
		}
		if count[ValEdges] < 400 || count[ValEdges] > 560 || count[TestEdges] < 180 || count[TestEdges] > 300 {
			t.Errorf("sets of %v", count)
		}
	}
	sets, err := NewRelationSets(s, []int{of("knows"), of("trusts")}, 0.2, 0.2, 5)
	if err != nil {
		t.Fatal(err)
	}
	differ := 0
	for u := range uint32(40) {
		for v := range u {
			if sets.Of(of("knows"), u, v) != sets.Of(of("knows"), v, u) {
				t.Fatal("opposite edges of a relation without reverse are in different sets")
			}
			if sets.Of(of("trusts"), u, v) != sets.Of(of("trusted by"), v, u) {
				t.Fatal("a reverse relation that is named once is not found")
			}
			if sets.Of(of("trusts"), u, v) != sets.Of(of("trusts"), v, u) {
				differ++
			}
		}
	}
	if differ == 0 {
		t.Error("opposite edges of a relation with a reverse are one pair")
	}
	for _, bad := range []struct {
		relations []int
		val       float64
	}{{[]int{9}, 0.1}, {[]int{-1}, 0.1}, {[]int{0}, 1}} {
		if _, err := NewRelationSets(s, bad.relations, bad.val, 0, 5); err == nil {
			t.Errorf("%v passed", bad)
		}
	}
}

// TestKeptHasNoHeldOutEdge: what messages pass over is what no set holds out, rows in order.
func TestKeptHasNoHeldOutEdge(t *testing.T) {
	s := related()
	buys, bought := s.RelationOf("buys"), s.RelationOf("bought by")
	var src, dst []uint32
	var relation []uint16
	for u := range uint32(40) {
		for v := 40 + u%3; v < 100; v += 3 {
			src, dst, relation = append(src, u, v), append(dst, v, u), append(relation, uint16(buys), uint16(bought))
		}
	}
	g, err := graph.FromTypedEdges(100, src, dst, relation)
	if err != nil {
		t.Fatal(err)
	}
	sets, err := NewRelationSets(s, []int{buys}, 0.2, 0.1, 5)
	if err != nil {
		t.Fatal(err)
	}
	same := func(v uint32) uint32 { return v }
	kept := sets.Kept(g, same, same)
	if err := kept.CheckRelations(s); err != nil {
		t.Fatal(err)
	}
	want := 0
	for i := range src {
		if sets.Of(int(relation[i]), src[i], dst[i]) == TrainEdges {
			want++
		}
	}
	if int(kept.Edges()) != want || want == len(src) {
		t.Errorf("%d of %d edges are kept, want %d", kept.Edges(), len(src), want)
	}
	for v := range uint32(100) {
		for e := kept.Indptr[v]; e < kept.Indptr[v+1]; e++ {
			if sets.Of(int(kept.Relations[e]), kept.Indices[e], v) != TrainEdges {
				t.Fatalf("edge %d → %d is held out and kept", kept.Indices[e], v)
			}
		}
	}
}

// TestRelationNegativesAreOfTheDestinationsType, never taken, and drawn anew in every epoch.
func TestRelationNegativesAreOfTheDestinationsType(t *testing.T) {
	s := related()
	taken := func(_, w uint32) bool { return w%2 == 0 }
	n := NewRelationNegatives(s, s.RelationOf("buys"), taken, 3)
	seen, again := map[uint32]bool{}, 0
	for i := range uint32(2000) {
		w := n.Of(int(i%7), i%40, 40+i%60, int(i%3), i%40)
		if seen[w] = true; w < 40 || w >= 100 || w%2 == 0 {
			t.Fatalf("negative %d", w)
		}
		if n.Of(0, i%40, 50, 0, 0) == n.Of(1, i%40, 50, 0, 0) {
			again++
		}
		if w := n.Ranked(TestEdges, i%40, 41, int(i), 0); w < 40 || w%2 == 0 {
			t.Fatalf("ranked negative %d", w)
		}
	}
	if len(seen) != 30 || again > 400 {
		t.Errorf("%d of 30 vertices are drawn; %d of 2000 are drawn again in the next epoch", len(seen), again)
	}
}

// TestRelationBatchesLeaveOutTheirPairs: an epoch has every pair once; no message of a batch passes over one of its own
// pairs, nor over its edge of the reverse relation, and all other edges are there.
func TestRelationBatchesLeaveOutTheirPairs(t *testing.T) {
	s := related()
	buys, bought, knows := s.RelationOf("buys"), s.RelationOf("bought by"), s.RelationOf("knows")
	var src, dst []uint32
	var relation []uint16
	var first, second RelationSource
	for u := range uint32(40) {
		for v := 40 + u%7; v < 100; v += 7 {
			src, dst, relation = append(src, u, v), append(dst, v, u), append(relation, uint16(buys), uint16(bought))
			first.add(u, v)
		}
		src, dst, relation = append(src, u), append(dst, (u+5)%40), append(relation, uint16(knows))
		second.add(u, (u+5)%40)
	}
	g, err := graph.FromTypedEdges(100, src, dst, relation)
	if err != nil {
		t.Fatal(err)
	}
	first.Relation, second.Relation = buys, knows
	first.Negative = func(epoch, i, k int) uint32 { return uint32(40 + (i+k+epoch)%60) }
	second.Negative = func(_, i, k int) uint32 { return uint32((i + k) % 40) }
	p := &RelationBatches{Graph: g, Types: &Types{Schema: s, TypeOf: s.TypeOf}, Size: 30, Fanouts: []int{All, All},
		Sources: []RelationSource{first, second}, PerPair: 2, Without: true, Seed: 3}
	if _, err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	seen := map[[3]uint32]int{}
	var b Batch
	for number := range p.Batches() {
		p.Sampler().Sample(&b, 1, number)
		own := map[[3]uint32]bool{} // relation, source, target
		from := 0
		for i, list := range b.Relations {
			r := p.Sources[i].Relation
			for k := from; k < from+list.Positives; k++ {
				u, v := b.Vertices[b.Left[k]], b.Vertices[b.Right[k]]
				seen[[3]uint32{uint32(r), u, v}]++
				own[[3]uint32{uint32(r), u, v}], own[[3]uint32{uint32(Opposite(s, r)), v, u}] = true, true
			}
			if list.End-from != 3*list.Positives {
				t.Fatalf("%d pairs of %d positives", list.End-from, list.Positives)
			}
			from = list.End
		}
		for _, x := range b.Blocks {
			for i := range x.Dst {
				v := b.Vertices[i]
				want, got := map[[3]uint32]bool{}, map[[3]uint32]bool{}
				for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
					if edge := [3]uint32{uint32(g.Relations[e]), g.Indices[e], v}; !own[edge] {
						want[edge] = true
					}
				}
				for e := x.Indptr[i]; e < x.Indptr[i+1]; e++ {
					got[[3]uint32{uint32(x.Relations[e]), b.Vertices[x.Indices[e]], v}] = true
				}
				if !maps.Equal(got, want) {
					t.Fatalf("batch %d, vertex %d: messages %v, want %v", number, v, got, want)
				}
			}
		}
	}
	if len(seen) != first.Len()+second.Len() {
		t.Errorf("%d pairs in an epoch, want %d", len(seen), first.Len()+second.Len())
	}
}

// TestRelationNegativesByDegree: destinations are drawn in proportion to their degree to a power, and none that a source
// is linked with.
func TestRelationNegativesByDegree(t *testing.T) {
	s := related()
	degrees := make([]float64, 60)
	degrees[0], degrees[1], degrees[2], degrees[59] = 16, 4, 100, 1
	n := RelationNegativesByDegree(s, s.RelationOf("buys"), 0.5, degrees,
		func(u, w uint32) bool { return u == 7 && w == 42 }, 5)
	count := map[uint32]float64{}
	const draws = 70000
	for k := range draws {
		count[n.Of(1, 7, 41, k, 7)]++
	}
	for w, share := range map[uint32]float64{40: 4. / 7, 41: 2. / 7, 99: 1. / 7} {
		if got := count[w] / draws; got < 0.97*share || got > 1.03*share {
			t.Errorf("item %d is drawn in %.3f of draws, expected %.3f", w, got, share)
		}
	}
	if len(count) != 3 {
		t.Errorf("draws of %v", count)
	}
}
